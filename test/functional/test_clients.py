"""Real clients against a real cluster: the swift command line and curl."""

import hashlib
import os
import random
import shutil
import socket
import subprocess
import time

import pytest

from swift.aio.make import make_cluster
from test.support.cluster import LiveCluster


@pytest.fixture(scope="module")
def swift(cluster, swift_client):
    return lambda *args, **more: swift_client(cluster, *args, **more)


def write_tree(root):
    """Write files with unusual names, empty files and nested folders; return name → content."""
    rng = random.Random(11)
    files = {
        "empty": b"",
        "a b": b"space",
        "ü/ö ä.txt": "ü".encode(),
        "100%": b"percent",
        "d/e/f?g#h&i": b"deep",
    }
    files |= {f"many/{n:03d}": rng.randbytes(rng.randrange(5000)) for n in range(20)}
    files["large"] = rng.randbytes(700_000)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return files


def test_a_directory_tree_is_uploaded_and_downloaded_unchanged(swift, cluster, tmp_path):
    files = write_tree(tmp_path / "up")
    swift("upload", "tree", ".", cwd=tmp_path / "up")
    assert sorted(swift("list", "tree").stdout.splitlines()) == sorted(files)
    (tmp_path / "down").mkdir()
    swift("download", "tree", cwd=tmp_path / "down")
    found = {str(p.relative_to(tmp_path / "down")): p for p in (tmp_path / "down").rglob("*") if p.is_file()}
    assert {name: path.read_bytes() for name, path in found.items()} == files
    stat = swift("stat", "tree").stdout
    assert f"Objects: {len(files)}" in stat
    assert f"Bytes: {sum(map(len, files.values()))}" in stat
    assert hashlib.md5(files["large"]).hexdigest() in swift("stat", "tree", "large").stdout


def test_listing_by_prefix_and_delimiter(swift, tmp_path):
    for name in ("a/1", "a/2", "b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    swift("upload", "prefixes", ".", cwd=tmp_path)
    assert swift("list", "prefixes", "--delimiter", "/").stdout.split() == ["a/", "b"]
    assert swift("list", "prefixes", "--prefix", "a/").stdout.split() == ["a/1", "a/2"]
    assert "prefixes" in swift("list").stdout.split()


def test_metadata_is_posted_and_seen(swift, tmp_path):
    (tmp_path / "o").write_text("x")
    swift("upload", "meta", "o", cwd=tmp_path)
    swift("post", "meta", "o", "-m", "Color:blue")
    assert "Meta Color: blue" in swift("stat", "meta", "o").stdout
    swift("post", "meta", "-m", "Shelf:7", "-r", ".r:*")
    stat = swift("stat", "meta").stdout
    assert "Meta Shelf: 7" in stat
    assert "Read ACL: .r:*" in stat
    swift("post", "-m", "Book:x")
    assert "Meta Book: x" in swift("stat").stdout


def test_deleting_an_object_and_a_full_container(swift, tmp_path):
    for n in range(5):
        (tmp_path / str(n)).write_text("x")
    swift("upload", "gone", ".", cwd=tmp_path)
    swift("delete", "gone", "3")
    assert swift("list", "gone").stdout.split() == ["0", "1", "2", "4"]
    swift("delete", "gone")
    assert swift("list", "gone", check=False).returncode != 0


@pytest.mark.parametrize(
    ("kind", "header"), [("--use-dlo", "x-object-manifest"), ("--use-slo", "x-static-large-object")]
)
def test_a_segmented_upload_is_one_object(swift, cluster, tmp_path, kind, header):
    data = random.Random(3).randbytes(1_000_003)
    (tmp_path / "big").write_bytes(data)
    swift("upload", "segmented", "big", kind, "--segment-size", "100000", cwd=tmp_path)
    head = cluster.request("HEAD", "segmented/big")
    assert header in head.headers
    assert head.headers["content-length"] == str(len(data))
    assert len(swift("list", "segmented_segments").stdout.split()) == 11
    swift("download", "segmented", "big", "-o", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data
    part = cluster.request("GET", "segmented/big", {"Range": "bytes=99990-300010"})
    assert (part.status, part.body) == (206, data[99990:300011])
    swift("delete", "segmented", "big")
    assert swift("list", "segmented_segments").stdout.split() == []


# --- curl ---------------------------------------------------------------------------------------------

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs the curl command")


def curl(*args, data=None):
    done = subprocess.run(["curl", "-sS", *args], input=data, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def digits(cluster):
    cluster.request("PUT", "digits")
    cluster.request("PUT", "digits/o", {"Content-Type": "text/plain"}, b"0123456789" * 10)
    return ["-H", f"X-Auth-Token: {cluster.token()}", f"{cluster.plan.storage_url}/digits/o"]


@needs_curl
@pytest.mark.parametrize(
    ("asked", "body"),
    [
        ("0-3", b"0123"),
        ("95-", b"56789"),
        ("-3", b"789"),
        ("50-9999", b"0123456789" * 5),
        ("-9999", b"0123456789" * 10),
    ],
)
def test_curl_reads_ranges(digits, asked, body):
    assert curl("-r", asked, *digits) == body


@needs_curl
def test_curl_reads_several_ranges_byte_exactly(digits):
    received = curl("-i", "-r", "0-3,-2", *digits)
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"206 Partial Content" in head
    boundary = head.split(b"boundary=")[1].split(b"\r\n")[0]
    parts = [(b"0-3", b"0123"), (b"98-99", b"89")]
    expected = b"".join(
        b"--%s\r\nContent-Type: text/plain\r\nContent-Range: bytes %s/100\r\n\r\n%s\r\n"
        % (boundary, where, data)
        for where, data in parts
    )
    assert body == expected + b"--%s--" % boundary


@needs_curl
def test_curl_uploads_from_a_pipe_and_a_large_file_with_expectation(cluster, tmp_path):
    cluster.request("PUT", "curled")
    auth = ["-H", f"X-Auth-Token: {cluster.token()}"]
    url = f"{cluster.plan.storage_url}/curled"
    curl("-T", "-", *auth, f"{url}/piped", data=b"from a pipe" * 1000)
    assert cluster.request("GET", "curled/piped").body == b"from a pipe" * 1000
    data = os.urandom(3_000_000)
    (tmp_path / "f").write_bytes(data)
    curl("-T", str(tmp_path / "f"), "-H", "Expect: 100-continue", *auth, f"{url}/large")
    assert curl(*auth, f"{url}/large") == data
    assert curl("--http1.0", *auth, f"{url}/large") == data


# --- ACLs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(cluster):
    cluster.request("PUT", "shared")
    cluster.request("PUT", "shared/o", {}, b"x")
    return cluster


def statuses(cluster, user):
    """Return a user's statuses for the object, the listing, an upload and a container POST."""
    asked = (("GET", "shared/o"), ("GET", "shared"), ("PUT", "shared/new"), ("POST", "shared"))
    if user is None:
        return [cluster.raw(m, f"/v1/AUTH_test/{p}", {"Content-Length": "0"}).status for m, p in asked]
    return [cluster.request(m, p, {"Content-Length": "0"}, user=user).status for m, p in asked]


@pytest.mark.parametrize(
    ("read", "write", "user", "expected"),
    [
        ("", "", "test:tester3", [403, 403, 403, 403]),
        ("", "", "test2:tester2", [403, 403, 403, 403]),
        ("", "", None, [401, 401, 401, 401]),
        ("test2", "", "test2:tester2", [200, 200, 403, 403]),
        ("test2:tester2", "", "test2:tester2", [200, 200, 403, 403]),
        ("test2:other", "", "test2:tester2", [403, 403, 403, 403]),
        ("", "test2", "test2:tester2", [403, 403, 201, 403]),
        ("test", "test", "test:tester3", [200, 200, 201, 403]),
        (".r:*", "", None, [200, 401, 401, 401]),
        (".r:*,.rlistings", "", None, [200, 200, 401, 401]),
        (".r:*,.rlistings", "", "test2:tester2", [200, 200, 403, 403]),
        ("", "", "admin:admin", [200, 200, 201, 204]),
    ],
)
def test_container_acls_decide_the_rights_of_other_users(shared, read, write, user, expected):
    shared.request("POST", "shared", {"X-Container-Read": read, "X-Container-Write": write})
    assert [200 if s == 204 and i == 1 else s for i, s in enumerate(statuses(shared, user))] == expected


def test_a_referrer_can_be_excluded(shared):
    shared.request("POST", "shared", {"X-Container-Read": ".r:*,.r:-bad.com,.r:.ok.com"})
    for referer, status in ((None, 200), ("http://bad.com/x", 401), ("http://sub.ok.com/x", 200)):
        headers = {"Referer": referer} if referer else {}
        assert shared.raw("GET", "/v1/AUTH_test/shared/o", headers).status == status


def test_owner_headers_are_for_owners_only(shared):
    shared.request("POST", "shared", {"X-Container-Read": "test2"})
    assert shared.request("HEAD", "shared").headers["x-container-read"] == "test2"
    assert "x-container-read" not in shared.request("HEAD", "shared", user="test2:tester2").headers


def test_account_acls_share_an_account(cluster):
    acl = '{"read-only":["test2:tester2"]}'
    assert cluster.request("POST", "", {"X-Account-Access-Control": acl}).status == 204
    try:
        assert cluster.request("GET", "", user="test2:tester2").status in (200, 204)
        assert cluster.request("PUT", "not-mine", user="test2:tester2").status == 403
        assert cluster.request("HEAD", "").headers["x-account-access-control"] == acl
    finally:
        cluster.request("POST", "", {"X-Account-Access-Control": "{}"})
    assert cluster.request("GET", "", user="test2:tester2").status == 403


# --- expiry -------------------------------------------------------------------------------------------


def test_an_object_expires(cluster):
    cluster.request("PUT", "expiring")
    assert cluster.request("PUT", "expiring/o", {"X-Delete-After": "1"}, b"x").status == 201
    cluster.await_true(lambda: cluster.request("GET", "expiring/o").status == 404, "the object is gone")
    assert cluster.request("HEAD", "expiring/o").status == 404
    assert cluster.request("POST", "expiring/o").status == 404


def test_internal_headers_never_leave_the_cluster(cluster):
    cluster.request("PUT", "inside")
    cluster.request("PUT", "inside/o", {"X-Object-Meta-A": "b", "X-Delete-After": "1000"}, b"x")
    for method in ("GET", "HEAD"):
        for path in ("", "inside", "inside/o", "nope/o"):
            for name in cluster.request(method, path).headers:
                assert not name.startswith(("x-backend", "x-object-sysmeta", "x-container-sysmeta")), (
                    path,
                    name,
                )
                assert name not in ("x-container-host", "x-delete-at-host", "x-account-host"), (path, name)


def test_a_client_cannot_choose_timestamps_or_policies_by_internal_headers(cluster):
    cluster.request("PUT", "inside")
    old = {"X-Timestamp": "1000000000.00000", "X-Backend-Storage-Policy-Index": "7"}
    assert cluster.request("PUT", "inside/chosen", old, b"x").status == 201
    head = cluster.request("HEAD", "inside/chosen")
    assert float(head.headers["x-timestamp"]) > time.time() - 3600


# --- what operators see -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A cluster whose proxy sends statsd packets to the test."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    live = LiveCluster(tmp_path_factory.mktemp("watched") / "data")
    make_cluster(live.plan)
    conf = live.plan.etc / "proxy-server.conf"
    options = f"log_statsd_host = 127.0.0.1\nlog_statsd_port = {sock.getsockname()[1]}\n"
    options += "log_statsd_metric_prefix = here\n"
    conf.write_text(conf.read_text().replace("[DEFAULT]\n", "[DEFAULT]\n" + options))
    live.start()
    live.packets = Packets(sock)
    yield live
    live.stop()
    sock.close()


class Packets:
    """All packets that a UDP socket has received so far."""

    def __init__(self, sock):
        self._sock = sock
        self._texts = []

    def texts(self):
        while True:
            try:
                self._texts.append(self._sock.recv(4096).decode())
            except BlockingIOError:
                return self._texts


def test_statsd_packets_report_the_requests(watched):
    watched.request("PUT", "c")
    watched.request("PUT", "c/o", {}, b"12345")
    watched.request("GET", "c/o")
    watched.request("GET", "c/none")

    def arrived(start, end=""):
        return any(t.startswith(start) and t.endswith(end) for t in watched.packets.texts())

    prefix = "here.proxy-server."
    for start, end in (
        (f"{prefix}object.PUT.201.timing:", "|ms"),
        (f"{prefix}object.PUT.201.xfer:5|c", ""),
        (f"{prefix}object.GET.200.first-byte.timing:", "|ms"),
        (f"{prefix}object.GET.200.xfer:5|c", ""),
        (f"{prefix}object.GET.404.timing:", "|ms"),
        (f"{prefix}object.policy.0.GET.200.timing:", "|ms"),
        (f"{prefix}container.PUT.201.timing:", "|ms"),
        (f"{prefix}memcached.set.timing:", "|ms"),
    ):
        watched.await_true(lambda s=start, e=end: arrived(s, e), f"{start}…{end}")


def samples(page):
    """Parse Prometheus samples into (name, labels text) → value; fail on malformed lines."""
    found, types = {}, {}
    for line in page.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in types, f"{name} is declared twice"
            types[name] = kind
        elif line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            base = name.partition("{")[0]
            for suffix in ("_bucket", "_sum", "_count"):
                if types.get(base.removesuffix(suffix)) == "histogram":
                    base = base.removesuffix(suffix)
            assert base in types, f"{line} has no type"
            assert name not in found, f"{name} appears twice"
            found[name] = float(value)
    return found


def requests_counted(cluster):
    found = samples(cluster.raw("GET", "/metrics", port=cluster.plan.metrics_port("proxy")).body)
    return sum(v for name, v in found.items() if name.startswith("swift_proxy_request_seconds_count{"))


def test_every_server_has_a_metrics_page(cluster):
    plan = cluster.plan
    ports = [plan.metrics_port("proxy")]
    ports += [plan.metrics_port(kind, n) for kind in ("account", "container", "object") for n in range(1, 5)]
    for port in ports:
        response = cluster.raw("GET", "/metrics", port=port)
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert samples(response.body)
        assert cluster.raw("GET", "/", port=port).status == 404
        assert cluster.raw("POST", "/metrics", port=port).status == 405


def test_clients_cannot_read_the_metrics_page(cluster):
    for path in ("/metrics", "/%6detrics"):
        response = cluster.raw("GET", path)
        assert response.status == 412
        assert b"swift_" not in response.body


def test_the_page_counts_the_requests_of_all_workers(watched):
    time_of_last_publication = requests_counted(watched)
    for _ in range(40):
        watched.request("HEAD", "c")
    expected = time_of_last_publication + 40
    watched.await_true(lambda: requests_counted(watched) >= expected, "all requests are counted")
    pids = {
        line.split('pid="')[1].split('"')[0]
        for line in watched.raw("GET", "/metrics", port=watched.plan.metrics_port("proxy"))
        .body.decode()
        .splitlines()
        if 'pid="' in line
    }
    assert len(pids) == watched.plan.proxy_workers


def test_access_lines_have_the_fields_of_the_peer(watched):
    headers = {"Referer": "http://r/", "User-Agent": "me 1", "X-Forwarded-For": "9.8.7.6, 1.1.1.1"}
    response = watched.request(
        "PUT", "c/logged?x=y", {**headers, "Etag": hashlib.md5(b"abc").hexdigest()}, b"abc"
    )
    txid = response.headers["x-trans-id"]
    log = watched.plan.logs / "proxy.log"
    watched.await_true(lambda: txid in log.read_text(), "the line is written")
    line = next(text for text in log.read_text().splitlines() if txid in text)
    fields = line.partition(": ")[2].split(" ")
    assert len(fields) == 22
    token = watched.token()[:16]
    assert fields[:2] == ["9.8.7.6", "127.0.0.1"]
    assert time.strptime(fields[2], "%d/%b/%Y/%H/%M/%S")
    assert fields[3:9] == [
        "PUT",
        "/v1/AUTH_test/c/logged%3Fx%3Dy",
        "HTTP/1.1",
        "201",
        "http://r/",
        "me%201",
    ]
    assert fields[9:14] == [f"{token}...", "3", "-", hashlib.md5(b"abc").hexdigest(), txid]
    assert fields[14] == "-"
    assert float(fields[15]) < 10
    assert fields[16:18] == ["-", "-"]
    assert 0 <= float(fields[19]) - float(fields[18]) < 10
    assert fields[20:] == ["0", "test:tester"]


def test_a_chunked_upload_is_logged_with_its_size(watched):
    response = watched.request("PUT", "c/chunks", {}, iter([b"abc", b"defg"]))
    txid = response.headers["x-trans-id"]
    log = watched.plan.logs / "proxy.log"
    watched.await_true(lambda: txid in log.read_text(), "the line is written")
    line = next(text for text in log.read_text().splitlines() if txid in text)
    assert line.partition(": ")[2].split(" ")[10] == "7"


def test_the_last_access_lines_are_written_when_a_server_stops(watched):
    txid = watched.request("HEAD", "c").headers["x-trans-id"]
    watched.stop()
    try:
        assert txid in (watched.plan.logs / "proxy.log").read_text()
    finally:
        watched.start()
