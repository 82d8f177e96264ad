"""A storage server gives other nodes its manifest and the files that this names, and nothing else."""

from __future__ import annotations

import os

import pytest

from swift.http.request import Request
from swift.platform.devices import Devices
from swift.ring.builder import RingBuilder
from swift.ring.layoutfiles import LayoutFolder, create_keys, publish, read_private_key
from swift.ring.manifest import FileEntry
from swift.ring.ringfile import encode
from swift.runtime.backendapp import BackendApp, BackendContext
from swift.runtime.layoutpages import LayoutPages


def ring_files(name="account"):
    """The content of one small ring, as the files of a layout."""
    builder = RingBuilder(2, 1, 0)
    builder.add_device(region=1, zone=1, ip="127.0.0.1", port=6202, device="sda", weight=1)
    builder.rebalance(seed=1)
    return {f"{name}.ring.gz": encode(builder.table(), f"{name}.ring.gz")}


@pytest.fixture
def node(tmp_path):
    """A server whose node has a layout, and the folder."""
    create_keys(str(tmp_path))
    publish(str(tmp_path), read_private_key(str(tmp_path)), ring_files())
    return app_of(tmp_path), tmp_path


def app_of(folder):
    context = BackendContext(Devices("/nowhere", mount_check=False), layout=LayoutPages(str(folder)))
    return BackendApp(context)


def get(app, path, method="GET"):
    response = app.handle(Request(method, path))
    return response.status, response.read_body()


def digest_of(folder, name="account.ring.gz"):
    return FileEntry.of((folder / name).read_bytes()).sha256


def test_the_manifest_and_its_files_are_served(node):
    app, folder = node
    assert get(app, "/.layout/manifest") == (200, (folder / "layout.manifest").read_bytes())
    ring = (folder / "account.ring.gz").read_bytes()
    assert get(app, f"/.layout/{digest_of(folder)}") == (200, ring)


def test_a_new_version_is_served_at_once(node):
    app, folder = node
    old = digest_of(folder)
    assert get(app, f"/.layout/{old}")[0] == 200
    publish(str(folder), read_private_key(str(folder)), ring_files("object"))
    assert b'"version": 2' in get(app, "/.layout/manifest")[1]
    assert get(app, f"/.layout/{digest_of(folder, 'object.ring.gz')}")[0] == 200
    assert get(app, f"/.layout/{old}")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/.layout/",
        "/.layout/layout.key",
        "/.layout/layout.pub",
        "/.layout/account.ring.gz",
        "/.layout/../layout.key",
        "/.layout/%2e%2e/layout.key",
        "/.layout/manifest/",
        "/.layout//manifest",
        f"/.layout/{'0' * 64}",
    ],
)
def test_nothing_else_is_served(node, path):
    app, _folder = node
    status, body = get(app, path)
    assert status == 404
    assert b"cluster" not in body


@pytest.mark.parametrize("method", ["HEAD", "PUT", "POST", "DELETE", "REPLICATE", "OPTIONS"])
def test_it_can_only_be_read(node, method):
    assert get(node[0], "/.layout/manifest", method)[0] == 405


def test_a_file_of_another_size_is_not_served(node):
    app, folder = node
    path = f"/.layout/{digest_of(folder)}"
    with open(folder / "account.ring.gz", "ab") as file:
        file.write(b"x")
    assert get(app, path)[0] == 404
    (folder / "account.ring.gz").unlink()
    assert get(app, path)[0] == 404
    os.mkfifo(folder / "account.ring.gz")
    assert get(app, path)[0] == 503


def test_a_node_without_a_layout_has_no_pages(node, tmp_path):
    app, folder = node
    (folder / "layout.pub").unlink()
    assert get(app, "/.layout/manifest")[0] == 404
    assert get(app_of(""), "/.layout/manifest")[0] == 404


def test_a_damaged_manifest_is_not_served(node):
    app, folder = node
    data = (folder / "layout.manifest").read_bytes()
    (folder / "layout.manifest").write_bytes(data[:-1])
    status, text = get(app, "/.layout/manifest")
    assert status == 404
    assert b"signature does not match" in text
    assert LayoutFolder(str(folder)).trusted_keys() is not None
