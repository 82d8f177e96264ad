"""Who signed an S3 request, as an identity service says (middleware.md §18)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from swift.base.errors import ConfigError
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.keystoneauth.filter import Keystoneauth
from swift.middleware.keystoneauth.settings import KeystoneauthSettings
from swift.middleware.s3token.filter import S3Token
from swift.middleware.s3token.keystone import HTTPKeystone, KeystoneUnavailable
from swift.middleware.s3token.settings import S3TokenSettings, validate_settings
from swift.middleware.s3token.tokens import parse_identity
from swift.runtime.wsgi import response_or_error
from swift.s3.core.settings import S3Settings
from swift.s3.filter import S3Api
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.s3 import signed_headers
from test.support.sim import MemoryCache
from test.support.stub_servers import IdentityService, signature_of

V3 = {
    "token": {
        "user": {"id": "u1", "name": "ann", "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p1", "name": "acme", "domain": {"id": "default", "name": "Default"}},
        "roles": [{"name": "admin"}, {"name": "other"}],
    }
}
V2 = {
    "access": {
        "user": {"id": "u1", "name": "ann", "roles": [{"name": "admin"}]},
        "token": {"tenant": {"id": "p1", "name": "acme"}},
    }
}
KEEP = {"auth_url": "http://k/v3", "username": "swift", "password": "own"}


class Service:
    """An identity service that knows one access key."""

    def __init__(self, document=V3):
        self.document, self.away, self.asked = document, False, []

    def validate_signature(self, credentials):
        self.asked.append("check")
        if self.away:
            raise KeystoneUnavailable("away")
        text = urlsafe_b64decode(credentials["token"])
        good = credentials["access"] == "key1" and credentials["signature"] == signature_of(text, "secret1")
        return self.document if good else None

    def get_secret_key(self, user_id, access):
        self.asked.append("secret")
        return "secret1" if (user_id, access) == ("u1", "key1") else None


class Store:
    """Below the filters."""

    def __init__(self):
        self.seen = []

    def handle(self, request):
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            return Response(204)
        callback = request.env.get(environkeys.AUTHORIZE)
        denial = callback(request) if callback else None
        if denial is not None:
            return denial
        self.seen.append(request)
        return Response(200, {"etag": "x"}, b"body" if request.method == "GET" else b"")


class Front:
    def __init__(self, service=None, **options):
        self.store, self.service, self.cache = Store(), service or Service(), MemoryCache()
        told = Telemetry(silent_log())
        settings = S3TokenSettings.parse({"auth_uri": "http://k/v3", **options})
        auth = Keystoneauth(self.store, KeystoneauthSettings(), {})
        self.token = S3Token(auth, settings, self.service, told)
        self.filter = S3Api(self.token, S3Settings(), told)

    def __call__(self, path="/bucket/key", *, user="key1", secret="secret1", version=4, method="GET"):
        head = signed_headers(method, f"http://h{path}", user=user, secret=secret, version=version)
        sent = {"host": "h", **{name.lower(): value for name, value in head.items()}}
        env = {"swift.cache": self.cache, "swift.trans_id": "tx"}
        return response_or_error(self.filter.handle, Request(method, path, sent, env=env))


def code_of(response):
    return response.read_body().partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("document", [V2, V3])
def test_a_good_signature_is_as_good_as_a_token(version, document):
    front = Front(Service(document))
    assert front(version=version).read_body() == b"body"
    request = front.store.seen[-1]
    assert request.entity.path == ("AUTH_p1", "bucket", "key")
    assert request.headers["x-roles"].startswith("admin")
    assert ("x-user-domain-id" in request.headers) == (document is V3)


def test_each_text_that_a_client_may_have_signed_is_tried():
    front = Front()
    head = signed_headers("HEAD", "http://h/bucket/", user="key1", secret="secret1", version=2)
    sent = {"host": "h", **{name.lower(): value for name, value in head.items()}}
    request = Request("HEAD", "/bucket", sent, env={"swift.cache": front.cache, "swift.trans_id": "tx"})
    response_or_error(front.filter.handle, request)
    assert front.store.seen[-1].raw_path == "/v1/AUTH_p1/bucket"


@pytest.mark.parametrize("how", [{"secret": "other"}, {"user": "key2"}, {"user": "key2:p1"}])
def test_a_bad_signature_reaches_nothing(how):
    front = Front()
    assert code_of(front(**how)) == "SignatureDoesNotMatch"
    assert front.store.seen == []


def test_a_project_may_be_named_but_must_be_the_callers():
    front = Front()
    assert front(user="key1:p1").status == 200
    assert code_of(front(user="key1:p2")) == "AccessDenied"


def test_a_service_that_is_away_calls_nobody_a_stranger():
    front = Front()
    front.service.away = True
    response = front()
    assert (response.status, code_of(response)) == (503, "ServiceUnavailable")
    assert front.store.seen == []


def test_a_secret_is_asked_for_once_and_checks_what_follows():
    front = Front(**KEEP)
    for _ in range(3):
        assert front().status == 200
    assert front.service.asked == ["check", "secret"]
    front.service.away = True
    assert front().status == 200
    assert front(secret="other").status == 503
    front.service.away = False
    assert code_of(front(secret="other")) == "SignatureDoesNotMatch"
    assert Front().cache.get("s3secret/key1") is None


@pytest.mark.parametrize(
    "entry", [5, [], [{}, {}, 5], [{}, {"id": 5}, "secret1"], [{"a": 5}, {"id": "p1"}, "secret1"], "x"]
)
def test_what_the_cache_holds_is_looked_at(entry):
    front = Front(**KEEP)
    front.cache.set("s3secret/key1", entry)
    assert front().status == 200
    assert front.service.asked[0] == "check"


def test_a_cached_secret_of_the_peer_is_good_here():
    front = Front(**KEEP)
    headers = {"X-Identity-Status": "Confirmed", "X-Roles": "admin", "X-User-Id": "u1", "X-Project-Id": "p1"}
    front.cache.set("s3secret/key1", [headers, {"id": "p1", "name": "acme"}, "secret1"])
    assert front().status == 200
    assert front.service.asked == []


def test_what_a_client_says_of_itself_is_not_believed():
    front = Front()
    said = {"x-identity-status": "Confirmed", "x-roles": "admin", "x-project-id": "p1", "host": "h"}
    request = Request("GET", "/v1/AUTH_p1/c/o", dict(said))
    assert front.token.handle(request).status == 401
    confirmed = Request(
        "GET", "/v1/AUTH_p1/c/o", dict(said), env={environkeys.KEYSTONE_TOKEN_INFO: {"token": {}}}
    )
    assert front.token.handle(confirmed).status == 200


def test_others_may_decide_about_strangers():
    front = Front(delay_auth_decision="true")
    assert code_of(front(user="key2")) == "SignatureDoesNotMatch"
    assert {request.method for request in front.store.seen} <= {"OPTIONS"}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"token": []},
        {"token": {}},
        {"token": {"user": {"id": "u"}, "project": {"id": "a/b"}}},
        {"token": {"user": {"id": 5}, "project": {"id": "p"}}},
        {"token": {"user": {"id": "u\r\n"}, "project": {"id": "p"}}},
        {"access": {"user": {"id": "u"}}},
    ],
)
def test_a_token_of_nobody_is_none(document):
    assert parse_identity(document) is None
    assert code_of(Front(Service(document))()) == "SignatureDoesNotMatch"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"auth_uri": "k:5000"},
        {"auth_uri": "ftp://k"},
        {"auth_uri": "http://u:p@k"},
        {"auth_uri": "http://k/v3?x"},
        {"auth_uri": "http://k:x/v3"},
        {"auth_uri": "http://k", "http_timeout": "0"},
        {"auth_uri": "http://k", "http_timeout": "61"},
        {"auth_uri": "http://k", "auth_url": "x"},
        {"auth_uri": "http://k", "auth_url": "http://k", "auth_type": "token"},
    ],
)
def test_a_configuration_that_cannot_work_is_refused(options):
    with pytest.raises(ConfigError):
        validate_settings(S3TokenSettings.parse(options))


# --- over HTTP ------------------------------------------------------------------------------------------


ODD = {
    "odd": (200, b"<html>"),
    "deep": (200, b"[" * 100_000),
    "list": (200, []),
    "broken": (500, {}),
    "large": (200, b" " * (2 << 20)),
}


@pytest.fixture
def server():
    with IdentityService({"key1": ("secret1", V3), "a%2Fb": ("secret1", V3)}, ODD) as found:
        yield found


def signed(access, secret="secret1"):
    text = b"GET\n\n\n\n/"
    token = urlsafe_b64encode(text).decode()
    return {"access": access, "token": token, "signature": signature_of(text, secret)}


def keystone_of(server, **options):
    return HTTPKeystone(
        S3TokenSettings.parse({"auth_uri": server.url, **KEEP, "auth_url": server.url, **options})
    )


def test_the_service_is_asked_as_it_wants_to_be(server):
    keystone = keystone_of(server)
    assert keystone.validate_signature(signed("key1")) == V3
    assert server.asked == ["/v3/s3tokens"]
    assert keystone.validate_signature(signed("key1", "other")) is None
    assert keystone.validate_signature(signed("unknown")) is None


@pytest.mark.parametrize("access", list(ODD))
def test_an_answer_that_means_nothing_is_none(server, access):
    with pytest.raises(KeystoneUnavailable):
        keystone_of(server).validate_signature(signed(access))


def test_nobody_there_is_unreachable(server):
    with pytest.raises(KeystoneUnavailable) as caught:
        keystone_of(server, auth_uri="http://127.0.0.1:9/v3").validate_signature(
            {**signed("key1"), "signature": "private"}
        )
    assert "private" not in str(caught.value)


def test_a_secret_is_had_with_a_token_of_our_own(server):
    keystone = keystone_of(server)
    assert keystone.get_secret_key("u1", "a/b") == "secret1"
    assert server.asked[-1] == "/v3/users/u1/credentials/OS-EC2/a%2Fb"
    assert keystone.get_secret_key("u1", "key1") == "secret1"
    assert server.tokens == 1
    server.tokens += 1
    assert keystone.get_secret_key("u1", "key1") == "secret1"
    assert server.tokens == 3
    with pytest.raises(KeystoneUnavailable):
        keystone_of(server, password="wrong").get_secret_key("u1", "key1")
