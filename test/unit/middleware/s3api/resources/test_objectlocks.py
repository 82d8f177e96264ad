"""Locks are set, told and made longer, and weakened only by who may (decision 0016)."""

import pytest

from test.support.s3_fixtures import OTHER, Multipart

LATER, LAST = "2096-10-02T07:06:40Z", "2097-10-02T07:06:40Z"
BYPASS = {"x-amz-bypass-governance-retention": "true"}


@pytest.fixture
def vault(s3):
    """A bucket whose objects may be locked, and an object in it."""
    assert s3("PUT", "/vault", {"x-amz-bucket-object-lock-enabled": "true"}).status == 200
    assert s3("PUT", "/vault/key", {}, b"kept").status == 200
    return s3


def rule(mode="GOVERNANCE", period="<Days>1</Days>", enabled="Enabled"):
    return (
        f"<ObjectLockConfiguration><ObjectLockEnabled>{enabled}</ObjectLockEnabled><Rule><DefaultRetention>"
        f"<Mode>{mode}</Mode>{period}</DefaultRetention></Rule></ObjectLockConfiguration>"
    ).encode()


def retention(mode, until):
    return f"<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>".encode()


def hold(status):
    return f"<LegalHold><Status>{status}</Status></LegalHold>".encode()


def retain(vault, mode, until, headers=None, **who):
    return vault("PUT", "/vault/key?retention", headers, retention(mode, until), **who)


def test_a_bucket_tells_its_configuration_and_gives_it_to_new_objects(vault):
    assert vault("GET", "/vault?object-lock").texts("Mode") == []
    assert vault("PUT", "/vault?object-lock", {}, rule(period="<Years>2</Years>")).status == 200
    told = vault("GET", "/vault?object-lock")
    assert (told.texts("Mode"), told.texts("Years"), told.texts("Days")) == (["GOVERNANCE"], ["2"], [])
    vault("PUT", "/vault/new", {}, b"x")
    assert vault("GET", "/vault/new?retention").texts("Mode") == ["GOVERNANCE"]


NO_RULES = [
    (rule(enabled="Maybe"), "MalformedXML"),
    (rule(mode="HARSH"), "MalformedXML"),
    (rule(period=""), "MalformedXML"),
    (rule(period="<Days>1</Days><Years>1</Years>"), "MalformedXML"),
    (rule(period="<Days>0</Days>"), "InvalidArgument"),
    (rule(period="<Days>-1</Days>"), "InvalidArgument"),
    (rule(period="<Days>1.5</Days>"), "InvalidArgument"),
    (rule(period=f"<Days>{'9' * 5000}</Days>"), "InvalidArgument"),
    (rule(period="<Days>36501</Days>"), "InvalidArgument"),
    (rule(period="<Years>101</Years>"), "InvalidArgument"),
    (b"<ObjectLockConfiguration/>", "MalformedXML"),
    (b"junk", "MalformedXML"),
]


def test_a_configuration_that_makes_no_sense_changes_nothing(vault):
    vault("PUT", "/vault?object-lock", {}, rule())
    before = vault("GET", "/vault?object-lock").body
    for body, code in NO_RULES:
        assert vault("PUT", "/vault?object-lock", {}, body).code == code, body
        assert vault("GET", "/vault?object-lock").body == before


def test_where_no_versions_are_kept_nothing_is_locked(vault):
    assert vault("GET", "/bucket?object-lock").code == "ObjectLockConfigurationNotFoundError"
    assert vault("PUT", "/bucket?object-lock", {}, rule()).code == "InvalidBucketState"
    vault("PUT", "/bucket/key", {}, b"x")
    for what, body in (("retention", retention("GOVERNANCE", LATER)), ("legal-hold", hold("ON"))):
        assert vault("PUT", f"/bucket/key?{what}", {}, body).code == "InvalidRequest"
        assert vault("GET", f"/bucket/key?{what}").code == "InvalidRequest"
        assert vault("PUT", f"/vault/nothing?{what}", {}, body).code == "NoSuchKey"
        assert vault("GET", f"/vault/key?{what}").code == "NoSuchObjectLockConfiguration"


def test_governance_is_weakened_with_the_bypass_only(vault):
    assert retain(vault, "GOVERNANCE", LATER).status == 200
    assert retain(vault, "GOVERNANCE", LAST).status == 200
    assert retain(vault, "GOVERNANCE", LATER).code == "AccessDenied"
    assert vault("PUT", "/vault/key?retention", {}, b"<Retention/>").code == "AccessDenied"
    assert vault("GET", "/vault/key?retention").texts("RetainUntilDate") == ["2097-10-02T07:06:40.000Z"]
    assert retain(vault, "GOVERNANCE", LATER, BYPASS).status == 200
    assert vault("PUT", "/vault/key?retention", BYPASS, b"<Retention/>").status == 200
    assert vault("GET", "/vault/key?retention").code == "NoSuchObjectLockConfiguration"


def test_compliance_is_made_longer_and_never_weaker(vault):
    assert retain(vault, "COMPLIANCE", LATER).status == 200
    assert retain(vault, "COMPLIANCE", LAST).status == 200
    version = vault("HEAD", "/vault/key").headers["x-amz-version-id"]
    for mode, until in (("COMPLIANCE", LATER), ("GOVERNANCE", LAST)):
        assert retain(vault, mode, until, BYPASS).code == "AccessDenied"
    assert vault("DELETE", f"/vault/key?versionId={version}", BYPASS).code == "AccessDenied"
    assert vault("GET", "/vault/key").body == b"kept"


def test_a_retention_that_makes_no_sense_changes_nothing(vault):
    bodies = (retention("", LATER), retention("GOVERNANCE", ""), retention("HARSH", LATER), b"junk")
    for body in bodies:
        assert vault("PUT", "/vault/key?retention", BYPASS, body).code == "MalformedXML"
    for until in ("soon", "2009-01-01T00:00:00Z"):
        assert retain(vault, "GOVERNANCE", until).code == "InvalidArgument"
    for body in (hold("on"), hold(""), b"<LegalHold/>"):
        assert vault("PUT", "/vault/key?legal-hold", {}, body).code == "MalformedXML"
    assert "x-amz-object-lock-mode" not in vault("HEAD", "/vault/key").headers


def test_a_hold_is_set_and_ended_beside_a_retention(vault):
    retain(vault, "GOVERNANCE", LATER)
    for status in ("ON", "OFF"):
        assert vault("PUT", "/vault/key?legal-hold", {}, hold(status)).status == 200
        assert vault("GET", "/vault/key?legal-hold").texts("Status") == [status]
    assert vault("GET", "/vault/key?retention").texts("Mode") == ["GOVERNANCE"]


def test_who_does_not_own_the_bucket_locks_and_frees_nothing(vault):
    retain(vault, "GOVERNANCE", LATER)
    assert retain(vault, "GOVERNANCE", LAST, **OTHER).code == "AccessDenied"
    assert vault("PUT", "/vault/key?legal-hold", {}, hold("ON"), **OTHER).code == "AccessDenied"
    assert vault("PUT", "/vault?object-lock", {}, rule(), **OTHER).code == "AccessDenied"
    assert vault("GET", "/vault/key?retention").texts("RetainUntilDate") == ["2096-10-02T07:06:40.000Z"]


def test_the_parts_of_an_object_are_locked_with_it(vault):
    upload = Multipart(vault, "/vault/big")
    upload.part(1, b"part")
    assert upload.complete((1, b"part")).status == 200
    assert vault("PUT", "/vault/big?retention", {}, retention("COMPLIANCE", LATER)).status == 200
    [part] = [name for name in vault.names("vault+segments") if name.startswith("big/")]
    assert vault.sim("DELETE", f"/AUTH_test/vault+segments/{part}").status == 403
