"""Callers are found by password, token, key and session, with the rights of their records, within a bound."""

import json

import pytest

from swift.gateway.documents import StoreUnavailable
from swift.identity.directory import POLICY_TEXT_MAX
from swift.identity.policy.evaluate import PolicyVerdict
from swift.identity.records import DamagedRecord, StoredPolicy, User
from swift.identity.rights import AccessRequest
from swift.identity.tokens import Ticket
from test.support.identities import OTHER_KEYS, make_identities

READ = '{"Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::c/*"}}'
NO_DELETE = '{"Statement":{"Effect":"Deny","Action":"s3:DeleteObject","Resource":"*"}}'


class NoValues:
    def values(self, _key):
        return None


@pytest.fixture
def world():
    return make_identities()


def call(world, operation, **params):
    return world.operations.call(operation, params, None, NoValues())


def ticket(world, name="t:u", **more):
    return Ticket(name, world.clock.now, world.clock.now + 3600, "id1", **more)


def verdict(caller, action, bucket="c", key="k", account="AUTH_t"):
    return caller.rights.decide(AccessRequest((action,), account, NoValues(), bucket, key), None).verdict


def test_a_caller_has_its_groups_and_the_policies_of_all_of_them(world):
    call(world, "CreatePolicy", policy="t:reads", document=READ)
    call(world, "CreateGroup", group="t:staff")
    call(world, "CreateGroup", group="t:plain", plain=True)
    call(world, "AttachPolicy", policy="reads", group="t:staff")
    call(world, "CreateUser", user="t:u", groups=["staff", "plain"])
    call(world, "PutInlinePolicy", name="own", document=NO_DELETE, user="t:u")
    caller = world.directory.caller_of_ticket(ticket(world))
    assert caller.groups == "t,t:u,t:group/staff,t:group/plain,plain"
    assert (caller.account, caller.tenant, caller.is_operator) == ("AUTH_t", "t", False)
    assert verdict(caller, "s3:GetObject") is PolicyVerdict.ALLOW
    assert verdict(caller, "s3:PutObject") is PolicyVerdict.SILENT
    assert verdict(caller, "s3:DeleteObject") is PolicyVerdict.DENY
    assert verdict(caller, "s3:GetObject", account="AUTH_other") is PolicyVerdict.SILENT


def test_rights_are_groups_with_a_dot(world):
    call(world, "CreateUser", user="t:owner", groups=[".admin"])
    call(world, "CreateUser", user="t:op", groups=[".admin", ".reseller_admin"])
    call(world, "CreateUser", user="t:reader", groups=[".reseller_reader"])
    owner, operator, reader = (
        world.directory.caller_of_ticket(ticket(world, f"t:{name}")) for name in ("owner", "op", "reader")
    )
    assert owner.groups == "t,t:owner,AUTH_t"
    assert operator.groups == "t,t:op,.reseller_admin,AUTH_t"
    assert operator.is_operator
    assert reader.groups == "t,t:reader,.reseller_reader"
    assert verdict(owner, "s3:PutObject") is PolicyVerdict.ALLOW
    assert verdict(owner, "s3:PutObject", account="AUTH_x") is PolicyVerdict.SILENT
    assert verdict(operator, "s3:PutObject", account="AUTH_x") is PolicyVerdict.ALLOW


@pytest.mark.parametrize("name", ["t:group/x", ".admin", "t", "AUTH_x", "a,b", "a b"])
def test_no_group_can_be_made_that_is_another_name_in_acls(world, name):
    from swift.identity.names import InvalidIdentity

    if name in ("t", "AUTH_x"):
        # A bare name needs an operator, and is qualified for all others.
        call(world, "CreateGroup", group=f"t:{name}")
        call(world, "CreateUser", user="t:u", groups=[name])
        assert world.directory.caller_of_ticket(ticket(world)).groups == f"t,t:u,t:group/{name}"
        return
    with pytest.raises(InvalidIdentity):
        call(world, "CreateGroup", group=f"t:{name}")


def test_changes_of_rights_count_within_the_bound(world):
    call(world, "CreateUser", user="t:u", groups=[".admin"])
    caller = world.directory.caller_of_ticket(ticket(world))
    assert verdict(caller, "s3:PutObject") is PolicyVerdict.ALLOW
    world.store.update(User, "t:u", lambda u: User(u.name, created=u.created))
    world.clock.now += 31
    caller = world.directory.caller_of_ticket(ticket(world))
    assert verdict(caller, "s3:PutObject") is PolicyVerdict.SILENT


def test_a_known_caller_costs_no_reading(world):
    call(world, "CreateUser", user="t:u", groups=[".admin"])
    world.directory.caller_of_ticket(ticket(world))
    count = len(world.pipeline.requests)
    for _ in range(100):
        assert world.directory.caller_of_ticket(ticket(world)) is not None
    assert len(world.pipeline.requests) == count


@pytest.mark.parametrize(
    "revoke",
    [
        lambda world: call(world, "UpdateUser", user="t:u", disabled=True),
        lambda world: call(world, "DeleteUser", user="t:u"),
        lambda world: call(world, "RevokeSessions", user="t:u"),
        lambda world: call(world, "RevokeToken", user="t:u", token_id="id1", ends=world.clock.now + 3600),
        lambda world: call(world, "SetPassword", user="t:u", password="another password"),
    ],
    ids=["disabled", "deleted", "log-out", "token", "password"],
)
def test_a_revoked_token_is_refused(world, revoke):
    call(world, "CreateUser", user="t:u", password="first password")
    token = ticket(world)
    assert world.directory.caller_of_ticket(token) is not None
    world.clock.now += 1
    revoke(world)
    assert world.directory.caller_of_ticket(token) is None


def test_a_user_of_the_same_name_does_not_inherit_tokens_and_keys(world):
    call(world, "CreateUser", user="t:u")
    key = call(world, "CreateAccessKey", user="t:u")
    token, stored = ticket(world), world.pipeline.containers[".swiftauth", "keys"][key["access_key"]]
    world.clock.now += 10
    call(world, "DeleteUser", user="t:u")
    world.clock.now += 10
    call(world, "CreateUser", user="t:u", groups=[".admin"])
    # A deletion that broke off has left the key.
    world.pipeline.containers[".swiftauth", "keys"][key["access_key"]] = stored
    world.clock.now += 31
    assert world.directory.caller_of_ticket(token) is None
    assert world.directory.find_key(key["access_key"], "").find_caller() is None


def test_an_access_key_has_its_secret_its_end_and_its_limits(world):
    call(world, "CreateUser", user="t:u", groups=[".admin"])
    made = call(
        world,
        "CreateAccessKey",
        user="t:u",
        ends=world.clock.now + 100,
        read_only=True,
        container="c",
        prefix="p/",
    )
    assert made["secret_key"] not in str(world.pipeline.document("keys", made["access_key"]))
    known = world.directory.find_key(made["access_key"], "")
    assert known.is_secret(made["secret_key"])
    assert not known.is_secret(made["secret_key"] + "x")
    assert known.user == "t:u"
    caller = known.find_caller()
    assert verdict(caller, "s3:GetObject", key="p/1") is PolicyVerdict.ALLOW
    for action, bucket, key in (
        ("s3:GetObject", "c", "q/1"),
        ("s3:GetObject", "d", "p/1"),
        ("s3:PutObject", "c", "p/1"),
        ("s3:CreateBucket", "d", ""),
        ("s3:ListAllMyBuckets", "", ""),
    ):
        assert verdict(caller, action, bucket, key) is PolicyVerdict.DENY, (action, bucket, key)
    world.clock.now += 100
    assert world.directory.find_key(made["access_key"], "") is None


@pytest.mark.parametrize(
    "text", ["", "x", "AKIA" + "A" * 200, "a/b", "a b", "é", "../users/t:u", "ASIAUNKNOWN"]
)
def test_other_texts_are_no_keys_and_are_not_looked_up(world, text):
    world.store.create_containers()
    count = len(world.pipeline.requests)
    assert world.directory.find_key(text, "") is None
    assert len(world.pipeline.requests) == count


def test_a_session_token_works_for_its_key_and_ends_with_the_parent_key(world):
    call(world, "CreateUser", user="t:u", groups=[".admin"])
    parent = call(world, "CreateAccessKey", user="t:u", read_only=True)["access_key"]
    session = ticket(world, access_key="ASIA7", parent=parent)
    token, secret = world.directory.tickets.make_session_token(session)
    known = world.directory.find_key("ASIA7", token)
    assert known.is_secret(secret)
    caller = known.find_caller()
    assert verdict(caller, "s3:GetObject") is PolicyVerdict.ALLOW
    assert verdict(caller, "s3:PutObject") is PolicyVerdict.DENY, "it has the limits of its parent"
    assert world.directory.find_key("ASIA8", token) is None
    assert world.directory.find_key(parent, token) is None
    other = make_identities(world.pipeline, keys=OTHER_KEYS)
    assert other.directory.find_key("ASIA7", token) is None
    call(world, "DeleteAccessKey", access_key=parent)
    assert world.directory.find_key("ASIA7", token).find_caller() is None


def test_a_role_gives_its_session_its_rights_and_no_more_than_the_session_policy(world):
    call(world, "CreateRole", role="t:r", trust=TRUST, policies=["readwrite"])
    session = ticket(world, "t:r", session="job", policy=READ, access_key="ASIA7")
    caller = world.directory.caller_of_ticket(session)
    assert (caller.name, caller.groups) == ("t:role/r/job", "t,t:role/r/job,t:role/r")
    assert verdict(caller, "s3:GetObject") is PolicyVerdict.ALLOW
    assert verdict(caller, "s3:PutObject") is PolicyVerdict.DENY
    world.clock.now += 1
    call(world, "RevokeSessions", role="t:r")
    assert world.directory.caller_of_ticket(session) is None


TRUST = (
    '{"Statement":{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::t:user/u"},"Action":"sts:AssumeRole"}}'
)


def test_a_damaged_policy_refuses_who_has_it_and_nobody_else(world):
    call(world, "CreatePolicy", policy="t:p", document=READ)
    call(world, "CreateUser", user="t:u", groups=[".admin"], policies=["p"])
    call(world, "CreateUser", user="t:other", groups=[".admin"])
    etag = world.store.read(StoredPolicy, "t:p").etag
    world.store.replace(StoredPolicy("t:p", "{"), etag)
    with pytest.raises(DamagedRecord):
        world.directory.caller_of_ticket(ticket(world))
    assert world.directory.caller_of_ticket(ticket(world, "t:other")) is not None


def test_a_caller_with_more_policies_than_a_request_may_evaluate_is_refused(world):
    statement = {"Effect": "Allow", "Action": "s3:GetObject"}
    names = [f"arn:aws:s3:::c/{number:04}{'*a' * 450}" for number in range(20)]
    document = json.dumps({"Statement": {**statement, "Resource": names}})
    count = POLICY_TEXT_MAX // len(document)
    for name in range(count + 1):
        call(world, "CreatePolicy", policy=f"t:p{name}", document=document)
    call(world, "CreateGroup", group="t:g")
    call(world, "AttachPolicy", policy="p0", group="t:g")
    call(world, "CreateUser", user="t:u", policies=[f"p{name}" for name in range(1, count + 1)])
    assert world.directory.caller_of_ticket(ticket(world)) is not None
    call(world, "AddUserToGroup", user="t:u", group="g")
    world.clock.now += 31
    with pytest.raises(DamagedRecord, match=f"more than {POLICY_TEXT_MAX} bytes"):
        world.directory.caller_of_ticket(ticket(world))


def test_known_callers_are_served_while_the_records_are_away_for_a_time(world):
    call(world, "CreateUser", user="t:u", groups=[".admin"])
    world.directory.caller_of_ticket(ticket(world))
    world.pipeline.is_down = True
    world.clock.now += 500
    assert world.directory.caller_of_ticket(ticket(world)) is not None
    world.clock.now += 200
    with pytest.raises(StoreUnavailable):
        world.directory.caller_of_ticket(ticket(world))


def test_the_last_use_of_a_key_is_stored_once_an_hour(world):
    call(world, "CreateUser", user="t:u")
    key = call(world, "CreateAccessKey", user="t:u")["access_key"]
    for _ in range(3):
        world.directory.note_use(key, "10.0.0.1")
        world.directory.note_use(key, "10.0.0.2")
    puts = [request for request in world.pipeline.requests if request.raw_path.endswith(f"/uses/{key}")]
    assert len(puts) == 1
    world.clock.now += 3600
    world.directory.note_use(key, "10.0.0.3")
    found = call(world, "ListAccessKeys", user="t:u")["keys"][0]
    assert found["last_address"] == "10.0.0.3"
    assert found["last_used"] == world.clock.now // 3600 * 3600
