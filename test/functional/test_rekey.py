"""Another root secret for the objects of a live cluster: nothing else about them changes."""

import base64
import datetime
import json
import os
import signal
import tempfile
import threading
import time
from hashlib import md5

import pytest

from swift.cli.rekey import EXIT_STOPPED
from test.functional.test_s3 import client_of
from test.support.cluster import LiveCluster
from test.support.processes import FORK_SERVER

OLD, NEW = base64.b64encode(b"S" * 32).decode(), base64.b64encode(b"N" * 32).decode()
SECTION = "[filter:keymaster]\nuse = egg:swift#keymaster\n"
PLACES = {"keymaster": "proxy-logging proxy-server", "encryption": "proxy-logging proxy-server"}
DATA = os.urandom(400_000)
#: Headers that differ from one response to the next.
VOLATILE = ("date", "x-trans-id", "x-openstack-request-id", "connection")


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    root = tmp_path_factory.mktemp("rekey") / "data"
    cluster = LiveCluster(
        root, ec="2+1", places=PLACES, options=f"\n{SECTION}encryption_root_secret = {OLD}\n"
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def conf_of(cluster):
    return cluster.plan.etc / "proxy-server.conf"


def replace_conf(cluster, before, after):
    text = conf_of(cluster).read_text()
    assert before in text
    conf_of(cluster).write_text(text.replace(before, after))
    cluster.kill("proxy")
    cluster.restart("proxy")


def begin(cluster, log, *words):
    """Start swift-rekey and return its process; its output goes to a file."""
    return FORK_SERVER.begin("swift.cli.rekey", [*words, "--conf", str(conf_of(cluster))], log)


def rekey(cluster, *words, status=0):
    with tempfile.TemporaryFile() as log:
        found = begin(cluster, log, *words).wait(120)
        log.seek(0)
        text = log.read().decode(errors="replace")
    assert found == status, text
    return text


def report(cluster, *words, status=0):
    text = rekey(cluster, *words, "--account", "AUTH_test", "--format", "json", status=status)
    return json.loads(text[text.index("{") :])


def make_objects(cluster, s3):
    """Store objects of every kind; return the paths that tests compare."""
    for container, headers in (
        ("plain", {}),
        ("coded", {"X-Storage-Policy": "ec"}),
        ("versions", {"X-Versions-Enabled": "true"}),
        ("segments", {}),
    ):
        assert cluster.request("PUT", container, headers).status in (201, 202)

    def put(path, body=b"", status=201, method="PUT", **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        response = cluster.request(method, path, sent, body)
        assert response.status == status, (path, response)
        return response

    for container in ("plain", "coded"):
        put(f"{container}/large", DATA, X_Object_Meta_Colour="red", Content_Type="image/x-odd; a=b")
        put(f"{container}/empty", X_Object_Meta_Only="metadata")
        put(f"{container}/bare")
        put(f"{container}/posted", b"text" * 100, X_Object_Meta_A="1", Content_Encoding="gzip")
        put(
            f"{container}/posted",
            method="POST",
            status=202,
            X_Object_Meta_A="2",
            X_Object_Meta_B="é",
            Content_Type="text/x-new",
            Content_Disposition="inline",
        )
        put(f"{container}/ending", b"soon", X_Delete_At=str(int(time.time()) + 5000))
    put("versions/o", b"first", X_Object_Meta_N="1")
    put("versions/o", b"second", X_Object_Meta_N="2")
    for number in (1, 2):
        put(f"segments/p/{number}", DATA[:1000])
    manifest = [{"path": f"segments/p/{number}", "etag": md5(DATA[:1000]).hexdigest()} for number in (1, 2)]
    put("plain/slo?multipart-manifest=put", json.dumps(manifest).encode(), X_Object_Meta_S="large")
    put("plain/dlo", X_Object_Manifest="segments/p/")
    put("plain/link", X_Symlink_Target="plain/large")
    etag = md5(DATA).hexdigest()
    put("plain/fixed", X_Symlink_Target="plain/large", X_Symlink_Target_Etag=etag)
    s3.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    s3.put_object(
        Bucket="locked",
        Key="k",
        Body=b"kept",
        Tagging="a=b",
        Metadata={"who": "me"},
        ObjectLockMode="COMPLIANCE",
        ObjectLockRetainUntilDate=datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1),
    )
    upload = s3.create_multipart_upload(Bucket="locked", Key="m")["UploadId"]
    part = s3.upload_part(Bucket="locked", Key="m", UploadId=upload, PartNumber=1, Body=DATA)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(Bucket="locked", Key="m", UploadId=upload, MultipartUpload=parts)


def picture(cluster, s3):
    """Return everything that clients see of all objects."""
    seen = {}
    for container in ("plain", "coded", "versions", "segments", "locked"):
        query = "?format=json&versions" if container in ("versions", "locked") else "?format=json"
        rows = cluster.request("GET", f"{container}{query}").json()
        seen[container] = rows
        for row in rows:
            path = f"{container}/{row['name']}"
            for extra in ("", "?symlink=get", "?multipart-manifest=get"):
                number = row.get("version_id", "null")
                address = f"{path}{extra or '?'}" + (f"&version-id={number}" if number != "null" else "")
                response = cluster.request("GET", address)
                headers = {k: v for k, v in response.headers.items() if k not in VOLATILE}
                seen[address] = response.status, headers, md5(response.body).hexdigest()
    found = s3.head_object(Bucket="locked", Key="k")
    seen["lock"] = found["ObjectLockMode"], found["ObjectLockRetainUntilDate"], found["VersionId"]
    seen["tags"] = s3.get_object_tagging(Bucket="locked", Key="k")["TagSet"]
    return seen


def wait_for_rows(cluster):
    """Run the updaters, so that rows that came late are there."""
    for node in cluster.plan.node_numbers():
        cluster.run_once("object-updater", node)


@pytest.mark.long
def test_a_new_root_secret_changes_nothing_that_clients_see(live, tmp_path):
    s3 = client_of(live)
    make_objects(live, s3)
    before = picture(live, s3)
    usage = report(live, "status")
    assert usage["active"] == "-" and {row["secret"] for row in usage["usage"]} == {"-", ""}
    assert {row["policy"] for row in usage["usage"]} == {"gold", "ec"}
    assert any(row["container"].startswith("\0versions\0") for row in usage["usage"])
    text = rekey(live, "run", "--from", "-", "--account", "AUTH_test", status=1)
    assert "the active one" in text
    replace_conf(
        live,
        f"encryption_root_secret = {OLD}\n",
        f"encryption_root_secret = {OLD}\nencryption_root_secret_two = {NEW}\nactive_root_secret_id = two\n",
    )
    assert picture(live, s3) == before
    found = report(live, "verify", "--from", "-", status=1)
    assert found["using"] and found["rows"] and not found["unchecked"]
    state = tmp_path / "state.json"
    run = report(live, "run", "--from", "-", "--state", str(state))
    assert run["is_done"] and not run["left"] and not state.exists()
    assert run["counts"]["rewritten"] == found["using"]
    assert picture(live, s3) == before
    wait_for_rows(live)
    found = report(live, "verify", "--from", "-")
    assert (found["is_unused"], found["using"], found["rows"]) == (True, 0, 0), found
    assert {row["secret"] for row in report(live, "status")["usage"]} == {"two", ""}
    again = report(live, "run", "--from", "-", "--state", str(state))
    assert set(again["counts"]) == {"kept"}
    # The old secret is not needed any more.
    replace_conf(live, f"encryption_root_secret = {OLD}\n", "")
    assert picture(live, s3) == before
    for path in ("plain/large", "coded/large"):
        etag = live.request("HEAD", path).headers["etag"]
        assert live.request("GET", path, {"If-None-Match": etag}).status == 304
    with pytest.raises(Exception, match="AccessDenied"):
        version = s3.head_object(Bucket="locked", Key="k")["VersionId"]
        s3.delete_object(Bucket="locked", Key="k", VersionId=version)
    assert live.request("DELETE", "plain/posted").status == 204
    assert "Traceback" not in live.log_text()


# --- while clients write --------------------------------------------------------------------------------


class Writer:
    """Writes, posts to and deletes objects, and knows what each must be afterwards."""

    def __init__(self, cluster, container, names):
        self.cluster, self.container, self.names = cluster, container, names
        self.expected = {}
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.changes = 0

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.stop.set()
        self.thread.join()

    def put(self, name, number):
        body = f"{name} {number} ".encode() * 100
        sent = {"X-Object-Meta-Number": str(number)}
        assert self.cluster.request("PUT", f"{self.container}/{name}", sent, body).status == 201
        self.expected[name] = body, str(number)

    def post(self, name, number):
        sent = {"X-Object-Meta-Number": f"posted {number}"}
        assert self.cluster.request("POST", f"{self.container}/{name}", sent).status == 202
        self.expected[name] = self.expected[name][0], f"posted {number}"

    def delete(self, name):
        assert self.cluster.request("DELETE", f"{self.container}/{name}").status == 204
        self.expected[name] = None

    def _run(self):
        number = 0
        while not self.stop.is_set():
            number += 1
            name = self.names[number * 7 % len(self.names)]
            if self.expected.get(name) is None or number % 3 == 0:
                self.put(name, number)
            elif number % 3 == 1:
                self.post(name, number)
            else:
                self.delete(name)
            self.changes += 1

    def check(self):
        for name, expected in self.expected.items():
            response = self.cluster.request("GET", f"{self.container}/{name}")
            if expected is None:
                assert response.status == 404, name
            else:
                assert (response.body, response.headers["x-object-meta-number"]) == expected, name


def position(state):
    return json.loads(state.read_text())["position"] if state.exists() else None


@pytest.mark.long
@pytest.mark.parametrize("policy", ["gold", "ec"])
def test_a_run_that_is_killed_under_writing_clients_goes_on_and_loses_nothing(tmp_path, policy):
    cluster = LiveCluster(
        tmp_path / "data", ec="2+1", places=PLACES, options=f"\n{SECTION}encryption_root_secret = {OLD}\n"
    )
    state = tmp_path / "state.json"
    words = ("run", "--from", "-", "--account", "AUTH_test", "--state", str(state), "--concurrency", "2")
    try:
        cluster.start()
        assert cluster.request("PUT", "c", {"X-Storage-Policy": policy}).status == 201
        writer = Writer(cluster, "c", [f"{number:03}" for number in range(240)])
        for number, name in enumerate(writer.names):
            writer.put(name, number)
        before, after = f"encryption_root_secret = {OLD}\n", f"encryption_root_secret_two = {NEW}\n"
        replace_conf(cluster, before, f"{before}{after}active_root_secret_id = two\n")
        with writer:
            for number, expected in (
                (signal.SIGKILL, -9),
                (signal.SIGKILL, -9),
                (signal.SIGTERM, EXIT_STOPPED),
            ):
                with tempfile.TemporaryFile() as log:
                    before = position(state)
                    process = begin(cluster, log, *words, "--rate", "20000")
                    cluster.await_true(lambda known=before: position(state) != known, "a page is done")
                    os.kill(process.pid, number)
                    assert process.wait(60) == expected
                assert position(state) is not None
            rekey(cluster, *words)
        assert writer.changes > 50 and not state.exists()
        writer.check()
        wait_for_rows(cluster)
        found = report(cluster, "verify", "--from", "-")
        assert found["is_unused"] and found["objects"] > 50
        writer.check()
    finally:
        cluster.stop()


@pytest.mark.long
def test_a_copy_that_missed_the_new_secret_is_found_until_it_is_replicated(tmp_path):
    options = f"\n{SECTION}encryption_root_secret = {OLD}\n"
    # Only the passes of the test replicate.
    rest_s = LiveCluster.AT_REST_S
    cluster = LiveCluster(tmp_path / "data", nodes=3, rest_s=rest_s, places=PLACES, options=options)
    try:
        cluster.start()
        cluster.request("PUT", "c")
        assert cluster.request("PUT", "c/o", body=DATA).status == 201
        before, after = f"encryption_root_secret = {OLD}\n", f"encryption_root_secret_two = {NEW}\n"
        replace_conf(cluster, before, f"{before}{after}active_root_secret_id = two\n")
        cluster.kill("object-1")
        run = report(cluster, "run", "--from", "-", "--state", f"{tmp_path}/state")
        assert run["counts"] == {"rewritten": 1}
        found = report(cluster, "verify", "--from", "-", status=1)
        assert (found["using"], found["unchecked"]) == (0, 1)
        cluster.restart("object-1")
        found = report(cluster, "verify", "--from", "-", status=1)
        assert (found["using"], found["unchecked"]) == (1, 0)
        assert found["left"] == [
            {"kind": "using", "path": "/AUTH_test/c/o", "reason": "a copy uses the secret"}
        ]
        for node in (2, 3):
            cluster.run_once("object-replicator", node)
        wait_for_rows(cluster)
        assert report(cluster, "verify", "--from", "-")["is_unused"]
        assert cluster.request("GET", "c/o").body == DATA
    finally:
        cluster.stop()


def test_the_accounts_of_a_node_are_found_without_names(live):
    live.request("PUT", "any")
    assert live.request("PUT", "any/o", body=b"text").status == 201
    found = [
        json.loads(rekey(live, "status", "--format", "json", "--account-conf", str(conf)))
        for conf in sorted(live.plan.etc.glob("account-server/*.conf"))
    ]
    accounts = [{row["account"] for row in each["usage"]} for each in found]
    assert sum("AUTH_test" in each for each in accounts) == 1
    assert not any(account.startswith(".expiring") for each in accounts for account in each)


def test_mistakes_are_said_in_a_line(live, tmp_path):
    text = rekey(live, "run", "--from", "x", "--account", "AUTH_test", "--state", "/nowhere/state", status=1)
    assert "/nowhere/state" in text and "Traceback" not in text
    state = tmp_path / "state.json"
    for content, words in (("{", "is no state"), ('{"version": 1, "from": "a", "to": "b"}', "is no state")):
        state.write_text(content)
        text = rekey(live, "run", "--from", "x", "--account", "AUTH_test", "--state", str(state), status=1)
        assert words in text
    state.write_text('{"version": 1, "from": "a", "to": "b", "position": null, "counts": {}}')
    text = rekey(live, "run", "--from", "x", "--account", "AUTH_test", "--state", str(state), status=1)
    assert "run from a to b" in text
