"""A manifest is taken only if a trusted key signed exactly these bytes for this cluster."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.ring import manifest as module
from swift.ring.errors import LayoutError
from swift.ring.manifest import (
    FileEntry,
    Manifest,
    TrustedKeys,
    encode,
    key_id_of,
    new_private_key,
    parse_private_key,
    parse_trusted_keys,
    parse_verified,
    public_key_of,
    render_private_key,
    render_trusted_keys,
    sign,
)

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))
ENTRY = FileEntry.of(b"content")
FILES = {"account.ring.gz": ENTRY, "object-2.builder": FileEntry.of(b"")}


def trusted(*keys, cluster="c1"):
    publics = map(public_key_of, keys or (KEY,))
    return TrustedKeys(cluster, {key_id_of(public): public for public in publics})


def make(version=3, *, cluster="c1", issued_s=1.7e9, files=FILES):
    return Manifest(cluster, version, issued_s, files)


def signed_text(content, key=KEY):
    """Bytes with a valid signature over a JSON text or other bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    body = content if isinstance(content, bytes) else json.dumps(content, indent=1, sort_keys=True).encode()
    signature = Ed25519PrivateKey.from_private_bytes(key).sign(b"swift-layout 1 " + body)
    key_id = key_id_of(public_key_of(key)).encode()
    return b"swift-layout 1 " + key_id + b" " + base64.b64encode(signature) + b"\n" + body


def fields_of(manifest):
    return json.loads(encode(manifest))


def test_a_signed_manifest_is_read_as_it_was_made():
    found = parse_verified(sign(make(), KEY), trusted())
    assert found == make()
    assert found.id == make().id
    assert str(found) == f"layout version 3 ({found.id})"


def test_the_format_stays_as_it_is():
    """Other versions of the software read these bytes."""
    data = sign(make(files={"account.ring.gz": ENTRY}), KEY)
    assert data == (
        b"swift-layout 1 56475aa75463474c "
        + data.split(b"\n")[0].split()[3]
        + b"\n"
        + b'{\n "cluster": "c1",\n "files": {\n  "account.ring.gz": {\n'
        + b'   "sha256": "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73",\n'
        + b'   "size_bytes": 7\n  }\n },\n "format": 1,\n "issued_s": 1700000000.0,\n "version": 3\n}\n'
    )
    assert signed_text(data.split(b"\n", 1)[1]) == data


@given(st.data())
def test_no_manifest_with_one_changed_byte_is_taken(data):
    signed = bytearray(sign(make(), KEY))
    place = data.draw(st.integers(0, len(signed) - 1))
    signed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LayoutError):
        parse_verified(bytes(signed), trusted())


def test_no_part_of_a_manifest_is_taken():
    signed = sign(make(), KEY)
    for length in range(len(signed)):
        with pytest.raises(LayoutError):
            parse_verified(signed[:length], trusted())
    with pytest.raises(LayoutError):
        parse_verified(signed + b"\n", trusted())


def test_a_signature_of_an_unknown_key_is_refused_by_name():
    with pytest.raises(LayoutError, match="which is not in layout.pub"):
        parse_verified(sign(make(), OTHER_KEY), trusted())


def test_the_id_of_a_trusted_key_does_not_lend_its_trust():
    head, body = sign(make(), OTHER_KEY).split(b"\n", 1)
    own_id = key_id_of(public_key_of(KEY)).encode()
    forged = b" ".join([*head.split()[:2], own_id, head.split()[3]]) + b"\n" + body
    with pytest.raises(LayoutError, match="signature does not match"):
        parse_verified(forged, trusted())


def test_each_of_several_keys_is_trusted():
    both = trusted(KEY, OTHER_KEY)
    assert parse_verified(sign(make(), KEY), both) == parse_verified(sign(make(), OTHER_KEY), both)


def test_a_manifest_of_another_cluster_is_refused():
    with pytest.raises(LayoutError, match="of the cluster other, this one is c1"):
        parse_verified(sign(make(cluster="other"), KEY), trusted())


def test_a_longer_manifest_is_refused_before_it_is_verified():
    with pytest.raises(LayoutError, match="longer"):
        parse_verified(b"x" * (module.MANIFEST_BYTES_MAX + 1), trusted())


@pytest.mark.parametrize(
    "name",
    [
        "../account.ring.gz",
        "/etc/passwd",
        "a/account.ring.gz",
        "account.ring.gz\n",
        "account.ring.gz/",
        "swift.conf",
        "layout.pub",
        "object-0.ring.gz",
        "object-01.ring.gz",
        "object--1.ring.gz",
        "object-1234567.ring.gz",
        "object-١.ring.gz",
        "account-1.ring.gz",
        "",
        ".",
    ],
)
def test_other_names_than_those_of_rings_and_builders_are_refused(name):
    with pytest.raises(LayoutError, match="is not the name of a ring or builder file"):
        sign(make(files={name: ENTRY}), KEY)
    with pytest.raises(LayoutError):
        parse_verified(signed_text(encode(make(files={name: ENTRY}))), trusted())


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": True},
        {"cluster": ""},
        {"cluster": "a b"},
        {"cluster": 5},
        {"version": 0},
        {"version": -1},
        {"version": 1 << 53},
        {"version": True},
        {"version": 1.0},
        {"version": "3"},
        {"issued_s": -1.0},
        {"issued_s": 5},
        {"issued_s": float("inf")},
        {"issued_s": float("nan")},
        {"issued_s": "now"},
        {"files": {}},
        {"files": []},
        {"files": {f"object-{number}.builder": ENTRY._asdict() for number in range(1, 1026)}},
        {"files": {"account.ring.gz": {"sha256": ENTRY.sha256}}},
        {"files": {"account.ring.gz": {"sha256": ENTRY.sha256.upper(), "size_bytes": 7}}},
        {"files": {"account.ring.gz": {"sha256": ENTRY.sha256, "size_bytes": -1}}},
        {"files": {"account.ring.gz": {"sha256": ENTRY.sha256, "size_bytes": 1 << 40}}},
        {"files": {"account.ring.gz": {"sha256": ENTRY.sha256, "size_bytes": True}}},
        {"files": {"account.ring.gz": {"sha256": ENTRY.sha256, "size_bytes": 7, "mode": "0777"}}},
        {"files": {"account.ring.gz": "x"}},
        {"more": 1},
    ],
)
def test_a_signed_manifest_with_odd_fields_is_refused(change):
    content = {**fields_of(make()), **change}
    with pytest.raises(LayoutError):
        parse_verified(signed_text(json.dumps(content, indent=1, sort_keys=True).encode() + b"\n"), trusted())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]\n",
        b"null",
        b"[" * 100_000,
        b'{"version": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        json.dumps(fields_of(make())).encode(),
        encode(make()).replace(b'"version": 3', b'"version": 3, "version": 3'),
    ],
)
def test_signed_bytes_that_are_no_manifest_in_its_form_are_refused(body):
    with pytest.raises(LayoutError):
        parse_verified(signed_text(body), trusted())


def test_manifests_with_one_version_have_an_order():
    early, late = make(issued_s=1.0), make(issued_s=2.0)
    assert early.rank < late.rank < make(4, issued_s=0.0).rank
    other = make(issued_s=1.0, files={"account.ring.gz": ENTRY})
    assert other.rank != early.rank


def test_keys_survive_their_files():
    key = new_private_key()
    assert parse_private_key(render_private_key(key)) == key
    both = trusted(key, KEY, cluster="abc")
    assert parse_trusted_keys(render_trusted_keys(both)) == both
    assert parse_trusted_keys("# keys of the layout\n\n" + render_trusted_keys(both)) == both


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cluster c1\n",
        render_trusted_keys(trusted()).split("\n", 1)[1],
        "cluster a\n" + render_trusted_keys(trusted()),
        "cluster a b\n" + render_trusted_keys(trusted()).split("\n", 1)[1],
        "cluster c1\nAAAA\n",
        "cluster c1\n" + "!" * 44,
        "cluster c1\n" + "#" * 70_000,
    ],
)
def test_files_without_cluster_or_keys_are_refused(text):
    with pytest.raises(LayoutError):
        parse_trusted_keys(text)


@pytest.mark.parametrize("text", ["", "AAAA", render_private_key(KEY) * 2])
def test_a_file_without_one_private_key_is_refused(text):
    with pytest.raises(LayoutError):
        parse_private_key(text)
