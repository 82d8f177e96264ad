"""Multipart uploads that are completed and aborted at the same time, over HTTP, while servers are killed.

``SWIFT_RACES=1000`` runs as many uploads. Whatever was killed, an upload has one end, a completed object
reads back, and the lifecycle daemon leaves nothing that no object and no upload needs.
"""

import http.client
import os
import random
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5

import pytest

from test.support.s3 import cluster_with, signed_headers

RACES = int(os.environ.get("SWIFT_RACES", "12"))
OPTIONS = "[filter:s3api]\nuse = egg:swift#s3api\nmin_segment_size = 1\n"
SIZE = 100_000
#: Maximum delays of two completions, the abort and a part upload, seconds; an abort is quick.
_DELAYS_S = ((0.0, 0.005), (0.0, 0.02), (0.0, 0.02, 0.05), (0.0, 0.01))


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with cluster_with(tmp_path_factory.mktemp("multipart"), OPTIONS, rest_s=60) as made:
        assert ask(made, "PUT", "/bucket")[0] == 200
        yield made


def ask(live, method, path, body=b"", tries=1):
    """Status and body of a signed request; 0 when the connection broke."""
    status, content = 0, b""
    for _ in range(tries):
        headers = signed_headers(method, f"http://{live.host}{path}", {}, body)
        try:
            response = live.raw(method, path, headers, body)
            status, content = response.status, response.body
        except (OSError, http.client.HTTPException):
            status = 0
        if status and status < 500:
            break
        time.sleep(0.5)
    if status == 200 and b"<Error>" in content:
        status = 500
    return status, content


class Upload:
    """A multipart upload of two parts, and the concurrent requests for it."""

    def __init__(self, live, number):
        self.live = live
        self.key = f"/bucket/key{number}"
        self.chance = random.Random(number)
        #: Responses to both completions, the abort, and the part.
        self.told = []
        status, body = ask(live, "POST", f"{self.key}?uploads", tries=60)
        assert status == 200, body
        self.id = re.search(rb"<UploadId>(.*?)</UploadId>", body)[1].decode()
        self.parts = [f"{number}/{n} ".encode().ljust(SIZE, b".") for n in (1, 2)]
        for n, content in enumerate(self.parts, 1):
            target = f"{self.key}?partNumber={n}&uploadId={self.id}"
            status, body = ask(live, "PUT", target, content, tries=60)
            assert status == 200, body

    @property
    def document(self):
        """The completion with the first contents of the parts."""
        items = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{md5(content).hexdigest()}</ETag></Part>"
            for n, content in enumerate(self.parts, 1)
        )
        return f"<CompleteMultipartUpload>{items}</CompleteMultipartUpload>".encode()

    def complete(self):
        return ask(self.live, "POST", f"{self.key}?uploadId={self.id}", self.document)[0]

    def abort(self):
        return ask(self.live, "DELETE", f"{self.key}?uploadId={self.id}")[0]

    def other_part(self):
        target = f"{self.key}?partNumber=2&uploadId={self.id}"
        return ask(self.live, "PUT", target, b"other bytes".ljust(SIZE, b"-"))[0]

    def race(self):
        """Send the requests concurrently, in random order within some milliseconds."""
        delays = [self.chance.choice(choices) for choices in _DELAYS_S]

        def later(delay_s, do):
            time.sleep(delay_s)
            return do()

        acts = (self.complete, self.complete, self.abort, self.other_part)
        with ThreadPoolExecutor(len(acts)) as pool:
            self.told = list(pool.map(later, delays, acts))


class Killer(threading.Thread):
    """Kills and restarts the proxy or an object server until it is stopped."""

    def __init__(self, live):
        super().__init__(daemon=True)
        self.live = live
        self.ended = threading.Event()
        self.kills = Counter()
        self._chance = random.Random(1)

    def run(self):
        servers = [process.name for process in self.live.plan.servers()]
        proxy = next(name for name in servers if name.startswith("proxy"))
        names = [proxy, proxy, *(name for name in servers if name.startswith("object-"))]
        while not self.ended.wait(self._chance.uniform(0.1, 0.8)):
            name = self._chance.choice(names)
            self.live.kill(name)
            self.live.restart(name)
            self.kills[name.partition("-")[0]] += 1


@pytest.mark.long
@pytest.mark.timeout(max(300, 10 * RACES))
def test_a_multipart_upload_has_one_outcome_although_processes_are_killed(live):
    killer = Killer(live)
    killer.start()
    uploads = []
    try:
        for number in range(RACES):
            uploads.append(Upload(live, number))
            uploads[-1].race()
    finally:
        killer.ended.set()
        killer.join(60)
    assert killer.kills, "something was killed"
    sweep(live)
    for upload in uploads:
        check(live, upload)
    needed = {
        f"{upload.key.removeprefix('/bucket/')}/{upload.id}/"
        for upload in uploads
        if reads(live, upload)[0] == 200
    }
    rows = [row["name"] for row in live.request("GET", "bucket+segments?format=json").json()]
    assert [name for name in rows if not name.startswith(tuple(needed))] == []
    assert len(rows) == 2 * len(needed), rows


def reads(live, upload):
    return ask(live, "GET", upload.key, tries=20)


def check(live, upload):
    """Of an upload whose end is not known to any client, the end is made certain first."""
    *completions, aborted, _ = upload.told
    status, body = reads(live, upload)
    assert not (200 in completions and aborted == 204), upload.told
    if 200 in completions:
        assert (status, body) == (200, b"".join(upload.parts)), (upload.told, status)
    elif aborted == 204:
        assert status == 404, (upload.told, status)
    else:
        assert status in (200, 404), (upload.told, status)


def sweep(live):
    """End what has no end yet, as a client would, and let the lifecycle daemon do the rest.

    A server that was killed may have sent no row. The daemon keeps what listings do not show or contradict.
    """
    agree(live)
    conf = live.plan.etc / "container-server" / "1.conf"
    text, section = conf.read_text(), "[s3-lifecycle]\n"
    text = text if section in text else f"{text}\n{section}"
    conf.write_text(text.replace(section, f"{section}orphan_age = 0.5\n"))
    live.await_true(lambda: ask(live, "GET", "/bucket?uploads")[0] == 200, "the proxy answers")
    for key, upload_id in re.findall(
        rb"<Upload><Key>(.*?)</Key><UploadId>(.*?)</UploadId>", ask(live, "GET", "/bucket?uploads")[1]
    ):
        ask(live, "DELETE", f"/bucket/{key.decode()}?uploadId={upload_id.decode()}", tries=20)
    time.sleep(1.0)
    for _ in range(2):
        agree(live)
        live.run_once("s3-lifecycle")
    agree(live)


def agree(live):
    """Let all replicas of the listings and objects become the same."""
    for daemon in ("object-updater", "container-replicator", "object-replicator"):
        for node in live.plan.node_numbers():
            live.run_once(daemon, node)
