"""Who asks, whose account is asked, and with which rights (middleware.md §22.2)."""

import pytest

from swift.base.entity import Entity
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.s3.auth.caller import KnownAccounts, identify_caller
from swift.s3.core.claim import Claim, anonymous_claim
from swift.s3.core.errors import S3Error
from swift.s3.core.session import AclScope, Session, owner_sysmeta, with_trusted_bucket
from swift.s3.core.settings import S3Settings
from test.support.sim import MemoryCache


class Below:
    """Knows the user test:tester as tempauth does; answers the rest with a status."""

    def __init__(self, status=204, headers=None, *, owner=True, user="test:tester"):
        self.status, self.headers, self.owner, self.user = status, headers or {}, owner, user
        self.asked, self.acls = [], []

    def handle(self, request):
        self.asked.append(request)
        entity = request.entity
        details = request.env.get(environkeys.S3_AUTH_DETAILS)
        if details and details["access_key"] == self.user:
            if entity.path.account == self.user:
                request.set_entity(Entity("v1", entity.path._replace(account="AUTH_test")))
            request.env[environkeys.REMOTE_USER] = "test"
            request.env[environkeys.AUTHORIZE] = self.authorise
            request.env[environkeys.OWNER] = self.owner
        elif details:
            return error_response(401)
        return Response(self.status, dict(self.headers))

    def authorise(self, request):
        self.acls.append(request.acl)
        return error_response(403)


def unidentified(below, key="test:tester", named="", env=None, **options):
    request = Request("GET", "/bucket/key", {"authorization": "secret"}, env={} if env is None else env)
    claim = Claim(key, "s", b"text", is_presigned=False) if key else anonymous_claim()
    return Session.for_claim(below.handle, request, claim, S3Settings.parse(options), named)


def account(below, key="test:tester", named="", env=None, known=None, **options):
    """Return the session of an identified caller; its first request is not counted."""
    asking = identify_caller(unidentified(below, key, named, env, **options), known or KnownAccounts())
    below.asked.clear()
    return asking


def code_of(call, *args):
    with pytest.raises(S3Error) as refused:
        call(*args)
    return refused.value.code


def test_the_question_names_the_key_and_carries_the_claim():
    below = Below()
    asking = identify_caller(unidentified(below, named="AUTH_other"), KnownAccounts())
    [asked] = below.asked
    assert (asked.method, asked.raw_path) == ("OPTIONS", "/v1/AUTH_test")
    assert asked.env[environkeys.S3_AUTH_DETAILS]["signature"] == "s"
    assert "authorization" not in asked.headers
    assert (asking.own_account, asking.account, asking.user_id) == ("AUTH_test", "AUTH_other", "test:tester")


def test_requests_have_the_identity_and_the_callback_of_the_caller():
    below = Below()
    asking = account(below)
    assert asking.head("bucket", "ü/k").status == 204
    [asked] = below.asked
    assert asked.raw_path == "/v1/AUTH_test/bucket/%C3%BC/k"
    assert asked.env[environkeys.AUTHORIZE] == below.authorise
    assert asked.env[environkeys.REMOTE_USER] == "test"
    assert environkeys.OWNER not in asking.identity.environ


@pytest.mark.parametrize("status", [204, 403])
def test_a_caller_is_identified_whatever_it_may_do(status):
    assert account(Below(status)).own_account == "AUTH_test"
    assert code_of(account(Below(403)).head, "bucket") == "AccessDenied"


def test_a_stranger_is_told_that_its_signature_is_wrong():
    assert code_of(account, Below(), "eve:eve") == "SignatureDoesNotMatch"


def test_nobody_is_a_stranger_because_nobody_can_tell():
    below = Below(503, user="other")
    below.handle = lambda request: error_response(503)
    assert code_of(account, below) == "ServiceUnavailable"


def test_who_signed_nothing_is_asked_for_without_a_claim():
    below = Below()
    asking = identify_caller(unidentified(below, "", anonymous_account="AUTH_open"), KnownAccounts())
    assert below.asked == [] and asking.is_anonymous
    asking.head("bucket")
    assert below.asked[0].raw_path == "/v1/AUTH_open/bucket"
    assert environkeys.S3_AUTH_DETAILS not in below.asked[0].env
    assert environkeys.AUTHORIZE_OVERRIDE not in below.asked[0].env
    assert code_of(account(Below(401), "", "AUTH_open").head, "bucket") == "AccessDenied"


def test_another_account_is_asked_when_the_request_names_it():
    below = Below()
    asking = account(below, named="AUTH_other")
    asking.head("bucket")
    assert below.asked[-1].raw_path == "/v1/AUTH_other/bucket"


# --- rights ---------------------------------------------------------------------------------------------


def rights_in(asking, raw_path, bucket="bucket"):
    """The answer to a question of the pipeline about a path, within a sub-request for a bucket."""
    callback = asking.subrequest("GET", bucket, "key").env[environkeys.AUTHORIZE]
    request = Request("GET", raw_path)
    request.acl = ".r:*,other"
    return callback(request)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/AUTH_test/bucket/key", True),
        ("/v1/AUTH_test/bucket", True),
        ("/v1/AUTH_test", True),
        ("/v1/AUTH_test/bucket+segments/key", True),
        ("/v1/AUTH_test/%00versions%00bucket/x", True),
        ("/v1/AUTH_test/other/key", False),
        ("/v1/AUTH_test/bucket2/key", False),
        ("/v1/AUTH_test/%00versions%00other/x", False),
        ("/v1/AUTH_other/bucket/key", False),
        ("/v1/AUTH_tes", False),
        ("/info", False),
    ],
)
def test_all_rights_are_those_of_one_bucket(path, allowed):
    asking = account(Below())
    assert (rights_in(with_trusted_bucket(asking, "bucket"), path) is None) is allowed


@pytest.mark.parametrize("container", ["other", "bucket2", "other+segments", ""])
def test_a_request_for_another_bucket_has_the_rights_of_its_caller(container):
    below = Below()
    asking = account(below, named="AUTH_test")
    env = with_trusted_bucket(asking, "bucket").subrequest("GET", container).env
    assert env[environkeys.AUTHORIZE] == below.authorise
    assert env[environkeys.S3_AUTH_DETAILS]["access_key"] == "test:tester"


def test_what_is_said_to_everybody_or_at_all_counts_only_where_it_does():
    below = Below()
    asking = account(below)
    for rights, acl in ((AclScope.NOT_PUBLIC, "other"), (AclScope.OWN, None)):
        other = asking.with_acl_scope(rights)
        assert rights_in(other, "/v1/AUTH_test/bucket/key").status == 403
        assert below.acls.pop() == acl
    assert asking.acl_scope is AclScope.ALL


def test_without_anybody_to_ask_nothing_is_allowed():
    asking = account(Below(), "", "AUTH_test").with_acl_scope(AclScope.OWN)
    assert rights_in(asking, "/v1/AUTH_test/bucket/key").status == 403


# --- what is learned ------------------------------------------------------------------------------------


def test_a_good_signature_teaches_whose_key_it_is_and_a_bad_one_nothing():
    cache = MemoryCache()
    account(Below(), env={environkeys.CACHE: cache})
    request = Request("GET", "/", env={environkeys.CACHE: cache})
    assert KnownAccounts().find(request, "test:tester") == "AUTH_test"
    with pytest.raises(S3Error):
        account(Below(), "eve:eve", env={environkeys.CACHE: cache})
    assert KnownAccounts().find(request, "eve:eve") == ""
    assert KnownAccounts().find(Request("GET", "/"), "test:tester") == ""


@pytest.mark.parametrize("value", [None, 5, ["AUTH_x"], ""])
def test_what_is_no_name_in_the_cache_is_not_believed(value):
    cache = MemoryCache()
    cache.set("s3account/k", value)
    assert KnownAccounts().find(Request("GET", "/", env={environkeys.CACHE: cache}), "k") == ""


def test_keys_do_not_fill_the_memory():
    known, request = KnownAccounts(), Request("GET", "/")
    for n in range(10_001):
        known.learn(request, f"k{n}", "AUTH_a")
    assert known.find(request, "k10000") == "AUTH_a"
    assert known.find(request, "k0") == ""


def test_the_log_names_the_caller_but_not_at_any_length():
    env = {}
    key = "k" * 500
    account(Below(user=key), key, env=env)
    assert env[environkeys.ACCESS_LOGGING] == {"user_id": "k" * 125 + "..."}


# --- buckets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("below", "code"),
    [
        (Below(404), "NoSuchBucket"),
        (Below(owner=False), "AccessDenied"),
        (Below(503), "ServiceUnavailable"),
        (Below(403), "AccessDenied"),
    ],
)
def test_settings_are_the_owners(below, code):
    assert code_of(owner_sysmeta, account(below), "bucket") == code


def test_an_owner_has_all_settings_by_short_names():
    headers = {"x-container-sysmeta-a-b": "1", "x-container-meta-c": "2"}
    assert owner_sysmeta(account(Below(headers=headers)), "bucket") == {"a-b": "1"}


def test_what_a_bucket_forbids_is_not_guessed_where_nobody_knows():
    asking = account(Below(503), named="AUTH_test")
    assert code_of(asking.bucket_sysmeta, "bucket") == "ServiceUnavailable"
    assert asking.has_bucket("bucket"), "it may be there"


@pytest.mark.parametrize(
    ("status", "code"), [(404, "NoSuchBucket"), (409, "ServiceUnavailable"), (503, "ServiceUnavailable")]
)
def test_what_must_be_done_is_an_error_when_it_is_not(status, code):
    with pytest.raises(S3Error) as refused:
        account(Below(status)).require_success("PUT", "bucket")
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("key", "is_owner"),
    [("", True), ("k", False)],
)
def test_what_is_decided_for_a_bucket_may_read_and_write_its_acl_and_no_more(key, is_owner):
    asking = account(Below())
    sub = with_trusted_bucket(asking, "bucket").subrequest("POST", "bucket", key)
    assert sub.env[environkeys.AUTHORIZE](sub) is None
    assert bool(sub.env.get(environkeys.OWNER)) is is_owner
    elsewhere = with_trusted_bucket(asking, "bucket").subrequest("POST", "bucket", key)
    elsewhere.set_entity(Entity("v1", elsewhere.entity.path._replace(container="other")))
    assert elsewhere.env[environkeys.AUTHORIZE](elsewhere).status == 403
    assert not elsewhere.env.get(environkeys.OWNER)


def test_who_is_let_in_for_something_else_is_not_taken_for_the_owner_of_a_key():
    env = {environkeys.AUTHORIZE_OVERRIDE: True, environkeys.REMOTE_USER: ".wsgi.tempurl"}
    known, below = KnownAccounts(), Below(user="somebody:else")
    with pytest.raises(S3Error) as refused:
        account(below, env=env, known=known)
    assert refused.value.code == "SignatureDoesNotMatch"
    assert environkeys.AUTHORIZE_OVERRIDE not in below.asked[0].env
    assert known.find(Request("GET", "/"), "test:tester") == ""
