"""Operations on identities: what they need, what they leave, and what two of them at once do."""

import pytest

from swift.identity.admin.base import IdentityExists, InUse, NoSuchIdentity
from swift.identity.admin.damage import check_records
from swift.identity.names import InvalidIdentity
from swift.identity.operations import EMPTY_CONTEXT, OPERATIONS
from swift.identity.records import KEYS_MAX, AccessKey, DamagedRecord, KeyUse, User
from test.support.identities import KEYS, OTHER_KEYS, make_identities

DOCUMENT = (
    '{"Statement":{"Sid":"Get","Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::c/*"}}'
)


@pytest.fixture
def world():
    return make_identities()


def call(world, operation, **params):
    return world.operations.call(operation, params, None, EMPTY_CONTEXT)


def test_what_refers_to_others_needs_them(world):
    for operation, params, error in (
        ("CreateUser", {"user": "t:u", "groups": ["none"]}, NoSuchIdentity),
        ("CreateUser", {"user": "t:u", "policies": ["none"]}, NoSuchIdentity),
        ("CreateAccessKey", {"user": "t:u"}, NoSuchIdentity),
        ("AttachPolicy", {"policy": "readonly", "user": "t:u"}, NoSuchIdentity),
        ("AttachPolicy", {"policy": "readonly", "user": "t:u", "group": "t:g"}, InvalidIdentity),
        ("AttachPolicy", {"policy": "readonly"}, InvalidIdentity),
        ("CreatePolicy", {"policy": "t:readonly", "document": DOCUMENT}, InvalidIdentity),
        ("CreatePolicy", {"policy": "t:p", "document": "{"}, InvalidIdentity),
        ("CreateRole", {"role": "t:r", "trust": DOCUMENT}, InvalidIdentity),
        ("CreateRole", {"role": "t:r", "trust": "{}", "groups": ["staff"]}, InvalidIdentity),
        ("DeleteUser", {"user": "t:u"}, NoSuchIdentity),
        ("RevokeSessions", {}, InvalidIdentity),
    ):
        with pytest.raises(error):
            call(world, operation, **params)
    assert not any(kind == "users" and objects for (_a, kind), objects in world.pipeline.containers.items())


def test_a_group_with_members_stays(world):
    call(world, "CreateGroup", group="t:g")
    call(world, "CreateUser", user="t:u", groups=["g"])
    assert call(world, "GetGroup", group="t:g")["members"] == ["t:u"]
    with pytest.raises(InUse):
        call(world, "DeleteGroup", group="t:g")
    call(world, "RemoveUserFromGroup", user="t:u", group="g")
    call(world, "DeleteGroup", group="t:g")
    with pytest.raises(NoSuchIdentity):
        call(world, "RemoveUserFromGroup", user="t:u", group="g")


def test_two_changes_at_once_are_both_there(world):
    call(world, "CreateUser", user="t:u")
    call(world, "CreateGroup", group="t:one")
    call(world, "CreateGroup", group="t:two")
    pending = [{"user": "t:u", "group": "two"}]

    def interfere(request):
        is_change = request.method == "PUT" and request.raw_path.endswith("/users/t%3Au")
        if is_change and pending:
            call(world, "AddUserToGroup", **pending.pop())

    world.pipeline.before = interfere
    call(world, "AddUserToGroup", user="t:u", group="one")
    assert set(world.store.read(User, "t:u").record.groups) == {"one", "two"}


def test_a_name_is_given_once(world):
    call(world, "CreateUser", user="t:u")
    call(world, "CreateAccessKey", user="t:u", access_key="MYKEY", secret_key="long-enough")
    call(world, "CreateUser", user="t:v")
    with pytest.raises(IdentityExists):
        call(world, "CreateUser", user="t:u")
    with pytest.raises(IdentityExists):
        call(world, "CreateAccessKey", user="t:v", access_key="MYKEY", secret_key="long-enough")
    assert call(world, "GetUser", user="t:v")["keys"] == []


def test_pages_of_names(world):
    for number in range(5):
        call(world, "CreateUser", user=f"t:u{number}")
    call(world, "CreateUser", user="tt:other")
    first = call(world, "ListUsers", tenant="t", limit=3)
    assert (first["users"], first["more"]) == (["u0", "u1", "u2"], True)
    rest = call(world, "ListUsers", tenant="t", marker="u2", limit=3)
    assert (rest["users"], rest["more"]) == (["u3", "u4"], False)
    assert call(world, "ListTenants")["tenants"] == ["t", "tt"]


def test_a_check_names_the_statement(world):
    call(world, "CreatePolicy", policy="t:p", document=DOCUMENT)
    call(world, "CreateUser", user="t:u", policies=["p"])
    found = call(world, "CheckPolicy", user="t:u", action="s3:GetObject", resource="c/o")
    assert (found["allowed"], found["reasons"]) == (True, ["s3:GetObject: allow by p Get"])
    found = call(world, "CheckPolicy", user="t:u", action="s3:GetObject", resource="AUTH_x:c/o")
    assert (found["verdict"], found["allowed"]) == ("silent", False)
    for params in (
        {"action": "s3:Nothing", "resource": "c"},
        {"action": "s3:GetObject", "resource": "c", "role": "t:r"},
        {"action": "s3:GetObject", "resource": "c", "values": ["x"]},
    ):
        with pytest.raises(InvalidIdentity):
            call(world, "CheckPolicy", user="t:u", **params)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_takes_what_it_does_not_know(world, operation):
    with pytest.raises(InvalidIdentity, match="there is no such parameter"):
        call(world, operation, unknown="x")


# --- damaged records ----------------------------------------------------------------------------------


def damage(world, kind, name, document=b"{"):
    objects = world.pipeline.containers[".swiftauth", kind]
    assert name in objects
    objects[name] = document, {}


def test_a_damaged_key_is_listed_beside_the_others_and_can_be_revoked(world):
    call(world, "CreateUser", user="t:u")
    for name in ("KEY1", "KEY2", "KEY3"):
        call(world, "CreateAccessKey", user="t:u", access_key=name)
    for name in ("KEY2", "KEY3"):
        world.store.put_unconditionally(KeyUse(name, 3600.0, "10.0.0.1"))
    damage(world, "keys", "KEY1")
    damage(world, "uses", "KEY3")
    keys = call(world, "ListAccessKeys", user="t:u")["keys"]
    assert [(key["access_key"], key["damaged"]) for key in keys] == [
        ("KEY1", True),
        ("KEY2", False),
        ("KEY3", False),
    ]
    assert [key["last_used"] for key in keys] == [0.0, 3600.0, 0.0]
    with pytest.raises(NoSuchIdentity):
        call(world, "DeleteAccessKey", access_key="KEY2", user="t:other")
    with pytest.raises(DamagedRecord):
        call(world, "UpdateAccessKey", access_key="KEY1", disabled=True)
    for name in ("KEY1", "KEY2", "KEY3"):
        call(world, "DeleteAccessKey", access_key=name)
        assert world.store.read(AccessKey, name).record is None
        assert world.store.read(KeyUse, name).record is None, "its last use goes with it"
    assert call(world, "ListAccessKeys", user="t:u")["keys"] == []
    assert call(world, "GetUser", user="t:u")["keys"] == ["KEY1"], "its owner was unknown"


def test_names_of_revoked_keys_take_no_room(world):
    call(world, "CreateUser", user="t:u")
    for number in range(KEYS_MAX):
        call(world, "CreateAccessKey", user="t:u", access_key=f"KEY{number}")
    damage(world, "keys", "KEY0")
    with pytest.raises(InvalidIdentity, match="access keys already"):
        call(world, "CreateAccessKey", user="t:u", access_key="MORE")
    call(world, "DeleteAccessKey", access_key="KEY0")
    call(world, "CreateAccessKey", user="t:u", access_key="MORE")
    assert len(call(world, "GetUser", user="t:u")["keys"]) == KEYS_MAX


@pytest.mark.parametrize("kind", ["User", "Group", "Role", "Policy"])
def test_what_is_damaged_can_be_deleted_and_made_anew(world, kind):
    key = kind.lower()
    more = {"Role": {"trust": TRUST}, "Policy": {"document": DOCUMENT}}.get(kind, {})
    call(world, f"Create{kind}", **{key: "t:x"}, **more)
    damage(world, f"{key}s" if kind != "Policy" else "policies", "t:x")
    with pytest.raises(DamagedRecord):
        call(world, f"Get{kind}", **{key: "t:x"})
    call(world, f"Delete{kind}", **{key: "t:x"})
    with pytest.raises(NoSuchIdentity):
        call(world, f"Delete{kind}", **{key: "t:x"})
    call(world, f"Create{kind}", **{key: "t:x"}, **more)


TRUST = (
    '{"Statement":{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::t:user/u"},"Action":"sts:AssumeRole"}}'
)


def test_a_damaged_member_stays_one(world):
    call(world, "CreateGroup", group="t:g")
    for name in ("u", "v"):
        call(world, "CreateUser", user=f"t:{name}", groups=["g"])
    damage(world, "users", "t:u")
    assert call(world, "GetGroup", group="t:g")["members"] == ["t:u", "t:v"]


def test_a_check_finds_all_that_refuses_a_user(world):
    for name in ("a", "b", "good"):
        call(world, "CreateUser", user=f"t:{name}")
        call(world, "PutInlinePolicy", user=f"t:{name}", name="p", document=DOCUMENT)
    call(world, "CreateAccessKey", user="t:a", access_key="KEY")
    call(world, "CreateRole", role="t:r", trust=TRUST)
    call(world, "CreatePolicy", policy="t:p", document=DOCUMENT)
    assert check_records(world.store, KEYS) == ((), 6, 6)
    (lost,) = check_records(world.store, OTHER_KEYS).damaged
    assert lost.startswith("keys/KEY: ")
    damage(world, "users", "t:a")
    damage(world, "users", "t:b", b'{"format":1,"inline":{"p":"{}"}}')
    damage(world, "roles", "t:r", b'{"format":1,"trust":"{}"}')
    damage(world, "policies", "t:p", b'{"format":1,"document":"{}"}')
    found = check_records(world.store, KEYS)
    names = [text.partition(": ")[0] for text in found.damaged]
    assert names == ["policies/t:p", "roles/t:r", "users/t:a", "users/t:b"]
    assert check_records(world.store, KEYS, limit_s=0.0) == ((), 0, 6)
