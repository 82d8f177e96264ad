"""Tokens of identity services say who signed, in either version, and nonsense says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.middleware.s3token.tokens import IDENTITY_HEADERS, parse_identity

V3 = {
    "token": {
        "user": {"id": "u", "name": "Jürgen", "domain": {"id": "d", "name": "Default"}},
        "project": {"id": "p", "name": "project", "domain": {"id": "e", "name": "Other"}},
        "roles": [{"name": "admin"}, {"name": ""}, "x", {"id": 1}, {"name": "member"}],
    }
}
V2 = {
    "access": {
        "user": {"id": "u", "name": "Ann", "roles": [{"name": "member"}]},
        "token": {"tenant": {"id": "p", "name": "project"}},
    }
}


def test_a_token_of_version_3_has_domains():
    known = parse_identity(V3)
    assert (known.project_id, known.project_name, known.user_id) == ("p", "project", "u")
    assert known.headers["x-roles"] == "admin,member"
    assert known.headers["x-user-domain-id"] == "d"
    assert known.headers["x-project-domain-name"] == "Other"
    assert known.headers["x-user-name"] == "Jürgen".encode().decode("latin-1")


def test_a_token_of_version_2_has_none():
    known = parse_identity(V2)
    assert (known.headers["x-tenant-id"], known.headers["x-roles"]) == ("p", "member")
    assert not any("domain" in name for name in known.headers)


def test_every_header_that_is_set_is_taken_from_clients():
    for document in (V2, V3):
        assert set(parse_identity(document).headers) <= set(IDENTITY_HEADERS)


@pytest.mark.parametrize(
    "change",
    [
        {"project": {}},
        {"project": {"id": ""}},
        {"project": {"id": 7}},
        {"project": {"id": "a/b"}},
        {"project": {"id": "a\r\nX: 1"}},
        {"user": {}},
        {"user": []},
        {"user": {"id": None}},
    ],
)
def test_who_has_no_project_or_no_id_is_nobody(change):
    assert parse_identity({"token": {**V3["token"], **change}}) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "name", "domain", "roles", "tenant", "x"]), inner, max_size=3
        )
    ),
    max_leaves=10,
)


@pytest.mark.long
@given(
    st.sampled_from(["token", "access", "x"]),
    st.dictionaries(st.sampled_from(["user", "project", "roles", "token"]), _JSON) | _JSON,
)
def test_whatever_a_service_answers_its_headers_can_be_sent(name, content):
    known = parse_identity({name: content})
    if known is not None:
        assert all(
            text.isascii() or text.encode("latin-1").decode("utf-8") for text in known.headers.values()
        )
        assert not any("\n" in text or "\r" in text for text in known.headers.values())
