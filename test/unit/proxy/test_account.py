"""Accounts: made on demand, ended once, and shown to their owners only."""

import json

import pytest

AWAY = range(1, 7)


@pytest.fixture
def bare(make_sim):
    """A cluster without any account."""
    return make_sim(allow_account_management=True)


def test_an_account_that_is_not_there_yet_looks_empty_and_is_not_made_by_looking(bare):
    response = bare("GET", "/a?format=json")
    assert (response.status, json.loads(response.body)) == (200, [])
    assert response.headers["x-account-container-count"] == "0"
    assert bare("HEAD", "/a").body == b""
    assert bare.counts() == {("account", "HEAD"): len(AWAY)}


def test_where_accounts_are_not_made_on_demand_it_is_not_found(make_sim):
    assert make_sim(account_autocreate=False)("GET", "/a").status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
def test_an_account_that_was_deleted_is_gone_until_it_is_reaped(bare, method):
    assert bare("PUT", "/a").status == 201
    assert bare("DELETE", "/a").status == 204
    response = bare(method, "/a", {"x-account-meta-a": "1"} if method == "POST" else {})
    assert response.status == {"GET": 410, "HEAD": 410, "POST": 404, "PUT": 403}[method]
    assert bare("PUT", "/a/c").status == 503


def test_a_deletion_with_a_query_is_refused_and_deletes_nothing(bare):
    bare("PUT", "/a")
    assert bare("DELETE", "/a?x=1").status == 400
    assert bare("HEAD", "/a").status == 204


def test_posting_makes_the_account_first(bare):
    assert bare("POST", "/a", {"x-account-meta-a": "1"}).status == 204
    assert bare("HEAD", "/a").headers["x-account-meta-a"] == "1"


def test_posting_where_the_account_cannot_be_made_is_503(bare):
    real, made = bare.context.rings.account.view(), bare.primaries("account", "a")
    assert len(real.primaries(0)) == 3
    for n in made[:2]:
        bare.faults.answers[6200 + 10 * n + 2] = 404
    for n in set(AWAY) - set(made[:2]):
        bare.faults.answers[6200 + 10 * n + 2] = 503
    assert bare("POST", "/a", {"x-account-meta-a": "1"}).status == 503


@pytest.mark.parametrize(
    "headers",
    [
        {"x-account-meta-" + "n" * 129: "v"},
        {"x-account-meta-a": "v" * 257},
        {"x-account-meta-": "v"},
        {"x-account-meta-a": "\xff"},
        {f"x-account-meta-{n}": "v" for n in range(91)},
    ],
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_metadata_beyond_the_limits_is_refused_and_changes_nothing(bare, method, headers):
    bare("PUT", "/a")
    assert bare(method, "/a", headers).status == 400
    assert not [name for name in bare("HEAD", "/a").headers if name.startswith("x-account-meta-")]


@pytest.mark.parametrize("name", ["a" * 257, "%FF", "a%00b"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST"])
def test_a_name_that_no_account_can_have_reaches_no_server(bare, method, name):
    assert bare(method, f"/{name}").status in (400, 412)
    assert not bare.transport.requests


def test_metadata_is_merged_and_removed_by_name(bare):
    bare("PUT", "/a", {"x-account-meta-a": "1", "x-account-meta-b": "2"})
    bare("POST", "/a", {"x-account-meta-b": "3", "x-remove-account-meta-a": "x"})
    headers = bare("HEAD", "/a").headers
    assert (headers.get("x-account-meta-a"), headers["x-account-meta-b"]) == (None, "3")


def test_only_owners_see_what_is_theirs(bare):
    bare("PUT", "/a", {"x-account-meta-temp-url-key": "secret", "x-account-meta-a": "1"})
    for owner, seen in ((True, True), (False, False)):
        for method in ("GET", "HEAD"):
            headers = bare(method, "/a", env={"swift_owner": owner}).headers
            assert ("x-account-meta-temp-url-key" in headers) is seen
            assert headers["x-account-meta-a"] == "1"


def test_what_is_remembered_of_an_account_is_forgotten_when_it_changes(bare):
    bare("PUT", "/a", {"x-account-meta-a": "1"})
    bare("HEAD", "/a")
    assert bare.cache.values["account/a"]["meta"] == {"a": "1"}
    bare("POST", "/a", {"x-account-meta-a": "2"})
    assert "account/a" not in bare.cache.values


def test_an_account_that_only_looks_as_if_it_were_there_is_remembered_as_that(bare):
    bare("HEAD", "/a")
    record = bare.cache.values["account/a"]
    assert (record["status"], record["account_really_exists"]) == (200, False)


def test_what_nobody_could_tell_is_not_remembered(bare):
    with bare.refusing("account", *AWAY):
        assert bare("HEAD", "/a").status == 503
    assert "account/a" not in bare.cache.values
