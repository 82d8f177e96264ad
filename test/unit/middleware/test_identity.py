"""Who a request comes from is what the token filter confirmed (middleware.md §2)."""

import pytest

from swift.http import environkeys
from swift.http.request import Request
from swift.middleware.keystoneauth.identity import get_identity

HEADERS = {
    "x-identity-status": "Confirmed",
    "x-user-id": "u1",
    "x-user-name": "Ann",
    "x-project-id": "p1",
    "x-project-name": "project",
    "x-roles": "Admin, member,,",
    "x-service-roles": "Service",
    "x-user-domain-id": "d1",
    "x-project-domain-id": "d2",
}
V3, V2 = {"token": {}}, {"access": {}}


def ask(token_info=None, **changes):
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    headers = {name: value for name, value in {**HEADERS, **named}.items() if value is not None}
    request = Request("GET", "/v1/AUTH_p1", headers)
    if token_info is not None:
        request.env[environkeys.KEYSTONE_TOKEN_INFO] = token_info
    return get_identity(request)


@pytest.mark.parametrize("status", [None, "Invalid", "confirmed", ""])
def test_what_is_not_confirmed_is_nobody(status):
    assert ask(x_identity_status=status) is None


def test_a_service_that_is_not_confirmed_makes_its_user_nobody():
    assert ask(x_service_identity_status="Invalid") is None
    assert ask(x_service_identity_status="Confirmed") is not None


def test_roles_are_words_and_compared_in_lower_case():
    found = ask()
    assert found.roles == ("Admin", "member")
    assert found.folded_roles == {"admin", "member"}
    assert found.folded_service_roles == {"service"}
    assert ask(x_roles=None).roles == ()


def test_older_names_of_a_project_are_known():
    found = ask(x_project_id=None, x_project_name=None, x_tenant_id="t", x_tenant_name="tenant")
    assert found.project == ("t", "tenant")


@pytest.mark.parametrize(("info", "version"), [(V3, 3), (V2, 2), (None, 0), ({}, 0), ("text", 0)])
def test_only_tokens_of_version_3_have_domains(info, version):
    found = ask(info)
    domains = (found.user_domain_id, found.project_domain_id)
    assert domains == (("d1", "d2") if version == 3 else (None, None))
    assert found.environ_value["auth_version"] == version


def test_what_filters_share_is_as_they_know_it():
    assert ask(V3).environ_value == {
        "user": ("u1", "Ann"),
        "tenant": ("p1", "project"),
        "roles": ["Admin", "member"],
        "service_roles": ["Service"],
        "user_domain": ("d1", None),
        "project_domain": ("d2", None),
        "auth_version": 3,
    }
