"""The description of a provider: each field is checked, and an error names it."""

import json

import pytest

from swift.base.errors import InvalidValue
from swift.identity.oidc.provider import Provider, claim_at
from test.support.checks import every
from test.support.oidc import DOCUMENT

FULL = {
    **DOCUMENT,
    "client_secret": "s3cret",
    "audiences": ["swift", "sts"],
    "scopes": ["openid", "groups"],
    "user_claim": "preferred_username",
    "groups_claim": "realm_access.roles",
    "role_claim": "swift_roles",
    "roles": {"/admins": ["operator", "reader"], "devs": []},
    "ca_file": "/etc/ssl/own.pem",
    "clock_skew_seconds": 0,
    "redirect_uri": "https://console.example/auth/oidc/main/callback",
    "insecure": False,
}
WRONG = [
    *(("name", value) for value in ("", "a b", "A", "-a", "a/b", "a" * 65, "a\n", 1, None)),
    *(("tenant", value) for value in ("", "a:b", "a/b", "a b", "a\x00", "x" * 65, 2)),
    *(("client_id", value) for value in ("", "a\nb", "x" * 257, ["swift"])),
    *(("client_secret", value) for value in ("a\nb", "x" * 257, 1)),
    *(
        ("issuer", value)
        for value in (
            *("", "id.example", "ftp://id.example", "https://", "http://id.example", "https://u@id.example"),
            *(
                "https://u:p@id.example",
                "https://id.example/?a=b",
                "https://id.example/#f",
                "https://id.example?",
            ),
            *(
                "https://id.example/ x",
                "https://id.example\\@e",
                "https://id.example:x",
                "https://id.example:99999",
            ),
            *(
                "https://id.example/\n",
                "https://[::1",
                "https://idé.example",
                "https://i/" + "x" * 600,
                1,
                None,
            ),
            *(
                "http://x[::1]:80",
                "https://a%2eb",
                "https://a,b",
                "http://127.0.0.1.example",
                "http://10.0.0.1",
                "javascript:alert(1)",
            ),
        )
    ),
    *(("audiences", value) for value in ("swift", [1], ["a\n"], [""], ["a"] * 1001)),
    *(
        ("scopes", value)
        for value in ("openid", [], ["profile"], ["openid", "a b"], ["openid", 'a"'], ["openid", ""])
    ),
    *(("user_claim", value) for value in ("", "a\n", 1, "x" * 257)),
    *(("groups_claim", value) for value in ("", "a\x7f", None)),
    *(("role_claim", value) for value in ("a\n", 1)),
    *(
        ("roles", value)
        for value in (
            [],
            {"g": "r"},
            {"g": ["a b"]},
            {"g": ["r\n"]},
            {"": ["r"]},
            {"g": [1]},
            {"g": ["r" * 65]},
        )
    ),
    *(("ca_file", value) for value in ("own.pem", "/a\nb", 1)),
    *(("clock_skew_seconds", value) for value in (-1, 301, 1.5, "1", True)),
    *(
        ("redirect_uri", value)
        for value in ("/callback", "http://console.example/", "https://console.example/?a")
    ),
    *(("insecure", value) for value in ("true", 1, None)),
]


def test_a_document_is_read_and_written_unchanged():
    provider = Provider.from_document(FULL)
    assert provider.to_document() == FULL
    assert json.loads(json.dumps(provider.to_document())) == FULL
    assert Provider.from_document(provider.to_document()) == provider


def test_the_client_is_the_audience_by_default():
    assert Provider.from_document(DOCUMENT).audiences == ("swift",)


@every(("name", "value"), WRONG)
def test_an_error_names_the_field(name, value):
    with pytest.raises(InvalidValue) as caught:
        Provider.from_document({**FULL, name: value})
    assert str(caught.value).startswith(name)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


def test_missing_and_unknown_fields_are_named():
    for name in ("name", "issuer", "client_id", "tenant"):
        with pytest.raises(InvalidValue, match=f"^{name}: "):
            Provider.from_document({key: value for key, value in FULL.items() if key != name})
    with pytest.raises(InvalidValue, match="'colour'"):
        Provider.from_document({**FULL, "colour": "blue"})
    for wrong in (None, [], "text", 1):
        with pytest.raises(InvalidValue):
            Provider.from_document(wrong)


@pytest.mark.parametrize(
    "issuer", ["http://127.0.0.1:8080/a", "http://localhost", "http://[::1]:1", "https://10.0.0.1"]
)
def test_http_is_for_the_loopback_interface(issuer):
    assert Provider.from_document({**DOCUMENT, "issuer": issuer}).issuer == issuer


def test_http_is_allowed_elsewhere_on_request():
    assert Provider.from_document({**DOCUMENT, "issuer": "http://id.example", "insecure": True}).insecure


def test_secrets_are_not_shown():
    assert "s3cret" not in repr(Provider.from_document(FULL))


def test_claims_are_found_by_their_path():
    claims = {
        "a": {"b": {"c": 1}, "b.c": 2},
        "x.y": 3,
        "https://example.com/groups": ["g"],
        "kubernetes.io": {"namespace": "jobs"},
        "text": "t",
    }
    assert claim_at(claims, "a.b.c") == 2
    assert claim_at(claims, "x.y") == 3
    assert claim_at(claims, "https://example.com/groups") == ["g"]
    assert claim_at(claims, "kubernetes.io.namespace") == "jobs"
    for missing in ("b", "a.c", "text.t", "a.b.c.d", "", ".", "a."):
        assert claim_at(claims, missing) is None


def test_roles_come_from_groups_and_from_a_claim():
    provider = Provider.from_document(FULL)
    claims = {"swift_roles": ["writer", "reader", "no role", 1, "x" * 65]}
    assert provider.roles_of(("/admins", "devs", "unknown"), claims) == ("operator", "reader", "writer")
    assert provider.roles_of((), {"swift_roles": "writer"}) == ("writer",)
    assert provider.roles_of((), {}) == ()
    assert Provider.from_document(DOCUMENT).roles_of(("/admins",), claims) == ()
