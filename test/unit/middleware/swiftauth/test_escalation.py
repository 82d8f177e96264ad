"""swiftauth: no credentials give more rights than meant, and no tenant reaches another."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from swift import green
from swift.identity.admin.base import NoSuchIdentity
from swift.identity.names import InvalidIdentity
from swift.identity.records import KEYS_MAX, AccessKey, User
from test.unit.middleware.swiftauth.test_filter import OPER, OWNER, USER, C, World


@pytest.fixture
def world():
    made = World()
    made.op("CreateUser", user="t:owner", password="owner-password", groups=[".admin"])
    made.op("CreateUser", user="t:user", password="user-password")
    made.op("CreateUser", user="t:op", password="op-password", groups=[".reseller_admin"])
    made.op("CreateUser", user="o:owner", password="other-password", groups=[".admin"])
    made.op("CreateAccessKey", user="t:owner", access_key="OWNER", secret_key="owner-secret")
    made.op("CreateAccessKey", user="t:user", access_key="USER", secret_key="user-secret")
    made.op("CreateAccessKey", user="t:op", access_key="OPER", secret_key="oper-secret")
    return made


def call(world, token, operation, body=None, **params):
    tree = {"operation": operation, "parameters": params}
    response = world.send(
        "POST", "/auth/identity", {"x-auth-token": token}, body or json.dumps(tree).encode()
    )
    return response.status, json.loads(response.read_body(1 << 20) or b"null")


# --- operators ----------------------------------------------------------------------------------------

ROLE = {"Effect": "Allow", "Principal": {"AWS": "t:op"}, "Action": "sts:AssumeRole"}
TRUST = json.dumps({"Version": "2012-10-17", "Statement": [ROLE]})
DENY_ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}


@pytest.mark.parametrize(
    "operation, params",
    [
        ("SetPassword", {"user": "t:op", "password": "mine-from-now"}),
        ("CreateAccessKey", {"user": "t:op"}),
        ("UpdateAccessKey", {"access_key": "OPER", "disabled": False}),
        ("DeleteAccessKey", {"access_key": "OPER"}),
        ("UpdateUser", {"user": "t:op", "disabled": True}),
        ("DeleteUser", {"user": "t:op"}),
        ("RevokeSessions", {"user": "t:op"}),
        ("AddUserToGroup", {"user": "t:op", "group": "staff"}),
        ("PutInlinePolicy", {"user": "t:op", "name": "deny", "document": json.dumps(DENY_ALL)}),
        ("UpdateRole", {"role": "t:root", "trust": TRUST}),
        ("DeleteRole", {"role": "t:root"}),
    ],
)
def test_the_owner_of_a_tenant_does_not_change_the_operators_in_it(world, operation, params):
    world.op("CreateGroup", group="t:staff")
    world.op("CreateRole", role="t:root", trust=TRUST, groups=[".reseller_admin"])
    before = json.dumps(sorted(map(repr, world.pipeline.containers.items())))
    status, answer = call(world, world.token("t:owner", "owner-password"), operation, **params)
    assert (status, answer["error"]) == (403, f"{operation}: only operators may change operators")
    assert json.dumps(sorted(map(repr, world.pipeline.containers.items()))) == before


def test_operators_change_themselves_and_owners_all_others(world):
    assert call(world, world.token("t:op", "op-password"), "CreateAccessKey", user="t:op")[0] == 200
    owner = world.token("t:owner", "owner-password")
    assert call(world, owner, "CreateAccessKey", user="t:user")[0] == 200
    assert call(world, owner, "GetUser", user="t:op")[0] == 200


@pytest.mark.parametrize(
    "operation", ["ListProviders", "ListTenants", "GetProvider", "DeleteProvider", "PutProvider"]
)
def test_limits_of_an_operators_key_hold_for_what_only_operators_do(world, operation):
    world.op("CreateAccessKey", user="t:op", access_key="NARROW", secret_key="narrow-secret", container="c")
    params = {
        "GetProvider": {"provider": "p"},
        "DeleteProvider": {"provider": "p"},
        "PutProvider": {"provider": "p", "settings": "{}"},
    }.get(operation, {})
    status, _ = call(world, world.token("NARROW", "narrow-secret"), operation, **params)
    assert status == 403
    status, _ = call(world, world.token("t:op", "op-password"), operation, **params)
    assert status in (200, 400, 404)


# --- service tokens -----------------------------------------------------------------------------------


def test_a_service_token_does_not_lend_its_owners_rights_without_its_limits(world):
    """Any user at all could present the token of a limited key beside its own."""
    world.op(
        "CreateAccessKey", user="t:owner", access_key="NARROW", secret_key="narrow-secret", container="c"
    )
    narrow = world.token("NARROW", "narrow-secret")
    assert world.send("PUT", C, {"x-auth-token": narrow}).status == 403
    other = {"x-auth-token": world.token("o:owner", "other-password"), "x-service-token": narrow}
    assert world.send("PUT", C, other).status == 403
    full = {**other, "x-service-token": world.token("t:op", "op-password")}
    assert world.send("PUT", C, full).status == 403


# --- names --------------------------------------------------------------------------------------------


def test_an_access_key_does_not_take_the_name_of_another_user(world):
    """Log-in prefers a key of the name: its user could not log in any more."""
    user = world.token("t:user", "user-password")
    for name in ("o:owner", "t:owner", "x:y"):
        status, answer = call(world, user, "CreateAccessKey", user="t:user", access_key=name)
        assert (status, answer["field"]) == (400, "access_key")
    assert call(world, user, "CreateAccessKey", user="t:user", access_key="t:user")[0] == 200


def test_a_user_whose_key_has_its_name_logs_in_with_either_secret(world):
    world.op("CreateAccessKey", user="t:user", access_key="t:user", secret_key="key-secret")
    assert world.login("t:user", "user-password").status == 200
    assert world.login("t:user", "key-secret").status == 200
    assert world.login("t:user", "neither").status == 401


# --- credentials that end -----------------------------------------------------------------------------


def test_credentials_that_end_make_none_that_do_not(world):
    end = world.made.clock.now + 3600
    world.op("CreateAccessKey", user="t:user", access_key="ENDS", secret_key="ends-secret", ends=end)
    token = world.token("ENDS", "ends-secret")
    for operation, params in (
        ("CreateAccessKey", {"user": "t:user"}),
        ("UpdateAccessKey", {"access_key": "ENDS", "ends": 0}),
        ("SetPassword", {"user": "t:user", "password": "lasting-password"}),
    ):
        assert call(world, token, operation, **params)[0] == 403
    assert call(world, token, "ListAccessKeys", user="t:user")[0] == 200


def test_temporary_keys_make_no_lasting_ones(world):
    text = world.query(USER, "GetSessionToken").read_body(1 << 16).decode()
    keys = [
        text.split(f"<{name}>")[1].split("<")[0]
        for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")
    ]
    assert world.query(keys, "CreateAccessKey").status == 403
    assert world.query(keys, "ListAccessKeys").status == 200
    assert world.query(USER, "CreateAccessKey").status == 200


# --- delegated rights ---------------------------------------------------------------------------------


def delegate(world, *statements):
    document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    world.op("PutInlinePolicy", user="t:user", name="delegated", document=document)
    return world.token("t:user", "user-password")


def allow(*actions, resource="*"):
    return {"Effect": "Allow", "Action": [f"iam:{action}" for action in actions], "Resource": resource}


def test_who_may_create_users_and_roles_only_gives_them_no_rights(world):
    token = delegate(world, allow("CreateUser", "CreateRole", "UpdateRole"))
    world.op("CreateRole", role="t:r", trust=TRUST)
    assert call(world, token, "CreateUser", user="t:new")[0] == 200
    assert call(world, token, "UpdateRole", role="t:r", note="n")[0] == 200
    for operation, params in (
        ("CreateUser", {"user": "t:a", "groups": [".admin"]}),
        ("CreateUser", {"user": "t:a", "policies": ["admin"]}),
        ("CreateUser", {"user": "t:a", "password": "some-password"}),
        ("CreateRole", {"role": "t:a", "trust": TRUST, "groups": [".admin"]}),
        ("CreateRole", {"role": "t:a", "trust": TRUST, "policies": ["admin"]}),
        ("UpdateRole", {"role": "t:r", "groups": [".admin"]}),
        ("UpdateRole", {"role": "t:r", "trust": TRUST}),
    ):
        assert call(world, token, operation, **params)[0] == 403, (operation, params)


def test_the_group_is_the_resource_of_joining_it(world):
    world.op("CreateGroup", group="t:staff")
    world.op("CreateGroup", group="t:chiefs")
    token = delegate(
        world, allow("AddUserToGroup", resource="arn:aws:iam::t:group/staff"), allow("CreateUser")
    )
    assert call(world, token, "AddUserToGroup", user="t:user", group="staff")[0] == 200
    assert call(world, token, "CreateUser", user="t:a", groups=["staff"])[0] == 200
    for group in ("chiefs", ".admin"):
        assert call(world, token, "AddUserToGroup", user="t:user", group=group)[0] == 403
        assert call(world, token, "CreateUser", user="t:b", groups=["staff", group])[0] == 403


# --- other accounts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["AUTH_o:cat", "arn:aws:s3:::AUTH_o:cat/k", ".swiftauth:users"])
def test_questions_about_policies_tell_nothing_about_other_accounts(world, resource):
    other = {"x-auth-token": world.token("o:owner", "other-password"), "x-container-read": "o:secret-friend"}
    assert world.send("PUT", "/v1/AUTH_o/cat", other).status == 201
    asked = {"user": "t:user", "action": "s3:GetObject", "resource": resource}
    status, answer = call(world, world.token("t:owner", "owner-password"), "CheckPolicy", **asked)
    assert (status, "secret-friend" in str(answer)) == (403, False)
    assert call(world, world.token("t:op", "op-password"), "CheckPolicy", **asked)[0] == 200
    own = {**asked, "resource": "AUTH_t:cat"}
    assert call(world, world.token("t:owner", "owner-password"), "CheckPolicy", **own)[0] == 200


# --- bad values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1" + "0" * 400])
def test_numbers_that_are_no_times_damage_no_record(world, number):
    token = world.token("t:user", "user-password")
    for operation, start in (
        ("CreateAccessKey", '"user": "t:user"'),
        ("RevokeToken", '"user": "t:user", "token_id": "abc"'),
    ):
        body = f'{{"operation": "{operation}", "parameters": {{{start}, "ends": {number}}}}}'
        status, answer = call(world, token, operation, body.encode())
        assert (status, answer["field"]) == (400, "ends")
    assert call(world, token, "ListAccessKeys", user="t:user")[0] == 200


def test_ids_of_tokens_are_short(world):
    token = world.token("t:user", "user-password")
    for token_id in ("x" * 65, "", "\ud800"):
        status, answer = call(world, token, "RevokeToken", user="t:user", token_id=token_id, ends=1)
        assert (status, answer["field"]) == (400, "token_id")


def test_a_password_of_half_characters_is_refused(world):
    token = world.token("t:user", "user-password")
    status, answer = call(world, token, "SetPassword", user="t:user", password="\ud800" * 9)
    assert (status, answer["field"]) == (400, "password")


def test_a_form_for_a_bucket_is_none_for_sts(world):
    """DeleteObjects of a bucket's host has the same path as STS."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    response = world.s3_send("POST", "/?delete", OWNER, b"<Delete/>", form)
    assert b"<ErrorResponse" not in response.read_body(1 << 16)
    assert world.query(OPER, "GetCallerIdentity").status == 200


# --- races --------------------------------------------------------------------------------------------


def test_a_user_is_in_no_group_that_was_deleted_while_it_joined(world):
    """A later group of the name would give it rights."""
    world.op("CreateGroup", group="t:staff")

    def delete_group(request):
        if request.method == "PUT" and request.entity.path[1:] == ("users", "t:user"):
            world.pipeline.before = lambda _request: None
            world.op("DeleteGroup", group="t:staff")

    world.pipeline.before = delete_group
    with pytest.raises(NoSuchIdentity):
        world.op("AddUserToGroup", user="t:user", group="staff")
    assert world.op("GetUser", user="t:user")["groups"] == []


def test_a_key_that_is_made_while_its_user_is_deleted_is_gone(world):
    def delete_user(request):
        if request.method == "PUT" and request.entity.path[1:] == ("keys", "LATE"):
            world.pipeline.before = lambda _request: None
            world.op("DeleteUser", user="t:user")

    world.pipeline.before = delete_user
    with pytest.raises(NoSuchIdentity):
        world.op("CreateAccessKey", user="t:user", access_key="LATE", secret_key="late-secret")
    assert world.made.store.read(AccessKey, "LATE").record is None


def test_keys_made_at_once_are_limited_too(world):
    for _ in range(KEYS_MAX - 2):
        world.op("CreateAccessKey", user="t:user")

    def create(request):
        if request.method == "PUT" and request.entity.path[1:] == ("keys", "LATE"):
            world.pipeline.before = lambda _request: None
            world.op("CreateAccessKey", user="t:user", access_key="FIRST")

    world.pipeline.before = create
    with pytest.raises(InvalidIdentity):
        world.op("CreateAccessKey", user="t:user", access_key="LATE", secret_key="late-secret")
    assert len(world.op("GetUser", user="t:user")["keys"]) == KEYS_MAX
    assert world.made.store.read(AccessKey, "LATE").record is None


def test_a_proxy_whose_clock_is_behind_makes_keys_that_work_and_revives_no_token(world):
    token = world.token("t:user", "user-password")
    world.made.clock.now += 60
    world.op("RevokeSessions", user="t:user")
    world.op("CreateUser", user="t:late", password="late-password")
    world.made.clock.now -= 61
    world.op("CreateAccessKey", user="t:late", access_key="LATE", secret_key="late-secret")
    world.op("SetPassword", user="t:user", password="next-password")
    world.made.clock.now += 61
    assert world.login("LATE", "late-secret").status == 200
    assert world.send("GET", "/v1/AUTH_t", {"x-auth-token": token}).status == 401


def test_a_user_is_deleted_with_its_own_keys_only(world):
    """The name of a key that was deleted is free for others, even if its user still lists it."""
    world.op("DeleteAccessKey", access_key="USER")
    world.op("CreateAccessKey", user="o:owner", access_key="USER", secret_key="other-secret")
    world.made.store.update(User, "t:user", lambda user: replace(user, keys=("USER",)))
    world.op("DeleteUser", user="t:user")
    assert world.login("USER", "other-secret").status == 200


# --- guesses ------------------------------------------------------------------------------------------


def test_guesses_that_wait_for_a_thread_are_slowed_by_those_before(world):
    """All of them passed the first look, before one was found to be wrong."""
    statuses, hashed = [], []
    passwords = world.made.passwords

    def run_later(function, *args):
        green.sleep(0.001)
        return function(*args)

    passwords._run = run_later
    passwords._hasher = SimpleNamespace(verify=lambda _hashed, _password: hashed.append(1))
    guesses = [
        green.spawn(lambda: statuses.append(world.login("t:user", "a guess").status)) for _ in range(20)
    ]
    for guess in guesses:
        guess.wait()
    assert len(hashed) == 5
    assert statuses.count(429) == 15
