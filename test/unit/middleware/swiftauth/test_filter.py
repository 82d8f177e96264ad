"""swiftauth: log-ins, tokens, keys, and one decision for every request."""

import hmac
import json
import time
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

from swift.http import fields
from swift.http.body import RequestBody
from swift.http.request import Request
from swift.identity.passwords import LoginBrake
from swift.identity.records import Role
from swift.middleware.swiftauth.filter import Swiftauth
from swift.middleware.swiftauth.people import People
from swift.middleware.swiftauth.service import IdentityService
from swift.middleware.swiftauth.settings import SwiftauthSettings
from swift.middleware.swiftauth.webidentity import WebIdentities, WebIdentity, is_trusted
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings, parse_users
from swift.middleware.tempurl.filter import TempURL, TempURLSettings
from swift.runtime.wsgi import response_or_error
from swift.s3.core.call import Features
from swift.s3.core.codec import POLICY
from swift.s3.core.settings import S3Settings
from swift.s3.filter import S3Api
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.identities import KEYS, make_identities
from test.support.oidc import FakeProvider
from test.support.s3 import signed_headers
from test.support.sim import MemoryCache


class World:
    """The filters of a proxy over memory, and requests to them."""

    def __init__(self, *, tempauth_users=None, verifier=None, public_url="", **options):
        self.made = make_identities()
        self.pipeline = self.made.pipeline
        telemetry = Telemetry(silent_log())
        below = self.pipeline
        if tempauth_users is not None:
            below = Tempauth(
                below, TempauthSettings(), parse_users(tempauth_users), tempauth_users, telemetry
            )
        settings = SwiftauthSettings.parse({name: str(value) for name, value in options.items()})

        def make(_forward):
            made = self.made
            verifiers = SimpleNamespace(of=lambda _provider: verifier)
            web = WebIdentities(made.cache, KEYS, lambda: verifiers, monotonic=made.clock)
            service = IdentityService(
                *(made.directory, made.operations, made.passwords, LoginBrake(made.clock), KEYS, web),
                telemetry.log,
            )
            return service, People(service, made.clock, public_url=public_url)

        self.filter = Swiftauth(below, settings, make, {"AUTH_": ""}, telemetry, now=self.made.clock)
        self.s3 = S3Api(self.filter, S3Settings(), telemetry, Features(query_api=True))

    def op(self, operation, **params):
        return self.made.operations.call(operation, params, None, SimpleNamespace(values=lambda _key: None))

    def send(self, method, path, headers=None, body=b"", *, address="10.0.0.9", as_sent=bytes):
        target, _, query = path.partition("?")
        given = {name.lower(): value for name, value in (headers or {}).items()}
        sent = {"host": "h", "content-length": str(len(body)), **given}
        env = {"swift.cache": MemoryCache(), "swift.trans_id": "tx1"}
        request = Request(method, target, sent, as_sent(body), query=query, env=env, remote_addr=address)
        self.request = request
        return response_or_error(self.s3.handle, request)

    def login(self, user, key, **how):
        return self.send("GET", "/auth/v1.0", {"x-auth-user": user, "x-auth-key": key}, **how)

    def token(self, user, key):
        response = self.login(user, key)
        assert response.status == 200, response.status
        return response.headers["x-auth-token"]

    def s3_send(self, method, path, keys, body=b"", headers=None):
        access_key, secret, *rest = keys
        extra = {**(headers or {}), **({"x-amz-security-token": rest[0]} if rest else {})}
        signed = signed_headers(method, "http://h" + path, extra, body, user=access_key, secret=secret)
        return self.send(method, path, signed, body)

    def query(self, keys, action, **params):
        body = urlencode({"Action": action, "Version": "1", **params}).encode()
        return self.s3_send("POST", "/", keys, body, {"content-type": "application/x-www-form-urlencoded"})


@pytest.fixture
def world():
    made = World()
    made.op("CreateUser", user="t:owner", password="owner-password", groups=[".admin"])
    made.op("CreateUser", user="t:user", password="user-password")
    made.op("CreateUser", user="o:owner", password="other-password", groups=[".admin"])
    made.op("CreateUser", user="a:op", password="op-password", groups=[".admin", ".reseller_admin"])
    made.op("CreateAccessKey", user="t:owner", access_key="OWNER", secret_key="owner-secret")
    made.op("CreateAccessKey", user="t:user", access_key="USER", secret_key="user-secret")
    made.op("CreateAccessKey", user="a:op", access_key="OPER", secret_key="oper-secret")
    return made


OWNER, USER, OPER = ("OWNER", "owner-secret"), ("USER", "user-secret"), ("OPER", "oper-secret")
#: A container, with a policy or an ACL.
C = "/v1/AUTH_t/cat"


def with_policy(world, *statements, account="AUTH_t", container="cat"):
    document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    key = account, container
    world.pipeline.containers.setdefault(key, {})
    world.pipeline.metadata[key] = POLICY.encode(document.encode())


def statement(effect, action, principal="*", resource="arn:aws:s3:::cat/*"):
    return {"Effect": effect, "Principal": principal, "Action": action, "Resource": resource}


# --- log-in -------------------------------------------------------------------------------------------


def test_a_log_in_gives_a_token_that_works_and_ends(world):
    response = world.login("t:owner", "owner-password")
    assert response.status == 200
    assert response.headers["x-storage-url"] == "http://h/v1/AUTH_t"
    assert response.headers["x-auth-token-expires"] == "86400"
    assert response.headers["cache-control"] == "no-store"
    token = {"x-auth-token": response.headers["x-auth-token"]}
    assert world.send("PUT", C, token).status == 201
    assert world.send("PUT", C, {}).status == 401
    world.made.clock.now += 86400
    assert world.send("PUT", C, token).status == 401


@pytest.mark.parametrize(
    "user, key",
    [("t:owner", "wrong"), ("t:missing", "x"), ("t", "x"), ("", ""), ("t:a/b", "x"), ("é:\x00", "")],
)
def test_a_wrong_log_in_is_401_whether_there_is_such_a_user_or_not(world, user, key):
    response = world.login(user, key)
    assert response.status == 401
    assert "x-auth-token" not in response.headers


def test_a_disabled_user_and_one_without_a_password_cannot_log_in(world):
    world.op("UpdateUser", user="t:user", disabled=True)
    world.op("CreateUser", user="t:keys")
    assert world.login("t:user", "user-password").status == 401
    assert world.login("t:keys", "").status == 401


def test_an_access_key_logs_in_and_its_limits_stay(world):
    key = world.op("CreateAccessKey", user="t:owner", read_only=True)
    token = {"x-auth-token": world.token(key["access_key"], key["secret_key"])}
    assert world.send("PUT", C, token).status == 403
    world.send("PUT", C, {"x-auth-token": world.token("t:owner", "owner-password")})
    assert world.send("GET", C, token).status == 200
    world.op("DeleteAccessKey", access_key=key["access_key"])
    assert world.send("GET", C, token).status == 401
    assert world.login(key["access_key"], key["secret_key"]).status == 401


def test_guesses_are_slowed_for_one_address(world):
    for _ in range(5):
        assert world.login("t:owner", "wrong").status == 401
    response = world.login("t:owner", "owner-password")
    assert response.status == 429
    assert int(response.headers["retry-after"]) >= 1
    assert world.login("t:owner", "owner-password", address="10.0.0.8").status == 200
    for _ in range(5):
        world.login("OWNER", "wrong")
    assert world.login("OWNER", "owner-secret").status == 429


def test_other_paths_and_methods_of_the_log_in(world):
    headers = {"x-storage-user": "owner", "x-storage-pass": "owner-password"}
    assert world.send("GET", "/auth/v1/t/auth", headers).status == 200
    assert world.send("GET", "/auth/v1/o/auth", {**headers, "x-storage-user": "t:owner"}).status == 401
    for method, path, status in (
        ("POST", "/auth/v1.0", 405),
        ("GET", "/auth/", 404),
        ("GET", "/auth/v3/x", 400),
        ("GET", "/auth/token", 405),
        ("GET", "/auth/oidc/none/login", 404),
        ("GET", "/auth/identity", 405),
        ("GET", "/auth/session-keys", 405),
    ):
        assert world.send(method, path).status == status, path


def test_a_client_ends_its_own_token(world):
    token = {"x-auth-token": world.token("t:owner", "owner-password")}
    assert world.send("DELETE", "/auth/token", token).status == 204
    assert world.send("GET", "/v1/AUTH_t", token).status == 401
    assert world.send("DELETE", "/auth/token", token).status == 401
    assert world.send("DELETE", "/auth/token", {"x-auth-token": "AUTH_satx"}).status == 401


@pytest.mark.parametrize("token", ["AUTH_satx.y.z", "AUTH_sat", "AUTH_tkabc", "AUTH_"])
def test_other_tokens_are_refused(world, token):
    assert world.send("GET", "/v1/AUTH_t", {"x-auth-token": token}).status == 401


# --- rights -------------------------------------------------------------------------------------------


def test_a_user_without_rights_needs_an_acl(world):
    owner = {"x-auth-token": world.token("t:owner", "owner-password")}
    user = {"x-auth-token": world.token("t:user", "user-password")}
    world.send("PUT", C, owner)
    assert world.send("GET", C, user).status == 403
    world.pipeline.metadata["AUTH_t", "cat"]["x-container-read"] = "t:user"
    assert world.send("GET", C, user).status == 200
    assert world.send("PUT", f"{C}/o", user).status == 403


def test_policies_of_users_hold_for_both_apis(world):
    world.send("PUT", C, {"x-auth-token": world.token("t:owner", "owner-password")})
    document = {"Statement": [statement("Allow", ["s3:PutObject", "s3:GetObject"])]}
    del document["Statement"][0]["Principal"]
    world.op("PutInlinePolicy", user="t:user", name="p", document=json.dumps(document))
    user = {"x-auth-token": world.token("t:user", "user-password")}
    assert world.send("PUT", f"{C}/o", user, b"x").status == 201
    assert world.send("GET", f"{C}/o", user).status == 200
    assert world.send("DELETE", f"{C}/o", user).status == 403
    assert world.send("GET", C, user).status == 403
    assert world.s3_send("PUT", "/cat/o2", USER, b"x").status == 200
    assert world.s3_send("GET", "/cat/o2", USER).status == 200
    assert world.s3_send("DELETE", "/cat/o2", USER).status == 403
    assert world.s3_send("GET", "/cat", USER).status == 403
    assert world.s3_send("GET", "/", USER).status == 403


def test_policies_of_buckets_hold_for_both_apis(world):
    with_policy(
        world,
        statement("Allow", "s3:GetObject", {"AWS": "arn:aws:iam::t:user/user"}),
        statement("Deny", "s3:DeleteObject"),
    )
    owner = {"x-auth-token": world.token("t:owner", "owner-password")}
    user = {"x-auth-token": world.token("t:user", "user-password")}
    assert world.send("PUT", f"{C}/o", owner, b"x").status == 201
    assert world.send("GET", f"{C}/o", user).status == 200
    assert world.send("PUT", f"{C}/o", user, b"x").status == 403
    assert world.send("DELETE", f"{C}/o", owner).status == 403
    assert world.s3_send("DELETE", "/cat/o", OWNER).status == 403
    assert world.send("DELETE", f"{C}/o", {"x-auth-token": world.token("a:op", "op-password")}).status == 403
    assert world.send("GET", f"{C}/o").status == 401


def test_anonymous_requests_reach_what_a_bucket_policy_opens(world):
    with_policy(world, statement("Allow", "s3:GetObject"))
    world.pipeline.containers["AUTH_t", "cat"]["o"] = b"x", {}
    assert world.send("GET", f"{C}/o").status == 200
    assert world.send("PUT", f"{C}/o", body=b"y").status == 401
    assert world.send("GET", C).status == 401
    world.pipeline.metadata["AUTH_t", "cat"][fields.SYSMETA_S3_BUCKET_BLOCK] = "RestrictPublicBuckets"
    assert world.send("GET", f"{C}/o").status == 401


def test_across_tenants_both_sides_must_allow(world):
    with_policy(world, statement("Allow", "s3:GetObject", {"AWS": "arn:aws:iam::o:root"}))
    world.pipeline.containers["AUTH_t", "cat"]["o"] = b"x", {}
    world.op("CreateUser", user="o:user", password="o-password")
    world.op("CreateUser", user="o:reader", password="o-password", policies=["readonly"])
    for name, status in (("o:user", 403), ("o:reader", 200)):
        assert world.send("GET", f"{C}/o", {"x-auth-token": world.token(name, "o-password")}).status == status
    owner = {"x-auth-token": world.token("o:owner", "other-password")}
    assert world.send("GET", f"{C}/o", owner).status == 200
    assert world.send("PUT", f"{C}/o", owner, b"x").status == 403


def test_a_policy_that_cannot_be_read_lets_nobody_in(world):
    with_policy(world, statement("Allow", "s3:GetObject"))
    world.pipeline.metadata["AUTH_t", "cat"][POLICY.headers[0]] = "damaged"
    owner = {"x-auth-token": world.token("t:owner", "owner-password")}
    assert world.send("GET", f"{C}/o", owner).status == 503


def test_only_owners_see_what_is_for_owners(world):
    owner = {"x-auth-token": world.token("t:owner", "owner-password")}
    world.send("GET", "/v1/AUTH_t", owner)
    assert world.request.env["swift_owner"]
    world.op("AttachPolicy", user="t:user", policy="readonly")
    user = {"x-auth-token": world.token("t:user", "user-password")}
    world.send("PUT", C, owner)
    assert world.send("HEAD", C, user).status == 204
    assert not world.request.env.get("swift_owner")


def test_an_operator_reaches_all_accounts_and_a_denial_counts_for_it_too(world):
    operator = {"x-auth-token": world.token("a:op", "op-password")}
    assert world.send("PUT", C, operator).status == 201
    assert world.request.env["reseller_request"]
    world.op("PutInlinePolicy", user="a:op", name="no", document=DENY_PUT)
    world.made.clock.now += 31
    assert world.send("PUT", "/v1/AUTH_t/d", operator).status == 403


DENY_PUT = '{"Statement": {"Effect": "Deny", "Action": "s3:CreateBucket", "Resource": "*"}}'


def test_the_records_are_out_of_reach_of_all_but_operators(world):
    for name, key in (("t:owner", "owner-password"), ("t:user", "user-password")):
        token = {"x-auth-token": world.token(name, key)}
        assert world.send("GET", "/v1/.swiftauth/users/t:owner", token).status == 403
        assert world.send("PUT", "/v1/.swiftauth/users/t:evil", token, b"{}").status == 403
    assert world.send("GET", "/v1/.swiftauth/keys/OWNER").status == 401
    assert world.s3_send("GET", "/.swiftauth:keys/OWNER", OWNER).status == 403
    with_policy(world, statement("Allow", "*"), account=".swiftauth", container="keys")
    assert world.send("GET", "/v1/.swiftauth/keys/OWNER").status in (401, 503)


# --- S3 -----------------------------------------------------------------------------------------------


def test_an_access_key_signs_requests(world):
    assert world.s3_send("PUT", "/bucket", OWNER).status == 200
    assert ("AUTH_t", "bucket") in world.pipeline.containers
    assert world.s3_send("GET", "/bucket", ("OWNER", "wrong-secret")).status == 403
    assert world.s3_send("GET", "/bucket", ("NOBODY", "owner-secret")).status == 403
    world.op("UpdateAccessKey", access_key="OWNER", disabled=True)
    assert world.s3_send("GET", "/bucket", OWNER).status == 403


def texts(response, name):
    import re

    return re.findall(rf"<{name}>([^<]*)</{name}>", response.read_body().decode())


def session_of(response):
    body = response.read_body().decode()
    import re

    return tuple(
        re.search(rf"<{name}>([^<]*)</{name}>", body)[1]
        for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")
    )


def test_temporary_keys_work_until_they_end(world):
    response = world.query(OWNER, "GetSessionToken", DurationSeconds="900")
    assert response.status == 200
    keys = session_of(response)
    assert world.s3_send("PUT", "/bucket", keys).status == 200
    assert world.s3_send("GET", "/bucket", keys[:2]).status == 403, "without its token"
    assert world.s3_send("GET", "/bucket", (*keys[:2], keys[2] + "x")).status == 403
    assert world.s3_send("GET", "/bucket", (*OWNER, keys[2])).status == 403, "with another key"
    assert world.query(keys, "GetSessionToken").status == 403, "no chain of sessions"
    world.made.clock.now += 900
    assert world.s3_send("GET", "/bucket", keys).status == 403


TRUST = json.dumps(
    {
        "Statement": {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::t:user/user"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": "42"}},
        }
    }
)


def keys_of_token(world, token):
    response = world.send("POST", "/auth/session-keys", {"x-auth-token": token})
    assert response.status == 200, response.read_body()
    found = json.loads(response.read_body())
    assert set(found) == {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}
    return found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]


def test_a_token_gives_the_same_temporary_keys_each_time_and_they_end_with_it(world):
    token = world.token("OWNER", "owner-secret")
    keys = keys_of_token(world, token)
    assert keys == keys_of_token(world, token)
    assert keys[0] != keys_of_token(world, world.token("OWNER", "owner-secret"))[0]
    assert world.s3_send("PUT", "/bucket", keys).status == 200
    assert world.query(keys, "GetSessionToken").status == 403, "no chain of sessions"
    user_keys = keys_of_token(world, world.token("USER", "user-secret"))
    assert world.query(USER, "CreateAccessKey").status == 200
    assert texts(world.query(user_keys, "CreateAccessKey"), "Code") == ["AccessDenied"], "nor lasting keys"
    world.made.clock.now += 86400
    assert world.s3_send("GET", "/bucket", keys).status == 403
    assert world.send("POST", "/auth/session-keys", {"x-auth-token": token}).status == 401


def revoke_token(world, token):
    assert world.send("DELETE", "/auth/token", {"x-auth-token": token}).status == 204


@pytest.mark.parametrize(
    "end",
    [
        revoke_token,
        lambda world, _token: world.op("DeleteAccessKey", access_key="OWNER"),
        lambda world, _token: world.op("UpdateUser", user="t:owner", disabled=True),
        lambda world, _token: world.op("RevokeSessions", user="t:owner"),
    ],
)
def test_what_ends_a_token_ends_its_temporary_keys(world, end):
    token = world.token("OWNER", "owner-secret")
    keys = keys_of_token(world, token)
    assert world.s3_send("PUT", "/bucket", keys).status == 200
    world.made.clock.now += 1
    end(world, token)
    assert world.s3_send("GET", "/bucket", keys).status == 403


def test_temporary_keys_of_a_token_have_its_limits_and_can_be_denied(world):
    key = world.op("CreateAccessKey", user="t:owner", read_only=True)
    limited = world.token(key["access_key"], key["secret_key"])
    user = give(world, permit("sts:GetSessionToken", "*", effect="Deny"))
    assert world.s3_send("PUT", "/bucket", OWNER).status == 200
    keys = keys_of_token(world, limited)
    assert world.s3_send("GET", "/bucket", keys).status == 200
    assert world.s3_send("PUT", "/bucket/o", keys, b"x").status == 403
    assert world.send("POST", "/auth/session-keys", user).status == 403
    assert world.send("POST", "/auth/session-keys", {"x-auth-token": "AUTH_satx"}).status == 401


def test_a_role_is_taken_by_whom_it_trusts(world):
    world.op("CreateRole", role="t:r", trust=TRUST, policies=["readwrite"])
    world.s3_send("PUT", "/bucket", OWNER)
    wanted = {"RoleArn": "arn:aws:iam::t:role/r", "RoleSessionName": "job"}
    assert world.s3_send("PUT", "/bucket/o", USER, b"x").status == 403
    assert world.query(USER, "AssumeRole", **wanted).status == 403, "without the external id"
    assert world.query(OWNER, "AssumeRole", **wanted, ExternalId="42").status == 403, "owners are not trusted"
    response = world.query(USER, "AssumeRole", **wanted, ExternalId="42", Policy=READ_ONLY)
    assert response.status == 200
    keys = session_of(response)
    assert world.s3_send("PUT", "/bucket/o", keys, b"x").status == 403, "the session policy limits"
    keys = session_of(world.query(USER, "AssumeRole", **wanted, ExternalId="42"))
    assert world.s3_send("PUT", "/bucket/o", keys, b"x").status == 200
    identity = world.query(keys, "GetCallerIdentity")
    assert texts(identity, "Arn") == ["arn:aws:sts::t:assumed-role/r/job"]
    world.op("UpdateRole", role="t:r", disabled=True)
    assert world.s3_send("PUT", "/bucket/o", keys, b"x").status == 403


READ_ONLY = '{"Statement": {"Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}}'


@pytest.mark.parametrize(
    "params, code",
    [
        ({"RoleSessionName": None}, "ValidationError"),
        ({"RoleArn": None}, "ValidationError"),
        ({"RoleArn": "x"}, "ValidationError"),
        ({"RoleArn": "arn:aws:iam::t:role/none"}, "AccessDenied"),
        ({"RoleSessionName": "a b"}, "ValidationError"),
        ({"RoleSessionName": "j/x"}, "ValidationError"),
        ({"DurationSeconds": "899"}, "ValidationError"),
        ({"DurationSeconds": "3601"}, "ValidationError"),
        ({"DurationSeconds": "1e3"}, "ValidationError"),
        ({"Policy": "{"}, "MalformedPolicyDocument"),
        ({"Tags.member.1.Key": "k"}, "NotImplemented"),
        ({"PolicyArns.member.1.arn": "a"}, "NotImplemented"),
    ],
)
def test_bad_requests_for_a_role_are_named(world, params, code):
    world.op("CreateRole", role="t:r", trust=TRUST)
    good = {"ExternalId": "42", "RoleArn": "arn:aws:iam::t:role/r", "RoleSessionName": "job"}
    given = {name: value for name, value in {**good, **params}.items() if value is not None}
    response = world.query(USER, "AssumeRole", **given)
    assert texts(response, "Code") == [code]


def test_forms_without_a_signature_and_unknown_actions_are_refused(world):
    form = {"content-type": "application/x-www-form-urlencoded"}
    for body, code in (
        (b"Action=GetCallerIdentity", "MissingAuthenticationToken"),
        (b"Action=CreateUser&UserName=x", "MissingAuthenticationToken"),
        (b"Action=AssumeRoleWithWebIdentity", "ValidationError"),
        (b"Action=AssumeRoleWithWebIdentity&WebIdentityToken=x", "InvalidIdentityToken"),
        (b"Action=AssumeRoleWithSAML", "NotImplemented"),
        (b"Action=%3Cb%3E", "NotImplemented"),
        (b"Action=a&Action=b", "MalformedQueryString"),
        (b"\xff", "MalformedQueryString"),
        (b"x" * 200_000, "RequestEntityTooLarge"),
    ):
        response = world.send("POST", "/", form, body)
        assert texts(response, "Code") == [code], body[:40]
    response = world.query(("OWNER", "wrong"), "ListUsers")
    assert (response.status, texts(response, "Code")) == (403, ["SignatureDoesNotMatch"])


# --- IAM ----------------------------------------------------------------------------------------------


def test_an_owner_manages_the_users_of_its_tenant(world):
    assert world.query(OWNER, "CreateUser", UserName="new").status == 200
    key = world.query(OWNER, "CreateAccessKey", UserName="new")
    assert len(texts(key, "SecretAccessKey")) == 1
    assert texts(world.query(OWNER, "ListUsers"), "UserName") == ["new", "owner", "user"]
    arn = "arn:aws:iam::aws:policy/readonly"
    assert world.query(OWNER, "AttachUserPolicy", UserName="new", PolicyArn=arn).status == 200
    found = world.query(OWNER, "ListAttachedUserPolicies", UserName="new")
    assert texts(found, "PolicyName") == ["readonly"]
    assert texts(world.query(OWNER, "DeleteUser", UserName="new"), "Code") == ["DeleteConflict"]
    assert texts(world.query(OWNER, "GetUser", UserName="none"), "Code") == ["NoSuchEntity"]
    assert texts(world.query(OWNER, "CreateUser", UserName="new"), "Code") == ["EntityAlreadyExists"]
    assert texts(world.query(OWNER, "CreateUser", UserName="a/b"), "Code") == ["ValidationError"]
    assert texts(world.query(OWNER, "CreateUser", UserName="b", Tags="x"), "Code") == ["NotImplemented"]


def test_nobody_reaches_beyond_its_own(world):
    assert texts(world.query(USER, "ListUsers"), "Code") == ["AccessDenied"]
    assert texts(world.query(USER, "CreateUser", UserName="x"), "Code") == ["AccessDenied"]
    assert texts(world.query(OWNER, "CreateUser", UserName="o:evil"), "Code") == ["AccessDenied"]
    assert texts(world.query(OWNER, "DeleteUser", UserName="o:owner"), "Code") == ["AccessDenied"]
    assert texts(world.query(OWNER, "CreateAccessKey", UserName="a:op"), "Code") == ["AccessDenied"]
    assert texts(world.query(OWNER, "DeleteAccessKey", AccessKeyId="OPER"), "Code") == ["AccessDenied"]
    code = texts(world.query(OWNER, "AddUserToGroup", UserName="owner", GroupName=".reseller_admin"), "Code")
    assert code == ["AccessDenied"]
    assert world.query(OPER, "CreateUser", UserName="o:new").status == 200


def test_a_user_manages_its_own_keys_but_not_with_a_limited_one(world):
    made = world.query(USER, "CreateAccessKey")
    assert made.status == 200
    assert len(texts(world.query(USER, "ListAccessKeys"), "AccessKeyId")) == 2
    limited = world.op("CreateAccessKey", user="t:user", read_only=True)
    keys = limited["access_key"], limited["secret_key"]
    assert texts(world.query(keys, "CreateAccessKey"), "Code") == ["AccessDenied"]
    session = session_of(world.query(USER, "GetSessionToken"))
    assert world.query(session, "GetCallerIdentity").status == 200


def test_operations_come_as_json_too(world):
    token = {"x-auth-token": world.token("t:owner", "owner-password")}

    def post(tree, headers=token):
        body = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        response = world.send("POST", "/auth/identity", headers, body)
        return response.status, json.loads(response.read_body() or b"{}")

    status, found = post({"operation": "CreateUser", "parameters": {"user": "t:json"}})
    assert (status, found["user"]) == (200, "t:json")
    for tree, status, field in (
        ({"operation": "CreateUser", "parameters": {"user": "t:json"}}, 409, "name"),
        ({"operation": "GetUser", "parameters": {"user": "t:none"}}, 404, "user"),
        ({"operation": "GetUser", "parameters": {"user": 7}}, 400, "user"),
        ({"operation": "GetUser", "parameters": {}}, 400, "user"),
        ({"operation": "GetUser", "parameters": {"user": "t:json", "more": 1}}, 400, "more"),
        ({"operation": "GetUser", "parameters": []}, 400, "parameters"),
        ({"operation": "Nothing"}, 400, "operation"),
        ({"operation": "GetUser", "extra": 1}, 400, "parameters"),
        (b"[]", 400, "body"),
        (b"{", 400, "body"),
        (b"x" * 300_000, 400, "body"),
    ):
        code, answer = post(tree)
        assert (code, answer.get("field")) == (status, field), tree
    assert post({"operation": "CreateUser", "parameters": {"user": "o:x"}})[0] == 403
    imported = {"user": "t:x", "password": "x", "imported": True}
    assert post({"operation": "CreateUser", "parameters": imported})[0] == 403
    assert post({"operation": "ListTenants"})[0] == 403
    assert world.send("POST", "/auth/identity", {}, b"{}").status == 401


# --- outages, other filters ---------------------------------------------------------------------------


def test_without_the_records_known_users_go_on_and_others_get_503(world):
    token = {"x-auth-token": world.token("t:owner", "owner-password")}
    world.send("PUT", C, token)
    world.made.pipeline.before = fail_records
    world.made.clock.now += 40
    assert world.send("PUT", C, token).status in (201, 202)
    response = world.login("t:user", "user-password")
    assert response.status == 503
    assert response.headers["retry-after"]
    world.made.clock.now += 700
    assert world.send("PUT", C, token).status == 503


def fail_records(request):
    from swift.http.response import HTTPError

    if request.entity.path.account == ".swiftauth":
        raise HTTPError(503)


def test_a_damaged_record_refuses_its_user_only(world):
    tokens = {
        name: {"x-auth-token": world.token(f"t:{name}", f"{name}-password")} for name in ("owner", "user")
    }
    world.send("PUT", C, tokens["owner"])
    world.pipeline.containers[".swiftauth", "users"]["t:user"] = b"{", {}
    world.made.clock.now += 31
    assert world.send("GET", C, tokens["user"]).status == 403
    assert world.login("t:user", "user-password").status == 403
    assert world.send("GET", C, tokens["owner"]).status == 200


@pytest.mark.parametrize("kind", ["User", "Group", "Role", "Policy"])
def test_a_damaged_record_is_listed_by_name_beside_the_others(world, kind):
    plural, container = (f"{kind}s", f"{kind.lower()}s") if kind != "Policy" else ("Policies", "policies")
    more = {"Role": {"trust": TRUST}, "Policy": {"document": READ_ONLY}}.get(kind, {})
    for name in ("t:one", "t:two"):
        world.op(f"Create{kind}", **{kind.lower(): name}, **more)
    world.pipeline.containers[".swiftauth", container]["t:one"] = b"{", {}
    response = world.query(OWNER, f"List{plural}")
    assert response.status == 200
    text = response.read_body().decode()
    for name in ("one", "two"):
        assert f"<{kind}Name>{name}</{kind}Name>" in text
    assert text.count("<Status>damaged</Status>") == 1
    if kind in ("User", "Role"):
        denied = world.query(OWNER, f"Delete{kind}", **{f"{kind}Name": "one"})
        assert texts(denied, "Message") == [f"Delete{kind}: only operators may change operators"]
        assert world.query(OPER, f"Delete{kind}", **{f"{kind}Name": "t:one"}).status == 200
    elif kind == "Group":
        assert world.query(OWNER, "DeleteGroup", GroupName="one").status == 200


def test_the_owner_of_a_tenant_revokes_a_damaged_key_by_its_user(world):
    world.pipeline.containers[".swiftauth", "keys"]["USER"] = b"{", {}
    listed = world.query(OWNER, "ListAccessKeys", UserName="user")
    assert texts(listed, "Status") == ["damaged"]
    assert world.query(OWNER, "DeleteAccessKey", AccessKeyId="USER").status == 403
    assert world.query(OWNER, "DeleteAccessKey", AccessKeyId="USER", UserName="owner").status == 403
    assert world.query(OWNER, "DeleteAccessKey", AccessKeyId="USER", UserName="user").status == 200
    assert world.op("GetUser", user="t:user")["keys"] == []


def test_both_filters_serve_their_own_users_in_one_pipeline():
    users = {"user_t_old": "old-key .admin", "user_t_both": "both-key .admin"}
    world = World(tempauth_users=users, pass_unknown="true")
    world.op("CreateUser", user="t:new", password="new-password", groups=[".admin"])
    world.op("CreateUser", user="t:both", password="both-key", groups=[".admin"], imported=True)
    world.op("CreateAccessKey", user="t:new", access_key="NEW", secret_key="new-secret")
    for name, key in (("new", "new-password"), ("both", "both-key")):
        token = world.token(f"t:{name}", key)
        assert token.startswith("AUTH_sat")
        assert world.send("PUT", C, {"x-auth-token": token}).status in (201, 202)
    response = world.login("t:old", "old-key")
    assert response.status == 200, "the other filter logs in its user"
    old = {"x-auth-token": response.headers["x-auth-token"]}
    assert old["x-auth-token"].startswith("AUTH_tk")
    assert world.login("t:old", "wrong").status == 401
    assert world.login("t:both", "wrong").status == 401
    assert world.s3_send("PUT", "/bucket", ("NEW", "new-secret")).status == 200
    assert world.s3_send("GET", "/bucket", ("t:old", "old-key")).status == 200
    assert world.s3_send("GET", "/bucket", ("t:old", "wrong")).status == 403
    assert world.send("GET", "/v1/AUTH_t").status == 401


# --- web identities -----------------------------------------------------------------------------------


def test_a_role_trusts_providers_of_its_own_tenant_only(world):
    provider = FakeProvider(tenant="o")
    identity = WebIdentity(provider.provider, provider.verifier().verify(provider.token()))
    trust = json.dumps(
        {
            "Statement": {
                "Effect": "Allow",
                "Principal": {"Federated": provider.provider.name},
                "Action": "sts:AssumeRoleWithWebIdentity",
            }
        }
    )
    context = SimpleNamespace(values=lambda _key: None)
    assert is_trusted(Role("o:r", trust=trust), identity, context)
    assert not is_trusted(Role("t:r", trust=trust), identity, context)
    other = trust.replace(f'"{provider.provider.name}"', '"another"')
    assert not is_trusted(Role("o:r", trust=other), identity, context)


@pytest.mark.parametrize(
    "claims, expected",
    [
        ({"aud": "swift"}, {"aud": "swift"}),
        ({"aud": ["swift", "b"], "azp": "swift"}, {"aud": "swift", "oaud": ("swift", "b"), "azp": "swift"}),
        ({"aud": "swift", "azp": "app"}, {"aud": "app", "oaud": "swift", "azp": "app"}),
    ],
)
def test_the_audience_in_conditions_is_the_authorized_party_of_a_token_that_has_one(claims, expected):
    provider = FakeProvider()
    identity = WebIdentity(provider.provider, provider.verifier().verify(provider.token(**claims)))
    values = identity.condition_values()
    issuer = provider.provider.issuer.removeprefix("https://")
    found = {name: values.get(f"{issuer}:{name}") for name in ("aud", "oaud", "azp")}
    assert found == {"aud": None, "oaud": None, "azp": None, **expected}


# --- what a request changes beside what it names ------------------------------------------------------


def give(world, *statements):
    """Give the user a policy, and return the headers with its token."""
    document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    world.op("CreatePolicy", policy="t:mine", document=document)
    world.op("AttachPolicy", policy="mine", user="t:user")
    return {"x-auth-token": world.token("t:user", "user-password")}


def permit(action, *resources, effect="Allow"):
    return {"Effect": effect, "Action": action, "Resource": list(resources)}


@pytest.mark.parametrize("header", ["x-versions-location", "x-history-location"])
def test_the_archive_of_a_container_must_be_allowed_as_well(world, header):
    token = give(world, permit("s3:*", "arn:aws:s3:::cat", "arn:aws:s3:::cat/*", "arn:aws:s3:::old"))
    for container in ("cat", "old", "dog"):
        assert world.s3_send("PUT", f"/{container}", OWNER).status == 200
    assert world.send("POST", C, {**token, header: "old"}).status == 202
    assert world.send("POST", C, {**token, header: "dog"}).status == 403
    assert world.send("POST", C, {**token, header: "%64og"}).status == 403
    with_policy(world, statement("Deny", "s3:*", resource="arn:aws:s3:::old"), container="old")
    assert world.send("POST", C, {**token, header: "old"}).status == 403


def test_a_post_that_removes_tags_needs_the_right_to_remove_them(world):
    tags = {fields.TRANSIENT_S3_TAGGING: "class=secret"}
    assert world.s3_send("PUT", "/cat", OWNER).status == 200
    world.pipeline.containers["AUTH_t", "cat"] = {"plain": (b"x", {}), "tagged": (b"x", tags)}
    token = give(
        world, permit("s3:*", "arn:aws:s3:::cat/*"), permit("s3:DeleteObjectTagging", "*", effect="Deny")
    )
    assert world.send("POST", f"{C}/plain", token).status != 403
    assert world.send("POST", f"{C}/tagged", token).status == 403
    assert world.send("GET", f"{C}/tagged", token).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_only_operators_create_and_delete_accounts(world, method):
    token = give(world, permit("*", "*"))
    assert world.send(method, "/v1/AUTH_t", token).status == 403
    owner = {"x-auth-token": world.token("t:owner", "owner-password")}
    assert world.send(method, "/v1/AUTH_t", owner).status == 403
    operator = {"x-auth-token": world.token("a:op", "op-password")}
    assert world.send(method, "/v1/AUTH_t", operator).status in (201, 204)


class SlowBody(RequestBody):
    """A body that comes in small pieces, as from a socket."""

    def __init__(self, data):
        self.length, self.received, self._data = len(data), 0, data

    def read(self, size=-1):
        piece = self._data[self.received : self.received + min(size, 100)]
        self.received += len(piece)
        return piece


def test_a_long_form_may_come_in_pieces(world):
    document = json.dumps({"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}})
    body = urlencode(
        {"Action": "CreatePolicy", "PolicyName": "p", "PolicyDocument": document + " " * 5000}
    ).encode()
    form = {"content-type": "application/x-www-form-urlencoded"}
    signed = signed_headers("POST", "http://h/", form, body, user="OWNER", secret="owner-secret")
    assert world.send("POST", "/", signed, body, as_sent=SlowBody).status == 200


def test_an_error_of_a_signature_has_the_form_of_the_query_protocol(world):
    headers = {"content-type": "application/x-www-form-urlencoded", "authorization": "AWS4-HMAC-SHA256 x=y"}
    response = world.send("POST", "/", headers, b"Action=ListUsers")
    body = response.read_body().decode()
    assert body.startswith("<ErrorResponse><Error><Type>Sender</Type><Code>AuthorizationHeaderMalformed")


# --- requests with keys of Swift ----------------------------------------------------------------------


def signed_url(world, method, path, key="temp-key"):
    expires = int(time.time()) + 600
    message = f"{method}\n{expires}\n{path}".encode()
    signature = hmac.new(key.encode(), message, "sha256").hexdigest()
    return f"{path}?temp_url_sig={signature}&temp_url_expires={expires}"


@pytest.fixture
def signing(world):
    """Return the world with the filter of temporary URLs left of it, and a container with a key."""
    world.send("PUT", C, {"x-auth-token": world.token("t:owner", "owner-password")})
    with_key_and_policy(world, statement("Allow", "s3:GetObject"))
    world.send("PUT", f"{C}/o", {"x-auth-token": world.token("t:owner", "owner-password")}, b"body")
    world.s3 = TempURL(world.s3, TempURLSettings())
    return world


def with_key_and_policy(world, *statements):
    with_policy(world, *statements)
    world.pipeline.metadata["AUTH_t", "cat"]["x-container-meta-temp-url-key"] = "temp-key"


def test_a_temporary_url_needs_no_policy_but_a_denial_for_all_holds(signing):
    url = signed_url(signing, "GET", f"{C}/o")
    assert signing.send("GET", url).status == 200
    with_key_and_policy(signing, statement("Allow", "s3:GetObject", {"AWS": "arn:aws:iam::t:user/user"}))
    assert signing.send("GET", url).status == 200
    with_key_and_policy(signing, statement("Deny", "s3:GetObject", {"AWS": "arn:aws:iam::t:user/user"}))
    assert signing.send("GET", url).status == 200
    with_key_and_policy(signing, statement("Deny", "s3:PutObject"))
    assert signing.send("GET", url).status == 200
    assert signing.send("PUT", signed_url(signing, "PUT", f"{C}/o"), body=b"x").status == 403
    network = {"Condition": {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}
    with_key_and_policy(signing, {**statement("Deny", "s3:*"), **network})
    assert signing.send("GET", url).status == 200
    assert signing.send("GET", url, address="192.0.2.1").status == 403
    signing.pipeline.metadata["AUTH_t", "cat"][fields.SYSMETA_S3_BUCKET_POLICY] = "damaged"
    assert signing.send("GET", url).status == 503


def test_a_url_with_a_wrong_key_is_refused_before_policies(signing):
    with_key_and_policy(signing, statement("Allow", "s3:GetObject"))
    assert signing.send("GET", signed_url(signing, "GET", f"{C}/o", "wrong")).status == 401
