"""The console's pages about buckets' settings, keys, users and usage."""

import json
import re

import pytest

from test.support.console import ConsoleWorld, swift

#: Names that pages must show inert, and actions must reach.
HOSTILE = ["<b>&amp;\"'", "a?b#c%41&d=+", "\u202egnp.exe", "..", "x" * 256, "é \u00a0\u2028"]
every_hostile = pytest.mark.parametrize("name", HOSTILE)
S3_NAME = "bucket-1"


@pytest.fixture
def world(make_sim):
    return ConsoleWorld(make_sim(allow_account_management=True))


@pytest.fixture
def owner(world):
    browser = world.browser("t:owner")
    browser.get("/console/buckets")
    browser.post("/console/buckets/make", bucket=S3_NAME)
    return browser


def seen_of(page, setting):
    """Return the digest that the form of a setting carries."""
    _, _, rest = page.partition(f'name="setting" value="{setting}"')
    return rest.partition('name="seen" value="')[2].partition('"')[0]


def assert_inert(page):
    shown = re.sub(r' value="[^"]*"', "", page)
    assert "<b>" not in page and "\u202e" not in shown and "\u2028" not in shown


@every_hostile
def test_buckets_of_any_name_are_made_listed_set_up_and_deleted(world, name):
    browser = world.browser("t:owner")
    browser.get("/console")
    browser.post("/console/buckets/make", bucket=name)
    assert browser.headers and "/v1" not in browser.address
    assert_inert(browser.get("/console/buckets"))
    assert browser.page.count("<tr>") == 2
    page = browser.get("/console/bucket", bucket=name)
    assert browser.status == 200, page
    assert_inert(page)
    browser.post("/console/bucket/quota", bucket=name, bytes="1000", count="")
    assert browser.status == 200 and 'name="bytes" type="number" min="0" value="1000"' in browser.page
    browser.post("/console/buckets/delete", bucket=name)
    assert browser.address == "/console/buckets?done=bucket_deleted"
    assert browser.page.count("<tr>") == 0


@pytest.mark.parametrize("name", ["", "a/b", "x" * 257, "é" * 200])
def test_bad_names_of_buckets_are_refused(owner, name):
    owner.post("/console/buckets/make", bucket=name)
    assert owner.status == 400 and owner.get("/console/buckets").count("<tr>") == 2


def test_a_bucket_is_not_made_twice(owner):
    owner.post("/console/buckets/make", bucket=S3_NAME)
    assert owner.status == 409


def test_a_bucket_is_made_with_object_lock_or_versions(owner):
    owner.post("/console/buckets/make", bucket="locked", lock="yes")
    page = owner.get("/console/bucket", bucket="locked")
    assert "Versions are kept." in page and '<option value="">none</option>' in page
    owner.post("/console/bucket/lock", bucket="locked", mode="GOVERNANCE", days="7")
    assert owner.status == 200 and "<option selected>GOVERNANCE</option>" in owner.page
    owner.post("/console/bucket/lock", bucket="locked", mode="FOREVER", days="7")
    assert owner.status == 400
    owner.post("/console/buckets/make", bucket="kept", versions="yes")
    assert "Versions are kept." in owner.get("/console/bucket", bucket="kept")


def test_versions_are_enabled_and_suspended(owner):
    assert "Versions are off" in owner.get("/console/bucket", bucket=S3_NAME)
    owner.post("/console/bucket/versioning", bucket=S3_NAME, status="Enabled")
    assert "Versions are kept." in owner.page and "The setting was saved." in owner.page
    owner.post("/console/bucket/versioning", bucket=S3_NAME, status="Suspended")
    assert "New versions are not kept" in owner.page
    owner.post("/console/bucket/versioning", bucket=S3_NAME, status="Off")
    assert owner.status == 400


def test_rules_of_the_lifecycle_are_added_and_deleted(owner):
    page = owner.get("/console/bucket", bucket=S3_NAME)
    owner.post(
        "/console/bucket/rule",
        bucket=S3_NAME,
        setting="lifecycle",
        seen=seen_of(page, "lifecycle"),
        id="logs",
        prefix="logs/<&",
        days="30",
        abort_days="2",
    )
    assert owner.status == 200, owner.page
    assert '<span class="muted">Expiration Days</span> <bdi>30</bdi>' in owner.page
    assert "logs/&lt;&amp;" in owner.page
    old = seen_of(page, "lifecycle")
    fields = {"bucket": S3_NAME, "setting": "lifecycle", "id": "two", "days": "1"}
    owner.post("/console/bucket/rule", seen=old, **fields)
    assert owner.status == 412 and "changed meanwhile" in owner.page
    page = owner.get("/console/bucket", bucket=S3_NAME)
    owner.post("/console/bucket/rule", seen=seen_of(page, "lifecycle"), **fields)
    assert owner.page.count("Expiration Days") == 2
    for left in (1, 0):
        owner.post(
            "/console/bucket/rule/delete",
            bucket=S3_NAME,
            setting="lifecycle",
            rule="0",
            seen=seen_of(owner.page, "lifecycle"),
        )
        assert owner.page.count("Expiration Days") == left


@pytest.mark.parametrize(
    "fields", [{}, {"days": "0"}, {"days": "x"}, {"days": "-1"}, {"days": "1", "id": "a\x00"}]
)
def test_rules_that_are_wrong_change_nothing(owner, fields):
    page = owner.get("/console/bucket", bucket=S3_NAME)
    seen = seen_of(page, "lifecycle")
    owner.post("/console/bucket/rule", bucket=S3_NAME, setting="lifecycle", seen=seen, **fields)
    assert owner.status == 400
    assert seen_of(owner.get("/console/bucket", bucket=S3_NAME), "lifecycle") == seen


def test_cors_rules_and_their_document(owner):
    page = owner.get("/console/bucket", bucket=S3_NAME)
    owner.post(
        "/console/bucket/rule",
        bucket=S3_NAME,
        setting="cors",
        seen=seen_of(page, "cors"),
        origins="https://a.example https://b.example",
        method=["GET", "PUT"],
        age="60",
    )
    assert owner.status == 200 and owner.page.count("AllowedOrigin") >= 2
    document = "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin>"
    for text, status in [
        (document, 400),
        ("<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>", 400),
    ]:
        owner.post(
            "/console/bucket/document",
            bucket=S3_NAME,
            setting="cors",
            seen=seen_of(owner.get("/console/bucket", bucket=S3_NAME), "cors"),
            document=text,
        )
        assert owner.status == status and "root:" not in owner.page
    owner.post(
        "/console/bucket/document",
        bucket=S3_NAME,
        setting="cors",
        seen=seen_of(owner.get("/console/bucket", bucket=S3_NAME), "cors"),
        document="",
    )
    assert owner.status == 200 and "AllowedOrigin" not in owner.page


def policy_for(user):
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "Readers",
                    "Effect": "Allow",
                    "Principal": {"AWS": f"arn:aws:iam::t:user/{user}"},
                    "Action": ["s3:GetObject"],
                    "Resource": f"arn:aws:s3:::{S3_NAME}/*",
                }
            ],
        }
    )


def save_policy(owner, document):
    page = owner.get("/console/bucket", bucket=S3_NAME)
    owner.post(
        "/console/bucket/document",
        bucket=S3_NAME,
        setting="policy",
        seen=seen_of(page, "policy"),
        document=document,
    )


def test_a_policy_decides_who_can_use_a_bucket(owner):
    save_policy(owner, policy_for("user"))
    assert owner.status == 200 and "Readers" in owner.page
    page = owner.get("/console/bucket/access", bucket=S3_NAME)
    assert owner.status == 200, page
    row = page.partition("<bdi>user</bdi>")[2].partition("</tr>")[0]
    assert [cell.partition("<")[0] for cell in row.split('">')[1:]] == ["no", "yes", "no", "no"]
    assert "It is not public." in page
    owner.get("/console/users/check", user="t:user", action="s3:GetObject", resource=f"{S3_NAME}/x")
    assert "Yes, it is allowed." in owner.page and "Readers" in owner.page
    save_policy(owner, "{not json")
    assert owner.status == 400 and "Readers" in owner.get("/console/bucket", bucket=S3_NAME)
    save_policy(owner, policy_for("user").replace('{"AWS": "arn:aws:iam::t:user/user"}', '"*"'))
    assert "Everybody can read it" in owner.get("/console/bucket/access", bucket=S3_NAME)


def rights_of(owner, user):
    page = owner.get("/console/bucket/access", bucket=S3_NAME)
    row = page.partition(f"<bdi>{user}</bdi>")[2].partition("</tr>")[0]
    return [cell.partition("<")[0].partition(",")[0] for cell in row.split('">')[1:]]


def save_lists(owner, page, read, write=""):
    seen = page.partition("/bucket/acl")[2].partition('name="seen" value="')[2].partition('"')[0]
    owner.post("/console/bucket/acl", bucket=S3_NAME, seen=seen, read=read, write=write)


@pytest.mark.parametrize(
    ("read", "write", "rights"),
    [
        ("t:user", "", ["yes", "yes", "no", "no"]),
        ("", "t:user", ["no", "no", "yes", "yes"]),
        ("t", "x:user", ["yes", "yes", "no", "no"]),
        (".r:*", "", ["no", "yes", "no", "no"]),
        (".r:*,.rlistings", "", ["yes", "yes", "no", "no"]),
        ("user,.rlistings,.r:example.com", "", ["no", "no", "no", "no"]),
    ],
)
def test_access_lists_decide_who_can_use_a_bucket(owner, read, write, rights):
    save_lists(owner, owner.get("/console/bucket", bucket=S3_NAME), read, write)
    assert owner.status == 200 and rights_of(owner, "user") == rights
    reader = owner.world.browser("t:user")
    path = f"{S3_NAME}/none"
    results = [swift(reader, "GET", name).status != 403 for name in (S3_NAME, path)]
    results.append(swift(reader, "PUT", path).status == 201)
    results.append(swift(reader, "DELETE", path).status != 403)
    assert results == [right == "yes" for right in rights]


def test_the_access_lists_of_another_editor_stay(owner):
    page = owner.get("/console/bucket", bucket=S3_NAME)
    save_lists(owner, page, "t:user")
    save_lists(owner, page, ".r:*")
    assert owner.status == 412 and "It is not public." in owner.get("/console/bucket/access", bucket=S3_NAME)
    assert rights_of(owner, "user") == ["yes", "yes", "no", "no"]


def test_a_key_is_made_with_limits_and_its_secret_shown_once(world, owner):
    owner.get("/console/keys")
    owner.post(
        "/console/keys/make", note="<i>ci</i>", days="3650", read_only="yes", container="c", prefix="p/"
    )
    page = owner.page
    assert "Copy the secret key now" in page and "<i>ci" not in page
    access_key = page.partition("<dd><code>")[2].partition("<")[0]
    secret = page.split("<dd><code>")[2].partition("<")[0]
    assert secret not in owner.get("/console/keys") and access_key in owner.page
    other = world.browser()
    other.post("/console/login", user=access_key, key=secret)
    assert other.address == "/console"
    other.post("/console/buckets/make", csrf=other.csrf, bucket="made")
    assert other.status == 403, "the key is read only"
    owner.post("/console/keys/change", access_key=access_key, change="disable")
    assert "disabled" in owner.page
    owner.post("/console/keys/change", access_key=access_key, change="delete")
    assert access_key not in owner.get("/console/keys")


def test_a_user_cannot_see_or_change_the_keys_of_others(world):
    browser = world.browser("t:user")
    browser.get("/console/keys", user="t:owner")
    assert browser.status == 403
    browser.get("/console/keys")
    browser.post("/console/keys/make", user="t:owner")
    assert browser.status == 403
    assert world.op("ListAccessKeys", user="t:owner")["keys"] == []


def test_a_password_is_changed_and_ends_the_session(world):
    browser = world.browser("t:user")
    browser.get("/console/keys")
    browser.post("/console/keys/password", password="new-password-1", repeated="other")
    assert browser.status == 400
    world.made.clock.now += 1
    browser.post("/console/keys/password", password="new-password-1", repeated="new-password-1")
    assert browser.path().startswith("/console/login")
    world.made.clock.now += 1
    assert world.browser("t:user", "new-password-1").status == 200


def test_an_owner_manages_users_of_the_tenant(world, owner):
    page = owner.get("/console/users")
    assert "<bdi>user</bdi>" in page and "<option selected>t</option>" in page
    owner.post(
        "/console/users/user-make", user="t:new", password="new-password-1", note="x", back="/console/users"
    )
    assert "The user was created." in owner.page and "<bdi>new</bdi>" in owner.page
    owner.get("/console/users/user", user="t:new")
    back = "/console/users/user?user=t%3Anew"
    owner.post("/console/users/policy-attach", user="t:new", policy="readonly", back=back)
    assert "The policy was attached." in owner.page and "<bdi>readonly</bdi>" in owner.page
    owner.post("/console/users/user-disable", user="t:new", disabled="yes", back=back)
    assert world.op("GetUser", user="t:new")["disabled"]
    owner.post("/console/users/user-delete", user="t:new", back="/console/users")
    assert "<bdi>new</bdi>" not in owner.page


def test_groups_roles_and_policies_are_made_and_shown(world, owner):
    owner.get("/console/users")
    document = json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    )
    trust = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": "arn:aws:iam::t:user/user"},
                    "Action": "sts:AssumeRole",
                }
            ],
        }
    )
    for noun, fields in [
        ("group", {"group": "t:g"}),
        ("policy", {"policy": "t:p", "document": document}),
        ("role", {"role": "t:r", "trust": trust, "policies": "p", "max_session": "3600"}),
    ]:
        owner.post(f"/console/users/{noun}-make", back="/console/users?kind=users", **fields)
        assert f"The {noun} was created." in owner.page, owner.page
        owner.get(f"/console/users/{noun}", **{noun: fields[noun]})
        assert owner.status == 200 and fields[noun] in owner.page
    owner.post("/console/users/policy-change", policy="t:p", document="{}", back="/console/users")
    assert owner.status == 400
    owner.post("/console/users/role-change", role="t:r", trust=trust, max_session="x", back="/console/users")
    assert owner.status == 400


def test_fields_that_a_form_does_not_have_are_not_taken(world, owner):
    owner.get("/console/users")
    owner.post(
        "/console/users/user-disable", user="t:user", disabled="no", groups=".admin", back="/console/users"
    )
    assert world.op("GetUser", user="t:user")["groups"] == []


def test_an_owner_makes_no_operator(world, owner):
    owner.get("/console/users")
    owner.post("/console/users/user-join", user="t:user", group=".reseller_admin", back="/console/users")
    assert owner.status == 403 and world.op("GetUser", user="t:user")["groups"] == []
    owner.get("/console/users", tenant="a")
    assert owner.status == 403


def test_an_operator_sees_all_tenants(world):
    browser = world.browser("a:op")
    page = browser.get("/console/users", tenant="t")
    assert (
        "<option>a</option>" in page and "<option selected>t</option>" in page and "<bdi>owner</bdi>" in page
    )


def test_a_user_without_rights_manages_nothing(world):
    browser = world.browser("t:user")
    assert "/console/users" not in browser.get("/console/keys")
    browser.get("/console/users")
    assert browser.status == 403
    browser.post("/console/users/user-delete", user="t:owner", back="/console/users")
    assert browser.status == 403 and world.op("GetUser", user="t:owner")


def test_usage_of_the_account_and_its_buckets(world, owner):
    owner.post("/console/buckets/make", bucket="=cmd|x")
    page = owner.get("/console/usage")
    assert owner.status == 200 and "<dt>Buckets</dt><dd>2</dd>" in page
    text = owner.get("/console/usage.csv")
    assert text.splitlines()[0] == "bucket,objects,bytes,changed"
    assert any(line.startswith("'=cmd|x,0,0,") for line in text.splitlines())


@pytest.mark.parametrize("name", ["", f"{S3_NAME}/kept"])
def test_no_form_without_a_bucket_changes_the_account_or_an_object(world, name):
    operator = world.browser("a:op")
    operator.get("/console/buckets")
    operator.post("/console/buckets/make", bucket=S3_NAME)
    operator.send("PUT", f"/console/upload/whole?bucket={S3_NAME}&name=kept", {"content-length": "1"}, b"x")
    for path in ("/buckets/delete", "/bucket/acl", "/bucket/quota"):
        operator.post(f"/console{path}", bucket=name)
        assert operator.status in (400, 404), path
    assert S3_NAME in operator.get("/console/buckets")
    assert "kept" in operator.get("/console/browse", bucket=S3_NAME)
