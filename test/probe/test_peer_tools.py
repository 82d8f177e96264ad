"""Our tools and the peer's print the same output for the same rings, files, databases and servers."""

import json
import re
import shutil
import subprocess
import time

import pytest

from test.support.cluster import LoneServer
from test.support.peer import (
    SWIFT_CONF,
    ToolNode,
    can_hide_etc,
    environment,
    make_rings,
    needs_peer,
    peer_command,
    run,
)

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]

DEVICES = (
    ("127.0.0.1", 28101, "sda"),
    ("127.0.0.1", 28102, "sdb"),
    ("127.0.0.2", 28110, "sdc"),
    ("::1", 28111, "sdd"),
    ("127.0.0.1", 28104, "sde"),
)


def peer(etc, name, *words):
    """Return the exit code, output and errors of a command of the peer."""
    shutil.rmtree(etc / "hidden-etc" / "swift", ignore_errors=True)
    done = subprocess.run(
        peer_command(name, *words, swift_dir=etc),
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )
    return done.returncode, done.stdout


def ours(name, *words):
    done = run(name, *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def etc(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rings")
    (folder / "swift.conf").write_text(SWIFT_CONF)
    make_rings(folder, DEVICES)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("{etc}/object.ring.gz", "AUTH_test", "c", "o 1"),
        ("{etc}/account.ring.gz", "AUTH_test"),
        ("{etc}/container.ring.gz", "AUTH_test", "c%C3%A9", "-Q"),
        ("{etc}/container.ring.gz", "AUTH_test", "cé"),
        ("{etc}/object.ring.gz", "AUTH_test", "c"),
        ("{etc}/account.ring.gz", "a", "c", "o"),
        ("{etc}/container.ring.gz", "a"),
        ("{etc}/object-1.ring.gz", "a/c/o/p"),
        ("{etc}/object-1.ring.gz", "-p", "3"),
        ("{etc}/container.ring.gz", "-p", "3"),
        ("{etc}/object.ring.gz", "-p", "99"),
        ("-a", "-P", "silver", "AUTH_test/c/o"),
        ("-P", "grey", "/AUTH_test/c/o"),
        ("-P", "silver", "a", "c"),
        ("-P", "silver", "-p", "3"),
    ],
    ids=" ".join,
)
def test_get_nodes(etc, words):
    words = ["-d", str(etc), *(word.format(etc=etc) for word in words)]
    assert ours("swift-get-nodes", *words) == peer(etc, "swift-get-nodes", *words)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("a",),
        ("{etc}/no.ring.gz", "a"),
        ("{etc}/object.ring.gz",),
        ("-P", "no", "a"),
        ("-P", "gold", *"acox"),
    ],
    ids=" ".join,
)
def test_get_nodes_has_the_same_error_messages(etc, words):
    words = ["-d", str(etc), *(word.format(etc=etc) for word in words)]
    done = run("swift-get-nodes", *words)
    assert (done.returncode, done.stderr) == (1, peer_errors(etc, "swift-get-nodes", *words))


def peer_errors(etc, name, *words):
    done = subprocess.run(
        peer_command(name, *words, swift_dir=etc),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    return done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write an object with a POST, a tombstone, and databases by our servers: names → paths."""
    root = tmp_path_factory.mktemp("files")
    requests = {
        "object": [
            (
                "PUT",
                "/sda/11/AUTH_test/c/o%201",
                {
                    "Content-Type": "text/plain",
                    "X-Object-Meta-Color": "blue",
                    "X-Object-Sysmeta-S": "1",
                    "X-Object-Transient-Sysmeta-T": "t",
                    "X-Delete-At": "4000000000",
                },
                b"hello",
            ),
            ("POST", "/sda/11/AUTH_test/c/o%201", {"X-Object-Meta-Zoo": "v\xc3\xa9"}, None),
            ("DELETE", "/sda/11/AUTH_test/c/gone", {}, None),
        ],
        "container": [
            (
                "PUT",
                "/sda/5/AUTH_test/c",
                {
                    "X-Container-Meta-Color": "blue",
                    "X-Container-Sysmeta-S": "1",
                    "X-Container-Read": ".r:*",
                    "X-Backend-Storage-Policy-Index": "1",
                },
                None,
            ),
            (
                "PUT",
                "/sda/5/AUTH_test/c/o1",
                {
                    "X-Size": "6",
                    "X-Content-Type": "t/p",
                    "X-Etag": "e" * 32,
                    "X-Backend-Storage-Policy-Index": "1",
                },
                None,
            ),
            ("PUT", "/sda/5/AUTH_test/plain", {}, None),
        ],
        "account": [("PUT", "/sda/2/AUTH_test", {"X-Account-Meta-Color": "blue"}, None)],
    }
    # Tombstones must be younger than reclaim_age.
    written_at = int(time.time()) - 100
    for kind, each in requests.items():
        (root / kind).mkdir()
        server = LoneServer(root / kind, kind, SWIFT_CONF)
        server.start()
        try:
            for number, (method, path, headers, body) in enumerate(each):
                stamp = {"X-Timestamp": f"{written_at + 10 * number}.52472"}
                assert server.ask(method, path, {**stamp, **headers}, body).status in (201, 202, 204, 404)
        finally:
            server.kill()
    found = {path.suffix[1:]: path for path in root.glob("object/dev/sda/objects/*/*/*/*")}
    databases = sorted(root.glob("container/dev/sda/containers/*/*/*/*.db"))
    found |= {f"container{number}": path for number, path in enumerate(databases)}
    found["account"] = next(root.glob("account/dev/sda/accounts/*/*/*/*.db"))
    found["copy"] = shutil.copy(databases[0], root / "copy.db")
    found["missing"] = root / "nosuch"
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("swift-object-info", "data"),
        ("swift-object-info", "data", "-n", "--drop-prefixes"),
        ("swift-object-info", "data", "-P", "silver"),
        ("swift-object-info", "meta"),
        ("swift-object-info", "ts"),
        ("swift-object-info", "missing"),
        ("swift-object-info", "account"),
        ("swift-container-info", "container0"),
        ("swift-container-info", "container1", "-s", "--drop-prefixes"),
        ("swift-container-info", "copy"),
        ("swift-container-info", "missing"),
        ("swift-container-info", "account"),
        ("swift-account-info", "account", "-s"),
        ("swift-account-info", "container0"),
    ],
    ids=" ".join,
)
def test_info_tools(etc, files, words):
    name, file, *more = words
    words = (name, "-d", str(etc), *more, str(files[file]))
    assert ours(*words) == peer(etc, *words)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes of all servers with recon files that have content."""
    root = tmp_path_factory.mktemp("recon")
    nodes = [ToolNode(root / name) for name in ("one", "two")]
    for number, node in enumerate(nodes, 1):
        write_recon(node, number)
        (node.devices / "sda" / ".ismount").touch()
        for index in ("objects", "objects-1"):
            (node.devices / f"sda/quarantined/{index}/abc").mkdir(parents=True)
        assert node.init("main", "start").returncode == 0
    for name in ("account", "container", "object", "object-1"):
        kind = name.partition("-")[0]
        devices = [("127.0.0.1", node.ports[kind], f"sd{number}") for number, node in enumerate(nodes)]
        for node in nodes:
            make_rings(node.etc, devices, replicas=2, names=(name,))
    yield nodes
    for node in nodes:
        node.stop()


def write_recon(node, number):
    now = 1795228430.0
    passed = {
        "replication_last": now + number,
        "replication_time": 1.5 * number,
        "replication_stats": {"attempted": 10 * number, "success": 9, "failure": number},
    }
    audit = {"passes": 1, "errors": number, "quarantined": 2, "audit_time": 3.5, "bytes_processed": 1000}
    facts = {
        "object": {
            "async_pending": number * 3,
            "object_reconstruction_time": 0.5,
            "object_reconstruction_last": now + 5 * number,
            "object_updater_sweep": 3.25,
            "object_auditor_stats_ALL": {"sda": audit} if number == 1 else audit,
            "object_auditor_stats_ZBF": audit,
            "object_expiration_pass": 5.5,
            "expired_last_pass": 7,
        },
        "drive": {"drive_audit_errors": number},
    }
    for kind in ("account", "container"):
        facts[kind] = {
            f"{kind}_audits_passed": 5,
            f"{kind}_audits_failed": 1,
            f"{kind}_auditor_pass_completed": 0.25,
            f"{kind}_audits_since": now + number,
            "container_updater_sweep": 1.25,
            "sharding_stats": {"attempted": number, "failure": 0, "success": 1},
            "sharding_time": 1.5,
            "sharding_last": now + number,
        }
    for kind, values in facts.items():
        (node.recon / f"{kind}.recon").write_text(json.dumps({**values, **passed}))


def same_always(text):
    """Without the moments at which something was asked, sorted: answers come as they come.

    Ours names servers with failures and without counts as well.
    """
    lines = [
        line for line in text.splitlines() if not re.match("-> (not counted on|[0-9.:]+: [0-9]+ fail)", line)
    ]
    return sorted(re.sub(r"^\[20[^]]*\]", "[T]", line) for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        ("-a", "-r", "-R", "--auditor", "--updater", "--expirer", "-u", "-q", "--driveaudit"),
        ("--validate-servers", "-T", "--jitter", "5", "--swift-versions", "--sharding"),
        ("account", "-r", "--auditor", "-a", "--expirer"),
        ("container", "account", "--sharding", "--updater", "--auditor", "-u", "-R", "-r"),
        ("-a", "-r", "-p", "silver", "-z", "1"),
        ("-a", "--region", "7"),
    ],
    ids=" ".join,
)
def test_recon(cluster, words):
    etc = cluster[0].etc
    mine, theirs = ours("swift-recon", *words, "--swiftdir", etc), peer(etc, "swift-recon", *words)
    assert (mine[0], same_always(mine[1])) == (theirs[0], same_always(theirs[1]))


def test_recon_continues_after_servers_that_do_not_respond(cluster, tmp_path):
    shutil.copytree(cluster[0].etc, tmp_path / "etc")
    make_rings(tmp_path / "etc", [("127.0.0.1", 1, "sda")], replicas=1, names=("object",))
    done = run("swift-recon", "--all", "-p", "gold", "--swiftdir", tmp_path / "etc")
    assert done.returncode == 0
    assert "[async_pending] - No hosts returned valid data." in done.stdout
    assert "-> http://127.0.0.1:1/recon/async: " in done.stdout
    assert "0/1 hosts matched, 1 error[s] while checking hosts." in done.stdout
    facts = json.loads(run("swift-recon", "-a", "--swiftdir", cluster[0].etc, "--format", "json").stdout)
    assert facts["object"]["async_pending"]["total"] == 9


def test_recon_compares_files_by_name_wherever_servers_keep_them(cluster, tmp_path):
    done = run("swift-recon", "--md5", "--swiftdir", cluster[0].etc)
    assert done.stdout.count("2/2 hosts matched, 0 error[s] while checking hosts.") == 2
    shutil.copytree(cluster[0].etc, tmp_path / "etc")
    (tmp_path / "etc/swift.conf").write_text(SWIFT_CONF + "# another\n")
    done = run("swift-recon", "--md5", "--swiftdir", tmp_path / "etc")
    assert "0/2 hosts matched" in done.stdout
    assert "swift.conf => " in done.stdout


def test_the_peers_reload_reloads_our_servers(cluster):
    pid = cluster[0].pids()["object-server.pid"]
    code, text = peer(cluster[0].etc, "swift-reload", pid)
    assert (code, text) == (0, "Reloaded swift-object-server\n")
