"""An agent takes the newest layout that it can verify, mends its files, and says what is wrong."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from swift.base.errors import ConfigError
from swift.cluster.transport import NodeAddress
from swift.layout.fetching import FetchFailed, LayoutClient, fetch_layout, fetch_missing, parse_servers
from swift.ring.layoutfiles import LayoutFolder
from swift.ring.manifest import FileEntry, Manifest, is_ring, sign
from test.support.layoutnodes import PORT, LayoutNodes, ip_of


@pytest.fixture
def nodes(tmp_path):
    """Three nodes that have version 1."""
    made = LayoutNodes(tmp_path, 3)
    made.first = made.publish()
    made.run_all()
    made.run_all()
    assert made.versions() == {0: 1, 1: 1, 2: 1}
    return made


def test_a_published_layout_reaches_all_nodes(nodes):
    files = nodes.publish()
    counts, page = nodes.run(1)
    assert counts == {"installed": 1}
    assert (page["version"], page["changed"], page["error"]) == (2, [], "")
    assert page["id"] == LayoutFolder(str(nodes.folders[0])).installed().manifest.id
    assert nodes.has(1, files)
    assert nodes.run(1)[0] == {}


def test_a_file_comes_from_any_node_that_has_it(nodes):
    files = nodes.publish()
    nodes.install(2, nodes.manifest(), files)
    nodes.network.liars[0] = lambda path, body: body if path.endswith("manifest") else b"garbage"
    assert nodes.run(1)[1]["version"] == 2
    assert nodes.has(1, files)


def test_an_idle_pass_asks_for_manifests_only(nodes):
    nodes.network.requests.clear()
    nodes.run(1)
    assert len(nodes.network.requests) == 3
    assert {path for _source, _target, path in nodes.network.requests} == {"/.layout/manifest"}


def test_a_node_without_public_keys_asks_for_nothing(nodes):
    (nodes.folders[1] / "layout.pub").unlink()
    nodes.network.requests.clear()
    nodes.publish()
    counts, page = nodes.run(1)
    assert (counts, page["version"], page["error"]) == ({}, 0, "")
    assert not nodes.network.requests
    assert nodes.has(1, nodes.first)


def test_an_older_layout_is_never_taken_back(nodes):
    old = nodes.manifest()
    new = nodes.publish()
    nodes.run_all()
    for number in (0, 2):
        nodes.network.liars[number] = lambda path, body: old if path.endswith("manifest") else body
    assert nodes.run(1)[1]["version"] == 2
    # Not even by a node that lost its manifest.
    (nodes.folders[1] / "layout.manifest").unlink()
    assert nodes.run(1)[1]["version"] == 0
    assert nodes.has(1, new)
    nodes.network.liars.clear()
    assert nodes.run(1)[1]["version"] == 2


def test_a_node_with_an_older_manifest_from_a_backup_follows(nodes):
    old = nodes.manifest()
    new = nodes.publish()
    nodes.run_all()
    (nodes.folders[1] / "layout.manifest").write_bytes(old)
    counts, page = nodes.run(1)
    assert (counts, page["version"]) == ({"installed": 1}, 2)
    assert nodes.has(1, new)


@pytest.mark.parametrize(
    "lie",
    [
        lambda _path, _body: b"",
        lambda _path, body: body[:-1],
        lambda _path, body: body + b"x" * 300_000,
        lambda _path, _body: os.urandom(1000),
        lambda _path, body: body.replace(b'"version": 2', b'"version": 3'),
    ],
)
def test_a_node_that_serves_garbage_does_no_harm(nodes, lie):
    files = nodes.publish()
    nodes.network.liars[2] = lie
    nodes.install(0, nodes.manifest(), files)
    for _ in range(3):
        _counts, page = nodes.run(1)
    assert page["version"] == 2
    assert nodes.has(1, files)


def test_a_server_that_sends_other_files_is_asked_for_one_only(nodes):
    files = nodes.publish()
    nodes.install(2, nodes.manifest(), files)
    nodes.network.liars[0] = lambda _path, _body: b""
    folder, servers = (
        nodes.folders[1],
        [NodeAddress(ip_of(number), PORT, str(number)) for number in (0, 1, 2)],
    )
    client = LayoutClient(nodes.network.of(1), "x", nodes.agents[1].settings)
    installation = LayoutFolder(str(folder)).open(nodes.manifest())
    nodes.network.requests.clear()
    fetch_missing(client, installation, servers, random.Random(1))
    assert not installation.missing()
    asked = Counter(target for _source, target, _path in nodes.network.requests)
    assert asked[0] == 1 and asked[1] <= 1 and asked[2] == len(files)


def test_a_layout_of_another_key_is_refused_and_named(nodes, tmp_path):
    trusted = LayoutFolder(str(nodes.folders[0])).trusted_keys()
    forged = sign(Manifest(trusted.cluster, 9, 1.0, {"account.ring.gz": FileEntry.of(b"")}), bytes(32))
    nodes.network.liars[2] = lambda path, body: forged
    counts, page = nodes.run(1)
    assert counts == {"refused": 1}
    assert f"the layout of {ip_of(2)}:{PORT} is refused" in page["error"]
    assert "not in layout.pub" in page["error"]
    assert page["version"] == 1


def test_a_signed_layout_that_cannot_be_used_is_not_fetched_at_each_pass(nodes):
    trusted = LayoutFolder(str(nodes.folders[0])).trusted_keys()
    files = {**nodes.first, "account.ring.gz": b"no ring"}
    data = sign(
        Manifest(trusted.cluster, 9, 1.0, {name: FileEntry.of(each) for name, each in files.items()}),
        nodes.key,
    )
    nodes.network.liars[2] = lambda path, body: data if path.endswith("manifest") else body
    for name, each in files.items():
        (nodes.folders[2] / name).write_bytes(each)
    by_digest = {f"/.layout/{FileEntry.of(each).sha256}": each for each in files.values()}
    handle = nodes.network.pages[2].handle

    class Pages:
        def handle(self, request):
            response = handle(request)
            if request.raw_path in by_digest:
                response.status, response.body = 200, by_digest[request.raw_path]
            return response

    nodes.network.pages[2] = Pages()
    counts, page = nodes.run(1)
    assert counts == {"refused": 1}
    assert "account.ring.gz of layout version 9" in page["error"]
    assert nodes.has(1, nodes.first)
    nodes.network.requests.clear()
    assert nodes.run(1)[0] == {}
    assert "is tried again later" in nodes.run(1)[1]["error"]
    assert all(path == "/.layout/manifest" for _, _, path in nodes.network.requests)
    tries = sum(nodes.run(1)[0].get("refused", 0) for _ in range(20))
    assert 1 <= tries <= 2
    # A later layout is taken.
    nodes.network.liars.clear()
    nodes.network.pages[2] = nodes.network.pages[0]
    for _ in range(9):
        files = nodes.publish()
    assert nodes.run(1)[1]["version"] == 10
    assert nodes.has(1, files)


# --- files of a node --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["object.ring.gz", "account.builder"])
@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(b"damaged")])
def test_a_missing_or_damaged_file_is_restored(nodes, name, spoil):
    spoil(nodes.folders[1] / name)
    counts, page = nodes.run(1)
    assert counts == {"restored": 1}
    assert (page["changed"], page["error"]) == ([], "")
    assert nodes.has(1, nodes.first)


def test_a_file_that_was_changed_by_hand_stays_until_the_next_version(nodes, tmp_path):
    second = nodes.publish()
    path = nodes.folders[1] / "object.ring.gz"
    nodes.network.away |= {0, 2}
    path.write_bytes(second["object.ring.gz"])
    counts, page = nodes.run(1)
    assert page["changed"] == ["object.ring.gz"]
    assert path.read_bytes() == second["object.ring.gz"]
    nodes.network.away.clear()
    assert nodes.run(1)[1]["changed"] == []
    assert nodes.has(1, second)


def test_a_node_whose_rings_are_all_damaged_finds_others_by_its_builders(nodes):
    for name in nodes.first:
        if is_ring(name):
            (nodes.folders[1] / name).write_bytes(b"damaged")
    nodes.restart(1)
    assert nodes.run(1)[0] == {"restored": 1}
    assert nodes.has(1, nodes.first)


def test_a_damaged_manifest_is_replaced(nodes):
    (nodes.folders[1] / "layout.manifest").write_bytes(b"damaged")
    counts, page = nodes.run(1)
    assert counts == {"installed": 1}
    assert page["version"] == 1
    assert nodes.manifest(1) == nodes.manifest(0)


def test_damaged_public_keys_are_reported_and_nothing_is_done(nodes):
    (nodes.folders[1] / "layout.pub").write_text("damaged")
    nodes.publish()
    counts, page = nodes.run(1)
    assert counts == {"errors": 1}
    assert "layout.pub: " in page["error"]
    assert nodes.has(1, nodes.first)


def test_an_error_of_the_disk_is_reported_and_tried_again(nodes):
    files = nodes.publish()
    staged = nodes.folders[1] / "layout.staged"
    staged.rmdir()
    staged.write_text("in the way")
    counts, page = nodes.run(1)
    assert counts == {"errors": 1}
    assert "cannot bring the layout up to date" in page["error"]
    assert nodes.has(1, nodes.first)
    staged.unlink()
    assert nodes.run(1)[1]["error"] == ""
    assert nodes.has(1, files)


def test_a_node_that_reaches_no_other_says_so(nodes):
    nodes.network.away |= {0, 1, 2}
    assert nodes.run(1)[1]["error"] == "no storage server responds"


# --- nodes without rings ----------------------------------------------------------------------------


def test_a_new_node_gets_rings_from_its_seeds(nodes):
    nodes.options["seeds"] = (f"{ip_of(2)}:{PORT}", f"{ip_of(0)}:{PORT}")
    nodes.add_node(7, rings=False)
    assert nodes.run(7)[1]["version"] == 1
    assert nodes.has(7, nodes.first)


def test_a_new_node_fetches_a_layout_from_named_servers(nodes):
    second = nodes.publish()
    nodes.add_node(7, rings=False)
    client = LayoutClient(nodes.network.of(7), "swift-layout", None)
    servers = [NodeAddress(ip_of(number), PORT, f"n{number}") for number in (1, 0)]
    assert fetch_layout(str(nodes.folders[7]), client, servers).version == 2
    assert nodes.has(7, second)
    nodes.network.away |= {0, 1}
    with pytest.raises(FetchFailed, match="n0 does not respond"):
        fetch_layout(str(nodes.folders[7]), client, servers)


@pytest.mark.parametrize("word", ["", "10.0.0.1", "10.0.0.1:", "10.0.0.1:x", ":6202", "10.0.0.1:99999"])
def test_seeds_are_addresses_with_ports(word):
    with pytest.raises(ConfigError, match="is not IP:PORT"):
        parse_servers([word])


def test_seeds_may_be_names_or_ipv6_addresses():
    assert parse_servers(["[::1]:6202", "host:6200"]) == [
        NodeAddress("::1", 6202, "[::1]:6202"),
        NodeAddress("host", 6200, "host:6200"),
    ]
