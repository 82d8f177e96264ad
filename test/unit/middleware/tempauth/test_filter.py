"""Who may do what: the decision table of tempauth (middleware.md §1)."""

import json
import time

import pytest

from swift.cluster.memcache import MemcacheError
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.authorization import normalise_prefixes
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings, parse_users
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.sim import MemoryCache

USERS = {
    "user_test_tester": "testing .admin",
    "user_test_tester3": "testing3",
    "user_test2_tester2": "testing2 .admin",
    "user_admin_admin": "admin .admin .reseller_admin",
    "user_audit_reader": "look .reseller_reader",
    "user_far_away": "key .admin https://far.example/v1/AUTH_faraway",
    "user64_w7w_w7w": "uml .admin",
}
KEYS = {name: value.split()[0] for name, value in USERS.items()}


class App:
    """Below tempauth: asks the callback as the proxy does, and knows account ACLs."""

    def __init__(self):
        self.acl = None
        self.account_acl = None
        self.seen = None

    def handle(self, request):
        if request.method == "HEAD" and request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            headers = {"x-account-sysmeta-core-access-control": self.account_acl} if self.account_acl else {}
            return Response(204, headers)
        self.seen = request
        authorise = request.env.get("swift.authorize")
        request.acl = self.acl
        denial = authorise(request) if authorise else None
        return denial or Response(299)


class Bench:
    def __init__(self, **options):
        self.app = App()
        self.cache = MemoryCache()
        self.make(**options)

    def make(self, **options):
        conf = {**USERS, **options}
        settings = TempauthSettings.parse(options)
        self.auth = Tempauth(self.app, settings, parse_users(conf), conf, Telemetry(silent_log()))

    def ask(self, method, path, headers=None, env=None):
        env = {"swift.cache": self.cache, **(env or {})}
        return self.auth.handle(Request(method, path, {"host": "h:80", **(headers or {})}, env=env))

    def login(self, user, key=None):
        account, _, name = user.partition(":")
        key = key or KEYS[f"user_{account}_{name}"]
        return self.ask("GET", "/auth/v1.0", {"x-auth-user": user, "x-auth-key": key})

    def token(self, user):
        return self.login(user).headers["x-auth-token"]

    def status(self, user, method, path, headers=None, env=None):
        headers = dict(headers or {})
        if user:
            headers["x-auth-token"] = self.token(user)
        return self.ask(method, path, headers, env).status


@pytest.fixture
def bench():
    return Bench()


# --- S3 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access_key", "secret", "status"),
    [
        ("test:tester", None, 299),
        ("AKIA1", "s3 secret", 299),
        ("AKIA1", "wrong", 401),
        ("AKIA2", "s3 secret", 401),
    ],
)
def test_an_access_key_stands_for_its_user(access_key, secret, status):
    bench = Bench(s3_key_AKIA1="test:tester s3 secret")
    secret = secret or KEYS["user_test_tester"]
    details = {"access_key": access_key, "check_signature": lambda key: key == secret}
    response = bench.ask("PUT", f"/v1/{access_key}/c", env={environkeys.S3_AUTH_DETAILS: details})
    assert response.status == status
    if status == 299:
        assert bench.app.seen.entity.path.account == "AUTH_test"


# --- tokens -------------------------------------------------------------------------------------------


def test_a_login_gives_a_token_and_says_where_to_go(bench):
    answer = bench.login("test:tester")
    assert answer.status == 200
    token = answer.headers["x-auth-token"]
    assert token.startswith("AUTH_tk") and len(token) == 39
    assert answer.headers["x-storage-token"] == token
    assert answer.headers["x-storage-url"] == "http://h:80/v1/AUTH_test"
    assert 86390 < int(answer.headers["x-auth-token-expires"]) <= 86400
    expires, groups = bench.cache.values[f"AUTH_/token/{token}"]
    assert groups == "test,test:tester,AUTH_test"
    assert expires > time.time() + 86000
    assert bench.cache.values["AUTH_/user/test:tester"] == token


@pytest.mark.parametrize(
    ("path", "user", "logged"),
    [
        ("/auth/v1.0", "test:tester", "test:tester"),
        ("/auth/v1.0", "no:one", "no:one"),
        ("/auth/v1/test/auth", "test:tester", "test:tester"),
        ("/auth/v1.0", "nobody", None),
    ],
)
def test_the_access_line_names_who_tried_to_log_in(bench, path, user, logged):
    env = {}
    for key in ("wrong", "testing"):
        request = Request(
            "GET", path, {"x-auth-user": user, "x-auth-key": key}, env={"swift.cache": bench.cache}
        )
        bench.auth.handle(request)
        env = request.env.get("swift.access_logging") or {}
        assert env.get("user_id") == logged


def test_a_second_login_gives_the_same_token_until_it_ends(bench):
    first = bench.token("test:tester")
    assert bench.token("test:tester") == first
    bench.cache.values[f"AUTH_/token/{first}"][0] = time.time() - 1
    assert bench.token("test:tester") != first
    bench.cache.values[f"AUTH_/token/{bench.token('test:tester')}"][1] = "test,other"
    assert bench.token("test:tester") not in (first,)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/auth/v1.0", {"x-auth-user": "test:tester", "x-auth-key": "wrong"}, 401),
        ("/auth/v1.0", {"x-auth-user": "test:nobody", "x-auth-key": "testing"}, 401),
        ("/auth/v1.0", {"x-auth-user": "test", "x-auth-key": "testing"}, 401),
        ("/auth/v1.0", {}, 401),
        ("/auth/v1.0", {"x-storage-user": "test:tester", "x-storage-pass": "testing"}, 200),
        ("/auth/auth", {"x-auth-user": "test:tester", "x-auth-key": "testing"}, 200),
        ("/auth/v1/test/auth", {"x-storage-user": "tester", "x-storage-pass": "testing"}, 200),
        ("/auth/v1/test/auth", {"x-auth-user": "test:tester", "x-auth-key": "testing"}, 200),
        ("/auth/v1/test2/auth", {"x-auth-user": "test:tester", "x-auth-key": "testing"}, 401),
        ("/auth/v2.0", {"x-auth-user": "test:tester", "x-auth-key": "testing"}, 400),
        ("/auth/v1.0", {"x-auth-user": "test:tester", "x-auth-key": "t\xc3\xa9"}, 401),
    ],
)
def test_ways_to_log_in(bench, path, headers, status):
    assert bench.ask("GET", path, headers).status == status


def test_only_get_asks_for_a_token(bench):
    assert bench.ask("POST", "/auth/v1.0").status == 405


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/%61uth/v1%2E0", 200),
        ("/auth%2Fv1.0", 200),
        ("/auth/v1.0/anything", 200),
        ("/auth/v1/te%73t/auth", 200),
        ("/auth/", 404),
        ("/auth//v1.0", 404),
        ("/auth/v1/test/auth/", 400),
        ("/auth/%ff", 400),
    ],
)
def test_the_path_of_a_login_is_decoded_before_it_is_looked_at(bench, path, status):
    assert bench.ask("GET", path, {"x-auth-user": "test:tester", "x-auth-key": "testing"}).status == status


@pytest.mark.parametrize(
    ("path", "user", "realm"),
    [
        ("/v1/%41UTH_t%20t/c", None, "AUTH_t%20t"),
        ("/v1/AUTH_%C3%A9", None, "AUTH_%C3%A9"),
        ("/v1/AUTH_a%22b%0D%0A", None, "AUTH_a%22b%0D%0A"),
        ("/auth/v1.0", "te/s t%20:x", "te/s t%20"),
        ("/auth/v1.0", 'a"b:x', "a%22b"),
        ("/auth/v1.0", "t\xe9:x", "t\xe9"),
        ("/auth/v1/t%20t/auth", "a:x", "t t"),
        ("/auth/v1/a%0d%0ab%22c/auth", "a:x", "a%0D%0Ab%22c"),
        ("/auth/v1.0", "nobody", "unknown"),
    ],
)
def test_a_refusal_names_the_account_and_nothing_escapes_from_the_header(bench, path, user, realm):
    headers = {"x-auth-user": user, "x-auth-key": "wrong"} if user else {}
    answer = bench.ask("GET", path, headers)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, f'Swift realm="{realm}"')


def test_users_may_live_elsewhere_and_have_any_name(bench):
    assert bench.login("far:away").headers["x-storage-url"] == "https://far.example/v1/AUTH_faraway"
    answer = bench.login("\xc3\xbc:\xc3\xbc", "uml")
    assert answer.headers["x-storage-url"] == "http://h:80/v1/AUTH_%C3%BC"


def test_lists_of_rights_name_users_in_utf8(bench):
    headers = {"x-auth-token": bench.login("\xc3\xbc:\xc3\xbc", "uml").headers["x-auth-token"]}
    for acl, allowed in (
        ("\xc3\xbc:\xc3\xbc", True),
        ("%C3%BC:%C3%BC", True),
        ("\xfc:\xfc", False),
        ("\xc3", False),
    ):
        bench.app.acl = acl
        assert bench.ask("GET", "/v1/AUTH_test/c", headers).status == (299 if allowed else 403)


@pytest.mark.parametrize(("acl", "status"), [("\xc3\xbc:\xc3\xbc", 299), ("\xfc:\xfc", 403)])
def test_account_acls_name_users_in_utf8(bench, acl, status):
    headers = {"x-auth-token": bench.login("\xc3\xbc:\xc3\xbc", "uml").headers["x-auth-token"]}
    bench.app.account_acl = json.dumps({"read-only": [acl]})
    assert bench.ask("GET", "/v1/AUTH_test/c", headers).status == status


@pytest.mark.parametrize("user", ["%C3%BC:%C3%BC", "\xfc:\xfc", "\xff:\xc3\xbc"])
def test_a_name_is_utf8_without_escapes(bench, user):
    assert bench.login(user, "uml").status == 401


class DeadCache:
    """No server answers."""

    def get(self, key, default=None, *, raise_on_error=False):
        if raise_on_error:
            raise MemcacheError("no memcached server answered a get")
        return default

    def set(self, key, value, *, ttl_s=0, raise_on_error=False):
        if raise_on_error:
            raise MemcacheError("no memcached server answered a set")


def test_a_token_that_cannot_be_checked_is_not_called_a_bad_one(bench):
    token = bench.token("test:tester")
    for headers in ({"x-auth-token": token}, {"x-auth-token": token, "x-service-token": token}):
        answer = bench.ask("GET", "/v1/AUTH_test", headers, {"swift.cache": DeadCache()})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    login = {"x-auth-user": "test:tester", "x-auth-key": "testing"}
    answer = bench.ask("GET", "/auth/v1.0", login, {"swift.cache": DeadCache()})
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert bench.ask("GET", "/v1/AUTH_test", {}, {"swift.cache": DeadCache()}).status == 401


@pytest.mark.parametrize(
    "value",
    ["text", 5, [], [1], [1, 2, 3], {"a": 1}, ["soon", "test"], [9e9, ["test"]], [9e9, None], [None, "test"]],
)
def test_a_token_of_a_strange_shape_in_the_cache_is_none(bench, value):
    token = bench.token("test:tester")
    bench.cache.values[f"AUTH_/token/{token}"] = value
    assert bench.ask("GET", "/v1/AUTH_test", {"x-auth-token": token}).status == 401
    assert bench.token("test:tester") != token
    bench.cache.values["AUTH_/user/test:tester"] = value
    assert bench.login("test:tester").status == 200


# --- decisions ----------------------------------------------------------------------------------------

OBJECT, C, A = "/v1/AUTH_test/c/o", "/v1/AUTH_test/c", "/v1/AUTH_test"


@pytest.mark.parametrize(
    ("user", "method", "path", "acl", "status"),
    [
        ("test:tester", "GET", OBJECT, None, 299),
        ("test:tester", "PUT", C, None, 299),
        ("test:tester", "POST", A, None, 299),
        ("test:tester", "PUT", A, None, 403),
        ("test:tester", "DELETE", A, None, 403),
        ("test:tester", "GET", "/v1/AUTH_test2/c", None, 403),
        ("test:tester", "GET", "/v1/OTHER_test/c", None, 403),
        ("test:tester3", "GET", OBJECT, None, 403),
        ("test:tester3", "GET", OBJECT, "test", 299),
        ("test:tester3", "GET", C, "test:tester3", 299),
        ("test:tester3", "GET", OBJECT, "test:tester", 403),
        ("test:tester3", "GET", OBJECT, "*:*", 403),
        ("test:tester3", "GET", OBJECT, "AUTH_test", 403),
        ("test:tester3", "GET", C, ".rlistings", 403),
        ("test:tester3", "GET", OBJECT, ".r:*", 299),
        ("test:tester3", "GET", C, ".r:*", 403),
        ("test:tester3", "GET", C, ".r:*,.rlistings", 299),
        ("admin:admin", "PUT", A, None, 299),
        ("admin:admin", "DELETE", A, None, 299),
        ("admin:admin", "GET", "/v1/AUTH_.hidden", None, 403),
        ("audit:reader", "GET", OBJECT, None, 299),
        ("audit:reader", "HEAD", A, None, 299),
        ("audit:reader", "PUT", OBJECT, None, 403),
        ("audit:reader", "GET", "/v1/AUTH_.hidden", None, 403),
        (None, "GET", OBJECT, None, 401),
        (None, "GET", OBJECT, ".r:*", 299),
        (None, "GET", C, ".r:*", 401),
        (None, "GET", C, ".r:*,.rlistings", 299),
        (None, "OPTIONS", OBJECT, None, 299),
        (None, "GET", "/v1/OTHER_x", None, 401),
        (None, "GET", "/v1//c", None, 401),
    ],
)
def test_the_decision_table(bench, user, method, path, acl, status):
    bench.app.acl = acl
    assert bench.status(user, method, path) == status


@pytest.mark.parametrize(
    ("user", "path", "owner"),
    [
        ("test:tester", OBJECT, True),
        ("admin:admin", OBJECT, True),
        ("audit:reader", OBJECT, False),
        ("test:tester3", OBJECT, False),
    ],
)
def test_owners_are_marked(bench, user, path, owner):
    bench.app.acl = "test"
    bench.status(user, "GET", path)
    assert bool(bench.app.seen.env.get("swift_owner")) is owner
    assert bool(bench.app.seen.env.get("reseller_request")) is (user == "admin:admin")
    assert bench.app.seen.env["swift.access_logging"] == {"user_id": user}


@pytest.mark.parametrize("token", ["AUTH_tkbogus", "AUTH_"])
def test_an_unknown_token_is_401_at_once(bench, token):
    bench.app.acl = ".r:*"
    answer = bench.ask("GET", OBJECT, {"x-auth-token": token})
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Swift realm="AUTH_test"')
    assert bench.app.seen is None


def test_a_foreign_token_is_as_good_as_none(bench):
    bench.app.acl = ".r:*"
    assert bench.ask("GET", OBJECT, {"x-auth-token": "zzz"}).status == 299


def test_an_expired_token_is_401(bench):
    token = bench.token("test:tester")
    bench.cache.values[f"AUTH_/token/{token}"][0] = time.time() - 1
    assert bench.ask("GET", OBJECT, {"x-auth-token": token}).status == 401


def test_the_storage_token_header_is_a_token_too(bench):
    assert bench.ask("GET", OBJECT, {"x-storage-token": bench.token("test:tester")}).status == 299


def test_a_service_token_adds_its_groups():
    bench = Bench(require_group="admin")
    token, service = bench.token("test:tester"), bench.token("admin:admin")
    assert bench.ask("GET", OBJECT, {"x-auth-token": token}).status == 403
    assert bench.ask("GET", OBJECT, {"x-auth-token": token, "x-service-token": service}).status == 299


def test_accounts_of_a_service_need_the_users_and_the_services_token():
    bench = Bench()
    bench.make(
        reseller_prefix="AUTH, SERVICE",
        SERVICE_require_group=".service",
        user_images_glance="key .admin .service",
    )
    token = bench.token("test:tester")
    headers = {"x-auth-user": "images:glance", "x-auth-key": "key"}
    service = bench.ask("GET", "/auth/v1.0", headers).headers["x-auth-token"]
    own, theirs = "/v1/AUTH_test/c", "/v1/SERVICE_test/c"
    both = {"x-auth-token": token, "x-service-token": service}
    assert bench.ask("GET", own, {"x-auth-token": token}).status == 299
    assert bench.ask("GET", theirs, {"x-auth-token": token}).status == 403
    assert bench.ask("GET", theirs, both).status == 299
    assert bench.ask("GET", theirs, {"x-auth-token": service}).status == 403
    assert bench.ask("GET", theirs, {"x-auth-token": service, "x-service-token": service}).status == 403
    assert bench.ask("GET", theirs, {**both, "x-service-token": "AUTH_tkforged"}).status == 403
    assert bench.ask("GET", theirs, {"x-service-token": service}).status == 401


@pytest.mark.parametrize(
    ("scheme", "url"), [("default", "http://h:80/v1/AUTH_test"), ("https", "https://h:80/v1/AUTH_test")]
)
def test_storage_urls_have_the_scheme_that_clients_can_reach(scheme, url):
    bench = Bench(storage_url_scheme=scheme)
    assert bench.login("test:tester").headers["x-storage-url"] == url
    assert bench.login("far:away").headers["x-storage-url"] == "https://far.example/v1/AUTH_faraway"


def test_container_sync_needs_the_key_and_a_timestamp(bench):
    env = {"swift_sync_key": "secret"}
    good = {"x-container-sync-key": "secret", "x-timestamp": "1"}
    assert bench.status(None, "PUT", OBJECT, good, env) == 299
    assert bench.status(None, "PUT", OBJECT, {**good, "x-container-sync-key": "other"}, env) == 401
    assert bench.status(None, "PUT", OBJECT, {"x-container-sync-key": "secret"}, env) == 401
    assert bench.status(None, "PUT", OBJECT, {"x-container-sync-key": "", "x-timestamp": "1"}) == 401


def test_an_override_passes_untouched(bench):
    assert bench.status(None, "PUT", OBJECT, env={"swift.authorize_override": True}) == 299
    strict = Bench(allow_overrides="false")
    assert strict.status(None, "PUT", OBJECT, env={"swift.authorize_override": True}) == 401


@pytest.mark.parametrize(
    ("acl", "method", "path", "status", "owner"),
    [
        ('{"admin":["test2"]}', "POST", A, 299, True),
        ('{"read-write":["test2:tester2"]}', "PUT", OBJECT, 299, False),
        ('{"read-write":["test2"]}', "PUT", C, 299, False),
        ('{"read-write":["test2"]}', "GET", A, 299, False),
        ('{"read-write":["test2"]}', "POST", A, 403, False),
        ('{"read-only":["test2"]}', "GET", OBJECT, 299, False),
        ('{"read-only":["test2"]}', "PUT", OBJECT, 403, False),
        ('{"read-only":["test"]}', "GET", OBJECT, 403, False),
        ("broken", "GET", OBJECT, 403, False),
    ],
)
def test_account_acls(bench, acl, method, path, status, owner):
    bench.app.account_acl = acl
    assert bench.status("test2:tester2", method, path) == status
    assert bool(bench.app.seen.env.get("swift_owner")) is owner


def test_an_empty_name_in_an_account_acl_opens_it_to_nobody(bench):
    bench.app.account_acl = '{"admin":[""],"read-only":[""]}'
    assert bench.status(None, "GET", OBJECT) == 401


@pytest.mark.parametrize(
    ("value", "status", "stored"),
    [
        ('{"read-only": ["b"], "admin": ["a"]}', 299, '{"admin":["a"],"read-only":["b"]}'),
        ("{}", 299, ""),
        ("", 299, ""),
        ('{"bad": []}', 400, None),
        ("{", 400, None),
    ],
)
def test_a_new_account_acl_is_checked_and_becomes_system_metadata(bench, value, status, stored):
    answer_status = bench.status("test:tester", "POST", A, {"x-account-access-control": value})
    assert answer_status == status
    assert bench.app.seen.headers.get("x-account-sysmeta-core-access-control") == stored


# --- configuration ------------------------------------------------------------------------------------


def test_prefixes_end_with_an_underscore():
    assert normalise_prefixes(("AUTH", "SERVICE_", "''")) == ["AUTH_", "SERVICE_", ""]
    assert normalise_prefixes(()) == [""]


@pytest.mark.parametrize("name", ["user_a", "user_a_b_c", "user__b", "user_a_"])
def test_a_user_option_that_does_not_split_is_refused(name):
    from swift.base.errors import ConfigError

    with pytest.raises(ConfigError, match=name):
        parse_users({name: "key"})
