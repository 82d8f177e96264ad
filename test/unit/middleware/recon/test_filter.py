"""``/recon`` answers as the peer's does: shapes recorded from it, black-box (middleware.md §16)."""

import json
import os
from hashlib import md5
from pathlib import Path

import pytest

from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.recon.filter import FILTER, RECON_FILE_CHECKS, Recon, ReconSettings
from swift.platform.nativedisk import native_module

RECORDED = json.loads((Path(__file__).parents[3] / "golden/data/http/recon.json").read_text())


class App:
    """What is behind the filter."""

    def handle(self, request):
        return Response(204)


def run_inline(function, *args):
    return function(*args)


@pytest.fixture
def node(tmp_path):
    for name in ("dev/sda", "dev/sdb", "etc", "cache"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dev/plainfile").touch()
    (tmp_path / "etc/swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    return tmp_path


@pytest.fixture
def recon(node):
    settings = ReconSettings(
        devices=str(node / "dev"), swift_dir=str(node / "etc"), recon_cache_path=str(node / "cache")
    )
    return Recon(App(), settings, run=run_inline)


def ask(recon, path, method="GET"):
    response = recon.handle(Request(method, f"/recon/{path}"))
    body = response.read_body()
    is_json = response.headers.get("content-type") == "application/json"
    return response.status, json.loads(body) if is_json else body.decode()


def shape(value):
    """Names and types, all numbers being one type."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    )


@pytest.mark.parametrize("path", RECORDED["shapes"])
def test_answers_have_the_peer_s_shape(recon, node, path):
    (node / "cache/object.recon").write_text(json.dumps(RECORDED["object.recon"]))
    status, value = ask(recon, path)
    assert status == 200
    wanted = RECORDED["shapes"][path]
    if path in ("mem", "mounted"):
        # Kernels differ in what they list.
        assert type(shape(value)) is type(wanted)
        assert set(shape(value) if isinstance(value, dict) else shape(value)[0]) >= set(
            ["MemTotal", "MemFree"] if isinstance(wanted, dict) else wanted[0]
        )
        return
    assert shape(value) == wanted


@pytest.mark.parametrize("path", RECORDED["unknown"])
def test_unknown_checks_and_types_are_404(recon, path):
    assert ask(recon, path) == (404, f"Invalid path: /recon/{path}")


def test_what_follows_a_check_without_types_does_not_matter_and_no_method_does(recon):
    assert ask(recon, "version/x") == ask(recon, "version") == ask(recon, "version/", "PUT")
    assert ask(recon, "replication") == ask(recon, "replication/object")


def test_native_disk_calls_are_told(recon):
    assert ask(recon, "native") == (200, {"native_disk": native_module() is not None})


def test_other_paths_go_on(recon):
    for path in ("/recon", "/reconx/mem", "/sda/1/a/c/recon"):
        assert recon.handle(Request("GET", path)).status == 204


@pytest.mark.parametrize("check", RECON_FILE_CHECKS, ids=str)
def test_what_daemons_wrote_is_told_and_the_rest_is_null(recon, node, check):
    name, kind = check
    file, keys = RECON_FILE_CHECKS[check]
    (node / f"cache/{file}.recon").write_text(json.dumps({keys[0]: {"a": 1}, "other": 2}))
    path = name if kind is None else f"{name}/{kind}"
    assert ask(recon, path) == (200, {key: {"a": 1} if key == keys[0] else None for key in keys})


def test_damaged_recon_files_tell_nothing(recon, node):
    (node / "cache/object.recon").write_bytes(b"\xff{")
    assert ask(recon, "async") == (200, {"async_pending": None, "async_pending_last": None})


def test_quarantined_things_are_counted_by_kind_and_policy(recon, node):
    for path in ("objects/aa", "objects/ab", "objects-1/bb", "containers/cc", "objects-x/no"):
        (node / "dev/sda/quarantined" / path).mkdir(parents=True)
    assert ask(recon, "quarantined")[1] == {
        "objects": 3,
        "containers": 1,
        "accounts": 0,
        "policies": {"0": {"objects": 2}, "1": {"objects": 1}},
    }


def test_mounted_devices_tell_their_sizes(recon, node):
    (node / "dev/sda/.ismount").touch()
    assert ask(recon, "unmounted")[1] == [{"device": "sdb", "mounted": False}]
    by_name = {device["device"]: device for device in ask(recon, "diskusage")[1]}
    sda = by_name["sda"]
    assert sda["mounted"] is True
    assert sda["used"] + sda["avail"] == sda["size"] > 0
    assert by_name["sdb"] == {"device": "sdb", "mounted": False, "size": "", "used": "", "avail": ""}


def test_digests_follow_the_files(recon, node):
    path = node / "etc/object.ring.gz"
    for content in (b"one", b"another"):
        path.write_bytes(content)
        assert ask(recon, "ringmd5")[1] == {str(path): md5(content).hexdigest()}
    (node / "etc/swift.conf").unlink()
    assert ask(recon, "swiftconfmd5")[1] == {str(node / "etc/swift.conf"): None}


def test_devices_that_cannot_be_listed_are_an_error_without_details(recon, node):
    os.rename(node / "dev", node / "away")
    assert ask(recon, "diskusage") == (500, "Internal server error.")
    assert ask(recon, "devices") == (200, {str(node / "dev"): None})


def test_the_paste_factory_knows_the_rings_of_all_policies(node):
    (node / "etc/swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = s\n"
        "[storage-policy:0]\nname = a\ndefault = yes\n[storage-policy:3]\nname = b\n"
    )
    conf = {"swift_dir": str(node / "etc"), "devices": str(node / "dev")}
    recon = FILTER(conf, recon_cache_path=str(node / "cache"))(App())
    for name in ("account", "container", "object", "object-3", "object-7"):
        (node / f"etc/{name}.ring.gz").touch()
    names = [os.path.basename(path) for path in ask(recon, "ringmd5")[1]]
    assert names == ["account.ring.gz", "container.ring.gz", "object.ring.gz", "object-3.ring.gz"]
