"""Object trees written by the peer are read, hashed and re-encoded exactly (object-disk.md §4, §8, §11)."""

from __future__ import annotations

import json
import os
import pickle
from hashlib import md5
from pathlib import Path
from urllib.parse import quote

import pytest

from swift.base.hashing import PathHasher
from swift.http.request import Request
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.runtime.backendapp import BackendContext
from swift.store.metadata import BadMetadata, encode_metadata, read_metadata, read_metadata_blob
from test.support import checks

DATA = Path(__file__).parent.parent / "data" / "objects"
GOLD = Policy(0, "gold", is_default=True)
EC42 = Policy(1, "ec42", ec=ErasureCode("liberasurecode_rs_vand", 4, 2, 65536))


def describe(name: str) -> dict:
    return json.loads((DATA / f"{name}.json").read_text())


def unpack(name: str, root: Path) -> dict:
    """Restore a tree below ``root``, files from the archive and attributes from the JSON."""
    tree = describe(name)
    checks.unpack(DATA / f"{name}.tar.gz", root)
    for path, facts in tree["files"].items():
        for attribute, value in facts.get("xattrs_hex", {}).items():
            os.setxattr(root / path, attribute, bytes.fromhex(value))
    return tree


def make_app(root: Path) -> ObjectServer:
    context = BackendContext(
        devices=Devices(str(root), mount_check=False),
        hasher=PathHasher(b"goldenprefix", b"goldensuffix"),
        policies=Policies([GOLD, EC42]),
    )
    settings = ObjectSettings()
    return ObjectServer(context, settings, make_stores(context, settings))


@pytest.fixture(params=["tree-replicated", "tree-ec42"])
def tree(request, tmp_path):
    return tmp_path, unpack(request.param, tmp_path)


def test_every_file_s_metadata_decodes_as_recorded(tree):
    root, description = tree
    decoded = {path: facts["decoded"] for path, facts in description["files"].items() if "decoded" in facts}
    assert decoded
    for path, expected in decoded.items():
        assert read_metadata(Disk(), str(root / path)) == expected, path


def test_python_3_metadata_re_encodes_to_the_same_bytes(tree):
    root, description = tree
    for path, facts in description["files"].items():
        if "decoded" not in facts:
            continue
        blob, checked = read_metadata_blob(Disk(), str(root / path))
        if b"_codecs\nencode" not in blob[:32]:
            continue
        assert encode_metadata(read_metadata(Disk(), str(root / path))) == blob, path
        if checked:
            stored = os.getxattr(root / path, "user.swift.metadata_checksum")
            assert stored.decode() == md5(blob).hexdigest()


def test_a_flipped_bit_in_metadata_is_noticed(tmp_path):
    description = unpack("tree-replicated", tmp_path)
    path = next(path for path, facts in description["files"].items() if path.endswith(".data"))
    blob = bytearray(os.getxattr(tmp_path / path, "user.swift.metadata"))
    blob[40] ^= 1
    os.setxattr(tmp_path / path, "user.swift.metadata", bytes(blob))
    with pytest.raises(BadMetadata):
        read_metadata(Disk(), str(tmp_path / path))


def test_replicate_answers_the_recorded_hashes_of_a_replicated_partition(tmp_path):
    description = unpack("tree-replicated", tmp_path)
    for stale in ("hashes.pkl", "hashes.invalid"):
        (tmp_path / "sda/objects/8" / stale).unlink()
    app = make_app(tmp_path)
    response = app.handle(Request("REPLICATE", "/sda/8"))
    assert pickle.loads(response.read_body()) == description["suffix_hashes"]
    expected = bytes.fromhex(description["replicate_response_body_hex"])
    assert pickle.loads(expected) == description["suffix_hashes"]
    assert pickle.loads((tmp_path / "sda/objects/8/hashes.pkl").read_bytes())["valid"] is True


def test_the_peer_s_hash_cache_is_used_and_kept(tmp_path):
    description = unpack("tree-replicated", tmp_path)
    response = make_app(tmp_path).handle(Request("REPLICATE", "/sda/8"))
    assert pickle.loads(response.read_body()) == description["suffix_hashes"]


def test_replicate_answers_the_recorded_hashes_of_every_fragment_device(tmp_path):
    description = unpack("tree-ec42", tmp_path)
    app = make_app(tmp_path)
    for device, recorded in description["replicate"].items():
        for stale in ("hashes.pkl", "hashes.invalid"):
            (tmp_path / device / "objects-1/8" / stale).unlink(missing_ok=True)
        response = app.handle(Request("REPLICATE", f"/{device}/8", {"x-backend-storage-policy-index": "1"}))
        assert pickle.loads(response.read_body()) == pickle.loads(bytes.fromhex(recorded["body_hex"])), device


def _same_head(app, path, headers, recorded):
    response = app.handle(Request("HEAD", path, headers))
    expected = {name.lower(): value for name, value in recorded["headers"]}
    assert response.status == recorded["status"], path
    ours = dict(response.headers)
    if "x-backend-fragments" in expected:
        fragments = expected.pop("x-backend-fragments")
        assert json.loads(ours.pop("x-backend-fragments")) == json.loads(fragments)
    assert ours == expected, path


def test_every_replicated_object_has_the_recorded_headers(tmp_path):
    description = unpack("tree-replicated", tmp_path)
    app = make_app(tmp_path)
    for path, facts in description["objects"].items():
        _same_head(app, f"/sda/8/{quote(path)}", {}, facts["HEAD"])


def test_every_fragment_archive_has_the_recorded_headers(tmp_path):
    description = unpack("tree-ec42", tmp_path)
    app = make_app(tmp_path)
    policy = {"x-backend-storage-policy-index": "1"}
    for path, facts in description["objects"].items():
        _same_head(app, f"/ec0/8/{quote(path)}", dict(policy), facts["HEAD_index0"])
        preferring = {**policy, "x-backend-fragment-preferences": "[]"}
        _same_head(app, f"/ec0/8/{quote(path)}", preferring, facts["HEAD_index0_frag_prefs_empty"])


def test_reading_every_replicated_body_quarantines_nothing(tmp_path):
    description = unpack("tree-replicated", tmp_path)
    app = make_app(tmp_path)
    for path, facts in description["objects"].items():
        response = app.handle(Request("GET", f"/sda/8/{quote(path)}"))
        assert response.status == facts["HEAD"]["status"]
        if response.status == 200:
            assert md5(response.read_body()).hexdigest() == response.headers["etag"].strip('"')
    assert not (tmp_path / "sda/quarantined").exists()


def test_fragment_bodies_come_back_whole(tmp_path):
    unpack("tree-ec42", tmp_path)
    app = make_app(tmp_path)
    response = app.handle(Request("GET", "/ec0/8/AUTH_test/c/ec115", {"x-backend-storage-policy-index": "1"}))
    assert md5(response.read_body()).hexdigest() == response.headers["etag"].strip('"')
