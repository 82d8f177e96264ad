"""Rewriting of objects for another root secret, with clients that change them at the worst moment."""

import json
import time

import pytest

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import environkeys, fields
from swift.http.objectlock import COMPLIANCE, MAY_REWRITE, ObjectLock
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.encryption.cipher import CryptoError
from swift.middleware.keymaster.filter import Keymaster, KeymasterSettings, parse_secrets
from swift.operations.rekey.rewriting import Outcome, Rewriter
from test.support.filters import ONE, TWO, EncryptionFixture, as_stored, md5_of

BOTH = {"encryption_root_secret": ONE, "encryption_root_secret_two": TWO, "active_root_secret_id": "two"}
LOCK = ObjectLock(COMPLIANCE, int(time.time()) + 3600)
PATHS = {"copies": "/a/c/o", "archives": "/a/coded/o"}


class End:
    def handle(self, _request):
        return Response(204)


class Cluster:
    """The parts of ``RawCluster`` over a simulated one; ``before`` has calls before the next requests."""

    def __init__(self, sim, **options):
        self.sim = sim
        options = options or BOTH
        self.keymaster = Keymaster(End(), parse_secrets(options, KeymasterSettings.parse(options)))
        self.before = {}
        self.sent = []

        def forward(request):
            call = self.before.pop(request.method, None)
            if call is not None:
                call()
            self.sent.append(request.method)
            request.env[environkeys.CONTENT_TYPE_OVERRIDDEN] = True
            return sim.app.handle(request)

        self.client = InternalClient(forward, "test", tries=1)
        self.writer = self.client

    def fetch_keys(self, path):
        request = Request("HEAD", f"/v1{path.quoted}")
        self.keymaster.handle(request)
        return request.env[environkeys.FETCH_CRYPTO_KEYS]

    def rekey(self, path):
        return Rewriter(self, "-").rewrite(EntityPath(*path[1:].split("/")), 0)


@pytest.fixture
def cluster(sim):
    assert sim("PUT", "/a/coded", {"x-storage-policy": "ec32"}).status == 201
    return Cluster(sim)


@pytest.fixture(params=PATHS)
def path(request):
    return PATHS[request.param]


BODY = b"data of a client " * 500


def store(sim, path, **headers):
    """Store an object under the old secret."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    assert EncryptionFixture(sim)("PUT", path, sent, BODY).status == 201


def stored_metadata(sim, path):
    """Return the internal headers of an object, but those of one fragment archive."""
    headers = as_stored(sim, "HEAD", path).headers
    names = (fields.OBJECT_SYSMETA, fields.OBJECT_TRANSIENT_SYSMETA)
    return {k: v for k, v in headers.items() if k.startswith(names) and not k.startswith(fields.SYSMETA_EC)}


def only_new(sim):
    """Return the filters of a proxy that knows the new secret alone."""
    return EncryptionFixture(sim, encryption_root_secret_two=TWO, active_root_secret_id="two")


def test_a_proxy_with_the_new_secret_alone_reads_the_object(cluster, sim, path):
    store(sim, path, x_object_meta_a="1")
    before = as_stored(sim, "GET", path)
    assert cluster.rekey(path) == Outcome.REWRITTEN
    response = only_new(sim)("GET", path)
    assert (response.body, response.headers["x-object-meta-a"]) == (BODY, "1")
    after = as_stored(sim, "GET", path)
    # The body's key and the body are the same; no value that was encrypted is.
    assert after.body == before.body and after.headers["etag"] == before.headers["etag"]
    changed = {name for name, value in before.headers.items() if after.headers.get(name) != value}
    assert {name for name in changed if name.startswith("x-object-sysmeta-ec-")} == set()
    assert fields.SYSMETA_CRYPTO_BODY_META in changed and "x-timestamp" not in changed
    rows = json.loads(only_new(sim)("GET", f"{path[:-2]}?format=json").body)
    assert rows[0]["hash"] == md5_of(BODY)
    assert cluster.rekey(path) == Outcome.KEPT


def test_metadata_of_a_post_is_rewritten_at_its_own_time(cluster, sim, path):
    store(sim, path, x_object_meta_a="1")
    old = EncryptionFixture(sim)
    assert old("POST", path, {"x-object-meta-a": "2", "content-type": "text/new"}).status == 202
    before = old("HEAD", path).headers
    assert cluster.rekey(path) == Outcome.REWRITTEN
    after = only_new(sim)("HEAD", path).headers
    for name in ("x-timestamp", "last-modified", "content-type", "x-object-meta-a", "etag"):
        assert after[name] == before[name], name


def test_metadata_alone_is_rewritten_without_the_body(cluster, sim, path):
    store(sim, path)
    cluster.rekey(path)
    assert EncryptionFixture(sim)("POST", path, {"x-object-meta-a": "2"}).status == 202
    cluster.sent.clear()
    assert cluster.rekey(path) == Outcome.REWRITTEN
    assert cluster.sent == ["HEAD", "POST"]
    response = only_new(sim)("GET", path)
    assert (response.body, response.headers["x-object-meta-a"]) == (BODY, "2")


def test_the_rate_is_waited_for_before_the_body_is_requested(cluster, sim, path):
    store(sim, path)
    calls = []

    def consume(size):
        calls.append((size, list(cluster.sent)))

    rewriter = Rewriter(cluster, "-", consume)
    for _ in range(2):
        rewriter.rewrite(EntityPath(*path[1:].split("/")), 0)
    assert calls == [(len(BODY), ["HEAD"])]


@pytest.mark.parametrize("moment", ["GET", "PUT"])
def test_a_write_by_a_client_at_the_same_time_wins(cluster, sim, path, moment):
    store(sim, path)
    cluster.before[moment] = lambda: cluster_put(sim, path)
    assert cluster.rekey(path) in (Outcome.CHANGED, Outcome.REWRITTEN)
    assert only_new(sim)("GET", path).body == b"newer"


def cluster_put(sim, path):
    assert only_new(sim)("PUT", path, {}, b"newer").status == 201


@pytest.mark.parametrize("moment", ["GET", "PUT"])
def test_a_deletion_by_a_client_at_the_same_time_wins(cluster, sim, path, moment):
    store(sim, path)
    cluster.before[moment] = lambda: sim("DELETE", path)
    assert cluster.rekey(path) == Outcome.CHANGED
    assert only_new(sim)("GET", path).status == 404


@pytest.mark.parametrize("moment", ["GET", "PUT"])
def test_a_post_by_a_client_at_the_same_time_stays(cluster, sim, path, moment):
    store(sim, path, x_object_meta_a="1")
    cluster.before[moment] = lambda: only_new(sim)("POST", path, {"x-object-meta-a": "client's"})
    cluster.rekey(path)
    response = only_new(sim)("GET", path)
    assert (response.body, response.headers["x-object-meta-a"]) == (BODY, "client's")


def test_a_wrong_secret_under_the_old_id_changes_nothing(sim, path):
    assert sim("PUT", "/a/coded", {"x-storage-policy": "ec32"}).status == 201
    store(sim, path, x_object_meta_a="1")
    wrong = {**BOTH, "encryption_root_secret": "V" * 43 + "="}
    before = stored_metadata(sim, path)
    cluster = Cluster(sim, **wrong)
    with pytest.raises(CryptoError, match="does not belong"):
        cluster.rekey(path)
    assert "PUT" not in cluster.sent
    assert stored_metadata(sim, path) == before


def test_metadata_of_an_empty_object_is_not_rewritten_with_a_wrong_secret(sim):
    old = EncryptionFixture(sim)
    assert old("PUT", "/a/c/o", {"x-object-meta-a": "a text of some length"}, b"").status == 201
    cluster = Cluster(sim, **{**BOTH, "encryption_root_secret": "V" * 43 + "="})
    with pytest.raises(CryptoError, match="does not belong"):
        cluster.rekey("/a/c/o")
    assert Cluster(sim).rekey("/a/c/o") == Outcome.REWRITTEN
    assert only_new(sim)("HEAD", "/a/c/o").headers["x-object-meta-a"] == "a text of some length"


def test_an_object_that_cannot_be_stored_is_an_error_and_as_it_was(cluster, sim, path):
    store(sim, path)
    for status, outcome in ((404, Outcome.CHANGED), (409, Outcome.CHANGED), (403, Outcome.LOCKED)):
        cluster.writer = InternalClient(lambda _request, status=status: Response(status), "test", tries=1)
        assert cluster.rekey(path) == outcome
    cluster.writer = InternalClient(lambda _request: Response(503), "test", tries=1)
    with pytest.raises(UnexpectedResponse):
        cluster.rekey(path)
    assert EncryptionFixture(sim)("GET", path).body == BODY


# --- locks ----------------------------------------------------------------------------------------------


@pytest.fixture
def locked(cluster, sim, path):
    for container in ("/a/c", "/a/coded"):
        assert sim("POST", container, {fields.SYSMETA_S3_OBJECT_LOCK: "true"}).status == 204
    store(sim, path, **{fields.TRANSIENT_S3_LOCK: str(LOCK)})
    return cluster


def test_a_locked_object_gets_the_new_secret_and_stays_locked(locked, sim, path):
    assert locked.rekey(path) == Outcome.REWRITTEN
    assert only_new(sim)("GET", path).body == BODY
    assert sim("DELETE", path).status == 403
    assert as_stored(sim, "HEAD", path).headers[fields.TRANSIENT_S3_LOCK] == str(LOCK)


@pytest.mark.parametrize(
    ("lock", "body"),
    [(str(LOCK), b"other"), (str(LOCK._replace(until_s=LOCK.until_s - 1)), None), (None, None)],
    ids=["another body", "a shorter lock", "no lock"],
)
def test_the_permission_lets_nothing_else_replace_a_locked_object(locked, sim, path, lock, body):
    data = as_stored(sim, "GET", path).body if body is None else body
    sent = {fields.BACKEND_OBJECT_LOCK: MAY_REWRITE} | ({fields.TRANSIENT_S3_LOCK: lock} if lock else {})
    assert sim("PUT", path, sent, data).status == 403
    assert sim("DELETE", path, {fields.BACKEND_OBJECT_LOCK: MAY_REWRITE}).status == 403
    assert EncryptionFixture(sim)("GET", path).body == BODY
