"""The filters together, in real processes: tempurl, forms, static sites, archives, quotas."""

import hmac
import http.client
import io
import json
import socket
import tarfile
import time

import pytest

from swift.aio.make import make_cluster
from swift.base.hashing import PathHasher
from swift.ring.ring import Ring
from test.functional.api_cases_bulk import archive
from test.functional.api_cases_signed import ONE, form_body, form_fields, signature
from test.support.cluster import LiveCluster

LATER = "9999999999"


@pytest.fixture(scope="module")
def keyed(cluster):
    """A cluster whose test account has a key and a container ``signed``."""
    assert cluster.request("POST", "", {"X-Account-Meta-Temp-URL-Key": "mykey"}).status == 204
    cluster.request("PUT", "signed")
    return cluster


def query(method, path, **how):
    return f"temp_url_sig={signature(method, path, **how)}&temp_url_expires={how.get('expires', LATER)}"


@pytest.mark.parametrize("policy", ["gold", "ec"])
def test_a_tempurl_uploads_and_downloads_without_a_token(keyed, policy):
    keyed.request("PUT", f"links-{policy}", {"X-Storage-Policy": policy})
    path = f"/v1/AUTH_test/links-{policy}/o"
    data = bytes(range(256)) * 3000
    assert keyed.raw("PUT", f"{path}?{query('PUT', path)}", {}, data).status == 201
    response = keyed.raw("GET", f"{path}?{query('GET', path)}")
    assert (response.status, response.body) == (200, data)
    part = keyed.raw("GET", f"{path}?{query('GET', path)}", {"Range": "bytes=5-9"})
    assert (part.status, part.body) == (206, data[5:10])
    assert keyed.raw("GET", path).status == 401
    assert keyed.raw("DELETE", f"{path}?{query('GET', path)}").status == 401


def test_a_tempurl_of_a_manifest_reads_its_segments_but_no_other_account(keyed):
    keyed.request("PUT", "signed/s/1", body=b"one")
    keyed.request("PUT", "signed/s/2", body=b"two")
    keyed.request("PUT", "signed/whole", {"X-Object-Manifest": "signed/s/"}, b"")
    path = "/v1/AUTH_test/signed/whole"
    assert keyed.raw("GET", f"{path}?{query('GET', path)}").body == b"onetwo"


def test_a_tempurl_expires(keyed):
    path = "/v1/AUTH_test/signed/s/1"
    soon = int(time.time()) + 1
    link = f"{path}?{query('GET', path, expires=soon)}"
    assert keyed.raw("GET", link).status == 200
    time.sleep(2.1)
    assert keyed.raw("GET", link).status == 401


def test_the_client_command_creates_valid_tempurls(keyed, swift_client):
    done = swift_client(keyed, "tempurl", "GET", "600", "/v1/AUTH_test/signed/s/1", "mykey")
    assert keyed.raw("GET", done.stdout.strip()).body == b"one"


def test_a_form_streams_a_large_file_into_an_object(keyed):
    data = b"0123456789abcdef" * 200_000
    path = "/v1/AUTH_test/signed/form-"
    fields = form_fields(path, max_file_size=str(len(data)))
    body = form_body(fields, [ONE, ('name="f"; filename="big"', b"", data)])
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    assert keyed.raw("POST", path, headers, body).body == b"201 Created"
    assert keyed.request("GET", "signed/form-big").body == data
    assert keyed.request("GET", "signed/form-a.txt").body == b"hello"


def test_an_aborted_form_upload_stores_nothing(keyed):
    path = "/v1/AUTH_test/signed/cut-"
    body = form_body(
        form_fields(path, max_file_size="9000000"), [('name="f"; filename="x"', b"", b"y" * 500_000)]
    )
    kind = "multipart/form-data; boundary=B"
    lines = [f"POST {path} HTTP/1.1", "Host: h", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    head = "\r\n".join([*lines, "", ""])
    with socket.create_connection((keyed.plan.ip, keyed.plan.proxy_port)) as connection:
        connection.sendall(head.encode() + body[:300_000])
        time.sleep(0.5)
    time.sleep(0.5)
    assert keyed.request("GET", "signed/cut-x").status == 404


def test_a_static_web_site_is_browsed(keyed):
    keyed.request("PUT", "site", {"X-Container-Read": ".r:*,.rlistings"})
    keyed.request(
        "POST", "site", {"X-Container-Meta-Web-Index": "index.html", "X-Container-Meta-Web-Listings": "on"}
    )
    keyed.request("PUT", "site/index.html", {"Content-Type": "text/html"}, b"<p>hi")
    keyed.request("PUT", "site/d/x", body=b"x")
    assert keyed.raw("GET", "/v1/AUTH_test/site/").body == b"<p>hi"
    moved = keyed.raw("GET", "/v1/AUTH_test/site/d")
    assert (moved.status, moved.headers["location"]) == (301, f"http://{keyed.host}/v1/AUTH_test/site/d/")
    assert b'<a href="./x">x</a>' in keyed.raw("GET", "/v1/AUTH_test/site/d/").body
    assert keyed.raw("GET", "/v1/AUTH_test/site/none").status == 404


def test_info_is_served_as_html_to_browsers(cluster):
    page = cluster.raw("GET", "/info", {"Accept": "text/html,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html")
    assert b"<h2>tempurl</h2>" in page.body
    facts = cluster.raw("GET", "/info").json()
    expected = {
        "tempurl",
        "formpost",
        "bulk_upload",
        "bulk_delete",
        "ratelimit",
        "staticweb",
        "container_sync",
    }
    assert expected | {"container_quotas", "account_quotas"} <= set(facts)


@pytest.mark.parametrize("kind", ["", "gz", "bz2"])
def test_an_archive_is_extracted_and_its_objects_are_read_and_deleted(cluster, kind):
    files = {f"d{n % 3}/f{n}": bytes([n]) * (n * 1000) for n in range(40)}
    body = archive(*files.items(), kind=kind)
    suffix = f".{kind}" if kind else ""
    response = cluster.request(
        "PUT", f"arch{kind}?extract-archive=tar{suffix}", {"Accept": "application/json"}, body
    )
    assert response.json()["Number Files Created"] == len(files), response.json()
    for name, data in files.items():
        assert cluster.request("GET", f"arch{kind}/{name}").body == data
    names = "\n".join([*(f"arch{kind}/{name}" for name in files), f"arch{kind}"])
    headers = {"Content-Type": "text/plain", "Accept": "application/json"}
    response = cluster.raw(
        "POST", "/v1/AUTH_test?bulk-delete", {**headers, "X-Auth-Token": cluster.token()}, names
    )
    assert response.json()["Number Deleted"] == len(files) + 1, response.json()


def test_an_archive_without_write_access_stores_nothing(cluster):
    cluster.request("PUT", "guarded")
    sent = {"Accept": "application/json"}
    for user in ("test:tester3", "test2:tester2"):
        body = archive(("a", b"1"))
        response = cluster.request("PUT", "guarded?extract-archive=tar", sent, body, user=user)
        assert response.json()["Response Status"] == "400 Bad Request"
    assert cluster.request("GET", "guarded").status == 204


def test_a_decompression_bomb_uses_no_memory_and_delays_no_other_request(cluster):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, "x"
        for n in range(50_000):
            info.name = f"link{n}"
            tar.addfile(info)
    before = memory(cluster.pid("proxy"))
    connection = http.client.HTTPConnection(cluster.host, timeout=120)
    headers = {"X-Auth-Token": cluster.token(), "Accept": "application/json"}
    connection.request("PUT", "/v1/AUTH_test/bomb?extract-archive=tar.gz", out.getvalue(), headers)
    slowest = 0.0
    for _ in range(20):
        started = time.monotonic()
        assert cluster.raw("GET", "/healthcheck").status == 200
        slowest = max(slowest, time.monotonic() - started)
    response = connection.getresponse()
    assert json.loads(response.read())["Response Body"] == "Invalid Tar File: No Valid Files"
    assert slowest < 2
    assert memory(cluster.pid("proxy")) - before < 50 << 20


def memory(pid):
    """Return the peak memory of a process and its children in bytes."""
    with open(f"/proc/{pid}/task/{pid}/children") as stream:
        family = [pid, *map(int, stream.read().split())]
    peak = 0
    for member in family:
        with open(f"/proc/{member}/status") as stream:
            peak += next(int(line.split()[1]) << 10 for line in stream if line.startswith("VmHWM"))
    return peak


def test_a_container_quota_is_enforced(cluster):
    cluster.request("PUT", "narrow", {"X-Container-Meta-Quota-Bytes": "5"})
    assert cluster.request("PUT", "narrow/a", body=b"123456").status == 413
    assert cluster.request("PUT", "narrow/a", body=b"12345").status == 201


LIMITS = """
[filter:ratelimit]
use = egg:swift#ratelimit
account_ratelimit = 20
max_sleep_time_seconds = 0.2
rate_buffer_seconds = 0

[filter:container_sync]
use = egg:swift#container_sync
current = //realm/here
"""
REALMS = "[realm]\nkey = realmkey\ncluster_here = http://here/v1/\n"


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A cluster with rate limits, a realm of container sync, and object servers with low limits."""
    live = LiveCluster(tmp_path_factory.mktemp("limited") / "data", options=LIMITS)
    live.plan.etc.mkdir(parents=True)
    (live.plan.etc / "container-sync-realms.conf").write_text(REALMS)
    make_cluster(live.plan)
    for path in live.plan.etc.glob("object-server/*.conf"):
        text = path.read_text().replace("pipeline = healthcheck", "pipeline = healthcheck backend_ratelimit")
        section = "[filter:backend_ratelimit]\nuse = egg:swift#backend_ratelimit\n"
        path.write_text(f"{text}\n{section}config_reload_interval = 0.1\n")
    live.start()
    yield live
    live.stop()


def test_rate_limits_hold_across_the_workers_of_a_proxy(limited):
    started = time.monotonic()
    statuses = [limited.request("PUT", f"c{n}").status for n in range(30)]
    assert set(statuses) <= {201, 202}
    assert time.monotonic() - started > 1.2


def test_container_sync_uploads_keep_their_timestamp(limited):
    limited.request("PUT", "synced", {"X-Container-Sync-Key": "userkey"})
    path, stamp, nonce = "/v1/AUTH_test/synced/o", "1500000000.00000", "n" * 32
    text = "\n".join(("PUT", path, stamp, nonce, "userkey"))
    signed = hmac.new(b"realmkey", text.encode(), "sha1").hexdigest()
    headers = {"X-Timestamp": stamp, "X-Container-Sync-Auth": f"REALM {nonce} {signed}"}
    assert limited.raw("PUT", path, headers, b"copy").status == 201
    assert limited.request("GET", "synced/o").headers["x-timestamp"] == stamp
    headers["X-Container-Sync-Auth"] = f"REALM {nonce}0 {signed}"
    assert limited.raw("PUT", path, headers, b"forged").status == 401
    assert limited.raw("GET", "/info").json()["container_sync"] == {
        "realms": {"REALM": {"clusters": {"HERE": {"current": True}}}}
    }


def test_a_storage_server_can_be_slowed_while_it_runs(limited):
    limited.request("PUT", "slowed")
    limited.request("PUT", "slowed/o", body=b"x")
    device = limited.plan.device(1, 0)
    ring = Ring(str(limited.plan.etc / "object.ring.gz"))
    partition = ring.partition_of(PathHasher(b"", b"test").digest("AUTH_test", "slowed", "absent"))
    target = f"/{device}/{partition}/AUTH_test/slowed/absent"
    port = limited.plan.port("object", 1)
    assert {limited.raw("GET", target, port=port).status for _ in range(20)} == {404}
    conf = limited.plan.etc / "backend-ratelimit.conf"
    conf.write_text("[backend_ratelimit]\nget_requests_per_device_per_second = 0.5\n")
    time.sleep(0.3)
    statuses = [limited.raw("GET", target, port=port).status for _ in range(20)]
    assert 529 in statuses
    conf.unlink()
    time.sleep(0.3)
    limited.await_true(lambda: limited.raw("GET", target, port=port).status == 404, "the limit is gone")
    assert limited.request("GET", "slowed/o").body == b"x"
