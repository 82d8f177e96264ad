"""What is known of accounts and containers: the records that both sorts of proxy share (proxy.md §4)."""

import json

import pytest

from swift.gateway.info import (
    account_from_record,
    account_info,
    account_key,
    account_record,
    cache_info,
    container_from_record,
    container_headers,
    container_info,
    container_key,
    container_record,
    delete_cached_info,
)
from swift.gateway.subrequest import make_subrequest, preauthorise
from swift.http.request import Request
from swift.http.response import Response
from swift.policy.policy import Policies, Policy
from test.support.sim import MemoryCache

PEER_CONTAINER = json.loads(
    '{"status": 204, "read_acl": null, "write_acl": null, "sync_to": null, "sync_key": null,'
    ' "object_count": "2", "bytes": "10", "versions": null, "storage_policy": "0",'
    ' "cors": {"allow_origin": null, "expose_headers": null, "max_age": null}, "meta": {"color": "red"},'
    ' "sysmeta": {}, "sharding_state": "unsharded", "created_at": "1795227323.83732",'
    ' "put_timestamp": "1795227326.08029", "delete_timestamp": "0000000000.00000",'
    ' "status_changed_at": "1795227323.82029"}'
)
PEER_ACCOUNT = json.loads(
    '{"status": 200, "container_count": "8", "total_object_count": "3", "bytes": "2",'
    ' "storage_policies": {"0": {"container_count": 8, "object_count": 3, "bytes": 2}},'
    ' "meta": {"book": "x"}, "sysmeta": {}, "account_really_exists": true}'
)
CONTAINER_HEADERS = {
    "x-container-object-count": "2",
    "x-container-bytes-used": "10",
    "x-container-meta-color": "red",
    "x-backend-storage-policy-index": "0",
    "x-backend-timestamp": "1795227323.83732",
    "x-backend-put-timestamp": "1795227326.08029",
    "x-backend-delete-timestamp": "0000000000.00000",
    "x-backend-status-changed-at": "1795227323.82029",
    "x-backend-sharding-state": "unsharded",
}


@pytest.mark.parametrize(
    "record",
    [
        [],
        "text",
        7,
        {},
        {"status": "200"},
        {"status": 200, "meta": []},
        {"status": 200, "meta": {"a": 1}},
        {"status": 200, "sysmeta": {"core-access-control": {"admin": []}}},
        {"status": 200, "cors": ["*"]},
        {"status": 200, "read_acl": ["x"]},
        {"status": 200, "sharding_state": 5},
    ],
)
def test_a_cached_record_of_a_strange_shape_is_a_miss(record):
    cache = MemoryCache()
    cache.values = {account_key("a"): record, container_key("a", "c"): record}
    request = Request("GET", "/v1/a/c", {}, env={"swift.cache": cache})
    requests = []

    def forward(sub):
        requests.append(sub.raw_path)
        return Response(204, dict(CONTAINER_HEADERS))

    assert container_info(request, forward, "a", "c").object_count == 2
    assert account_info(request, forward, "a").status == 204
    assert requests == ["/v1/a", "/v1/a/c"]


def test_counts_that_are_no_numbers_count_as_nothing():
    for count in (float("inf"), float("nan"), "many", [], "9" * 5000):
        assert account_from_record({"status": 200, "bytes": count}).bytes == 0


def test_our_container_record_is_the_peers():
    assert container_record(204, CONTAINER_HEADERS) == PEER_CONTAINER


def test_a_container_record_says_the_headers_that_it_was_made_of():
    told = {
        **PEER_CONTAINER,
        "read_acl": ".r:*",
        "meta": {"farbe": "grün"},
        "sysmeta": {"sharding": "True"},
        "cors": {"allow_origin": "*", "expose_headers": None, "max_age": "5"},
        "sharding_state": "sharded",
    }
    headers = container_headers(told)
    assert container_record(204, headers) == told
    assert headers["last-modified"].endswith(" GMT")
    assert headers["x-timestamp"] == "1795227323.83732"


@pytest.mark.parametrize("name", ["created_at", "put_timestamp", "object_count", "status_changed_at"])
@pytest.mark.parametrize("value", ["no time", None, {}, "missing"])
def test_a_record_that_cannot_say_its_headers_says_none(name, value):
    record = {**PEER_CONTAINER, name: value}
    if value == "missing":
        del record[name]
    assert container_headers(record) == {}


def test_our_account_record_has_the_peers_keys():
    headers = {
        "x-account-container-count": "8",
        "x-account-object-count": "3",
        "x-account-bytes-used": "2",
        "x-account-meta-book": "x",
    }
    ours = account_record(200, headers)
    assert {**ours, "storage_policies": None} == {**PEER_ACCOUNT, "storage_policies": None}


def test_an_accounts_policy_figures_are_kept_by_policy_index():
    policies = Policies([Policy(0, "gold", is_default=True), Policy(3, "ec-8-4")])
    headers = {
        "x-account-storage-policy-gold-container-count": "2",
        "x-account-storage-policy-ec-8-4-object-count": "7",
        "x-account-storage-policy-ec-8-4-bytes-used": "70",
        "x-account-storage-policy-unknown-bytes-used": "1",
    }
    assert account_record(204, headers, policies)["storage_policies"] == {
        "0": {"container_count": 2},
        "3": {"object_count": 7, "bytes": 70},
    }


def test_records_of_the_peer_are_read():
    container = container_from_record(PEER_CONTAINER)
    assert (container.exists, container.object_count, container.bytes) == (True, 2, 10)
    account = account_from_record(PEER_ACCOUNT)
    assert (account.exists, account.container_count, account.really_exists) == (True, 8, True)


def test_records_with_missing_or_odd_keys_are_read():
    assert container_from_record({"status": 404}).exists is False
    assert container_from_record({}).policy_index == 0
    assert container_from_record({"status": 204, "object_count": "x", "meta": None}).object_count == 0
    assert account_from_record({}).exists is False


def test_cors_settings_are_no_metadata():
    record = container_record(204, {"x-container-meta-access-control-allow-origin": "*"})
    assert (record["cors"]["allow_origin"], record["meta"]) == ("*", {})


class Backend:
    """Answers HEAD sub-requests by path and keeps them."""

    def __init__(self, **answers):
        self.answers = {"/v1/a": 204, "/v1/a/c": 204, **answers}
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        return Response(self.answers.get(request.raw_path, 404), {**CONTAINER_HEADERS})


def request(cache=None):
    return Request("GET", "/v1/a/c/o", {"origin": "http://x"}, env={"swift.cache": cache} if cache else {})


def test_a_container_is_asked_for_once_per_request_and_cached_for_others():
    cache, backend = MemoryCache(), Backend()
    asking = request(cache)
    for _ in range(3):
        assert container_info(asking, backend, "a", "c").object_count == 2
    assert [(r.method, r.raw_path) for r in backend.requests] == [("HEAD", "/v1/a"), ("HEAD", "/v1/a/c")]
    container_info(request(cache), backend, "a", "c")
    assert len(backend.requests) == 2
    sub = backend.requests[1]
    assert sub.env["REMOTE_USER"] == ".wsgi.pre_authed"
    assert sub.env["swift.source"] == "GET_CONTAINER_INFO"
    assert sub.headers["x-backend-allow-reserved-names"] == "true"
    assert "origin" not in sub.headers


def test_a_container_of_a_missing_account_has_status_0():
    backend = Backend(**{"/v1/a": 404})
    assert container_info(request(), backend, "a", "c").status == 0
    internal = Backend(**{"/v1/.a/c": 204})
    assert container_info(request(), internal, ".a", "c").exists
    assert len(internal.requests) == 1


class TimedCache(MemoryCache):
    """Remembers for how long it was told to keep things."""

    def __init__(self):
        super().__init__()
        self.ttls = {}

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        super().set(key, value)
        self.ttls[key] = ttl_s


def test_failures_are_not_cached_and_absence_only_briefly():
    cache = TimedCache()
    for status, ttl in ((204, 60), (404, 6), (410, 6), (503, None)):
        cache.ttls.clear()
        cache_info(request(cache), "k", {"status": status}, 60)
        assert cache.ttls.get("k") == ttl


def test_forgetting_reaches_both_caches():
    cache = MemoryCache()
    asking = request(cache)
    key = container_key("a", "c")
    cache_info(asking, key, {"status": 204}, 60)
    delete_cached_info(asking, key)
    assert cache.values == {}
    assert key not in asking.env["swift.infocache"]
    assert account_key("a") == "account/a"


def test_an_account_is_known_without_any_cache():
    assert account_info(request(), Backend(), "a").exists


def test_sub_requests_inherit_what_they_must_and_nothing_else():
    parent = Request(
        "PUT",
        "/v1/a/c/o",
        {"user-agent": "me", "host": "h", "x-auth-token": "t", "range": "bytes=0-1", "referer": "r"},
        b"body",
        env={"swift.trans_id": "tx1", "swift.cache": 1, "private": 2, "swift_owner": True},
    )
    sub = make_subrequest(parent, "GET", "/v1/a/c/p", source="DLO", agent="%(orig)s DLO")
    assert sub.headers == {"host": "h", "referer": "r", "user-agent": "me DLO"}
    assert (sub.env["swift.trans_id"], sub.env["swift.cache"], sub.env["swift.source"]) == ("tx1", 1, "DLO")
    assert "private" not in sub.env and "swift_owner" not in sub.env
    assert sub.env["swift.infocache"] is parent.env["swift.infocache"]
    assert sub.body.read() == b""
    assert preauthorise(sub).env["swift.authorize"](sub) is None
    assert "swift.authorize" not in parent.env


@pytest.mark.parametrize(("percent", "asked"), [(0, 0), (100, 1)])
def test_some_look_ups_can_be_made_to_ask_the_servers_though_the_cache_knows(percent, asked):
    class Cache:
        def get(self, _key):
            return {"status": 200}

        def set(self, *_args, **_more):
            pass

    seen = []

    def forward(request):
        seen.append(request.method)
        return Response(204, {})

    request = Request("GET", "/v1/a/c/o", {}, env={"swift.cache": Cache()})
    assert container_info(request, forward, ".internal", "c", skip_pct=percent).exists
    assert len(seen) == asked
    # What this request knows already is never asked for again.
    assert container_info(request, forward, ".internal", "c", skip_pct=100).exists
    assert len(seen) == asked
