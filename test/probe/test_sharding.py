"""Real daemons, ours or the peer's, split a container; both proxies list all of it at every moment."""

import json
import re
import subprocess
import time

import pytest

from swift.aio.make import make_cluster
from swift.aio.supervisor import accepts_connections
from test.support.cluster import LiveCluster
from test.support.databases import rows_of
from test.support.peer import can_hide_etc, environment, needs_peer, peer_command, run, run_peer
from test.support.processes import free_ports

NODES = 3
NAMES = [f"o{number:02d}" for number in range(40)]
OPTIONS = (
    "auto_shard = true\nshard_container_threshold = 30\nrows_per_shard = 12\nminimum_shard_size = 4\n"
    "shrink_threshold = 3\nexpansion_limit = 20\n"
)
OF_THE_PEER = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]


@pytest.fixture
def cluster(tmp_path):
    cluster = LiveCluster(tmp_path, nodes=NODES, proxy_workers=0)
    make_cluster(cluster.plan)
    for conf in cluster.plan.etc.glob("container-server/*.conf"):
        text = re.sub(r"(\[container-sharder\]\n)", rf"\1{OPTIONS}", conf.read_text())
        conf.write_text(text.replace("databases_per_second = 10", "databases_per_second = 50"))
    cluster.start()
    yield cluster
    cluster.stop()


def fill(cluster):
    headers = {"X-Container-Sharding": "on"}
    assert cluster.request("PUT", "c", headers={"X-Container-Meta-Hue": "grün".encode()}).status == 201
    assert cluster.request("POST", "c", headers=headers, user="admin:admin").status == 204
    for name in NAMES:
        assert cluster.request("PUT", f"c/{name}", body=b"x").status == 201
    await_listing(cluster, NAMES)


def listed(cluster, query=""):
    response = cluster.request("GET", f"c?format=json{query}")
    assert response.status == 200
    return [row["name"] for row in json.loads(response.body)]


def await_listing(cluster, wanted, query=""):
    """Wait until the listing shows the expected names, whichever replica serves it."""
    cluster.await_true(
        lambda: all(listed(cluster, query) == wanted for _ in range(2 * NODES)), f"it lists as {wanted}", 60
    )


def root_files(cluster):
    """Return the root's database files on every node: two in a directory during a split."""
    return [path for path in cluster.files("containers/*/*/*/*.db") if is_root(path)]


def is_root(path):
    return rows_of(path, "SELECT container FROM container_info") == [("c",)]


def root_listings(cluster):
    """Return the number of root listings that container servers served, without those of audits."""
    lines = [
        line for path in cluster.plan.logs.glob("container-*.log") for line in path.read_text().splitlines()
    ]
    asked = [line for line in lines if re.search(r'"GET /[^"]*/AUTH_test/c"', line)]
    return sum("states=auditing" not in line for line in asked)


def is_split(cluster):
    """Return True if every replica of the root has one file, named by an epoch."""
    files = root_files(cluster)
    nodes = {path.parent for path in files}
    return len(files) == len(nodes) == NODES and all("_" in path.name for path in files)


@pytest.fixture
def strongly_listing(cluster):
    """The same cluster with strong listings."""
    (conf,) = cluster.plan.etc.glob("proxy-server*.conf")
    text = conf.read_text()
    conf.write_text(text.replace("[app:proxy-server]\n", "[app:proxy-server]\nstrong_listing = all\n"))
    assert conf.read_text() != text
    cluster.kill("proxy")
    cluster.restart("proxy")
    return cluster


@pytest.mark.long
def test_every_acknowledged_name_is_listed_during_a_split_without_some_servers(strongly_listing):
    cluster, there, turn = strongly_listing, set(), 0
    fill(cluster)
    there.update(NAMES)

    def is_done():
        nonlocal turn
        turn += 1
        away = f"container-{turn % NODES + 1}"
        if turn % 4 == 0:
            cluster.kill(away)
        for name in (f"p{turn:03d}", f"q{turn:03d}"):
            if cluster.request("PUT", f"c/{name}", body=b"x").status == 201:
                there.add(name)
        gone = f"p{turn - 3:03d}"
        if cluster.request("DELETE", f"c/{gone}").status == 204:
            there.discard(gone)
        found = cluster.request("GET", "c?format=json")
        if found.status == 200:
            names = {row["name"] for row in json.loads(found.body)}
            assert there <= names, sorted(there - names)
            assert gone not in names
        if turn % 4 == 0:
            cluster.restart(away)
        return turn >= 12 and found.status == 200 and is_split(cluster)

    cluster.await_true(is_done, "the container is split on every node", 120)
    names = listed(cluster)
    folded = json.loads(cluster.request("GET", "c?format=json&delimiter=1").body)
    expected = {name[: name.index("1") + 1] if "1" in name else name for name in names}
    assert [row.get("name") or row["subdir"] for row in folded] == sorted(expected)


@pytest.mark.long
def test_a_container_is_split_under_load(cluster):
    fill(cluster)
    started_s = time.monotonic()
    more = []

    def is_done():
        if len(more) < 200:
            name = f"p{len(more):03d}"
            assert cluster.request("PUT", f"c/{name}", body=b"x").status == 201
            more.append(name)
        assert set(NAMES) <= set(listed(cluster))
        return is_split(cluster)

    cluster.await_true(is_done, "the container is split on every node", 120)
    print(f"split after {time.monotonic() - started_s:.1f} s, {len(more)} objects came meanwhile")
    expected = sorted([*NAMES, *more])
    await_listing(cluster, expected)
    # From the root's response, and from the cached shard ranges.
    await_listing(cluster, ["o12", "o13", "o14"], "&limit=3&marker=o11")
    await_listing(cluster, ["o10", "o09", "o08", "o07"], "&limit=4&marker=o11&reverse=true")
    await_listing(cluster, expected[12:31], "&marker=o11&end_marker=o31")
    await_listing(cluster, expected[:-4:-1], "&reverse=true&limit=3")
    await_listing(cluster, expected[20:30], "&prefix=o2")

    def is_listed_without_the_root():
        asked = root_listings(cluster)
        is_whole = listed(cluster) == expected == cluster.request("GET", "c").body.decode().split()
        return is_whole and root_listings(cluster) == asked

    # As soon as no shard is being split or merged.
    cluster.await_true(is_listed_without_the_root, "the root is not asked again for its shards", 30)
    head = cluster.request("HEAD", "c").headers
    plain = cluster.request("GET", "c")
    kept = ("x-timestamp", "last-modified", "x-storage-policy", "x-container-meta-hue")
    assert [plain.headers.get(name) for name in kept] == [head.get(name) for name in kept]
    assert cluster.request("GET", "c?limit=20000").status == 412
    await_listing(cluster, expected[:2], "&limit=2")
    cluster.await_true(
        lambda: cluster.request("HEAD", "c").headers["x-container-object-count"] == str(len(expected)),
        "shards have told the root how many objects there are",
        60,
    )
    assert cluster.request("DELETE", "c").status == 409
    for name in expected:
        assert cluster.request("DELETE", f"c/{name}").status == 204
    cluster.await_true(lambda: cluster.request("DELETE", "c").status == 204, "the empty container goes", 90)
    assert "Traceback" not in cluster.log_text()


@pytest.mark.parametrize("sharder", [pytest.param(who, marks=OF_THE_PEER) for who in ("ours", "peer")])
def test_both_kinds_of_servers_read_a_split_container(cluster, sharder):
    if sharder == "peer":
        for node in cluster.plan.node_numbers():
            cluster.kill(f"daemons-{node}")
    fill(cluster)
    if sharder == "peer":
        for _ in range(12):
            for node in cluster.plan.node_numbers():
                conf = cluster.plan.etc / "container-server" / f"{node}.conf"
                said = run_peer("swift-container-sharder", conf, "once", "-v", swift_dir=cluster.plan.etc)
            if is_split(cluster):
                break
        assert is_split(cluster), said[-3000:]
    else:
        cluster.await_true(lambda: is_split(cluster), "the container is split on every node", 120)
    cluster.kill("proxy")
    cluster.restart("proxy")
    await_listing(cluster, NAMES)
    assert cluster.request("PUT", "c/o05x", body=b"x").status == 201
    await_listing(cluster, sorted([*NAMES, "o05x"]))
    (port,) = free_ports(1)
    conf = cluster.plan.root / "peer-proxy.conf"
    text = (cluster.plan.etc / "proxy-server.conf").read_text()
    conf.write_text(text.replace(f"bind_port = {cluster.plan.proxy_port}", f"bind_port = {port}"))
    with open(cluster.plan.logs / "peer-proxy.txt", "ab") as log:
        words = peer_command("swift-proxy-server", conf, "-v", swift_dir=cluster.plan.etc)
        child = subprocess.Popen(words, stdout=log, stderr=log, env=environment(), start_new_session=True)
    try:
        cluster.await_true(lambda: accepts_connections(cluster.plan.ip, port), "the peer's proxy answers", 60)
        token = {"X-Auth-Token": cluster.token()}
        for query in ("", "&limit=5&marker=o20", "&reverse=true", "&prefix=o1"):
            path = f"/v1/AUTH_test/c?format=json{query}"
            theirs = json.loads(cluster.raw("GET", path, token, port=port).body)
            ours = json.loads(cluster.raw("GET", path, token).body)
            assert theirs == ours
        assert cluster.raw("PUT", "/v1/AUTH_test/c/by-peer", token, b"x", port=port).status == 201
        cluster.await_true(lambda: "by-peer" in listed(cluster), "what the peer's proxy wrote is listed", 30)
    finally:
        child.terminate()
        child.wait(20)


def rows_in(paths):
    """Return the number of object rows in each database itself."""
    return [
        count for path in paths for (count,) in rows_of(path, "SELECT COUNT(*) FROM object WHERE deleted = 0")
    ]


@pytest.mark.long
@pytest.mark.parametrize("sharder", ["ours", pytest.param("peer", marks=OF_THE_PEER)])
def test_both_kinds_of_servers_read_a_collapsed_container(cluster, sharder):
    fill(cluster)
    cluster.await_true(lambda: is_split(cluster), "the container is split on every node", 120)
    await_listing(cluster, NAMES)
    gone, expected = NAMES[::2], NAMES[1::2]
    for name in gone:
        assert cluster.request("DELETE", f"c/{name}").status == 204
    await_listing(cluster, expected)
    sizes = ["--shrink-threshold", "1000", "--expansion-limit", "2000", "--max-shrinking", "9"]
    words = ["compact", *sizes, "-y"]
    if sharder == "peer":
        for node in cluster.plan.node_numbers():
            cluster.kill(f"daemons-{node}")
        etc = cluster.plan.etc
        said = run_peer("swift-manage-shard-ranges", root_files(cluster)[0], *words, swift_dir=etc)
        for daemon in ("replicator", "sharder", "sharder", "replicator"):
            for node in cluster.plan.node_numbers():
                conf = etc / "container-server" / f"{node}.conf"
                said += run_peer(f"swift-container-{daemon}", conf, "once", "-v", swift_dir=etc)
    else:
        said = run("swift-manage-shard-ranges", root_files(cluster)[0], *words).stdout
    assert "can be compacted into acceptor shard range:\n  'AUTH_test/c'" in said, said

    def is_whole():
        assert set(expected) <= set(listed(cluster))
        return rows_in(root_files(cluster)) == [len(expected)] * NODES

    assert cluster.request("PUT", "c/new", body=b"x").status == 201
    assert cluster.request("DELETE", "c/new").status == 204
    cluster.await_true(is_whole, "the root has all rows itself", 120)
    cluster.kill("proxy")
    cluster.restart("proxy")
    await_listing(cluster, expected)
    assert cluster.request("HEAD", "c").headers["x-container-object-count"] == str(len(expected))
    for name in expected:
        assert cluster.request("DELETE", f"c/{name}").status == 204
    cluster.await_true(lambda: cluster.request("DELETE", "c").status == 204, "the empty container goes", 60)
    assert "Traceback" not in cluster.log_text()
