"""Who may do what by the roles of an identity service (middleware.md §2)."""

import json

import pytest

from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.keystoneauth.filter import Keystoneauth
from swift.middleware.keystoneauth.settings import KeystoneauthSettings
from test.support.keystone_transcripts import ANSWERS, make_cases

OWN = {
    "x-identity-status": "Confirmed",
    "x-user-id": "u1",
    "x-user-name": "un",
    "x-project-id": "p1",
    "x-project-name": "pn",
}


class App:
    """Below keystoneauth: asks the callback as the proxy does."""

    def __init__(self, case):
        self.case = case
        self.seen = {}
        self.requests = []

    def handle(self, request):
        env = request.env
        request.acl = self.case.get("acl")
        callback = env.get(environkeys.AUTHORIZE)
        denial = callback(request) if callback else None
        self.requests.append(request)
        self.seen = {
            "user": env.get(environkeys.REMOTE_USER),
            "identity": env.get("keystone.identity"),
            "owner": bool(env.get(environkeys.OWNER)),
            "reseller": bool(env.get(environkeys.RESELLER_REQUEST)),
            "logged": (env.get(environkeys.ACCESS_LOGGING) or {}).get("user_id"),
            "domain": request.headers.get(fields.SYSMETA_PROJECT_DOMAIN),
        }
        told = self.case.get("told")
        return denial or Response(204, {} if told is None else {fields.SYSMETA_PROJECT_DOMAIN: told})


def ask(case):
    """What our filter says of a case, in the form that the peer's answers are kept in."""
    app = App(case)
    headers = {name.lower(): value for name, value in case["headers"].items()}
    info = {
        "status": case.get("account_status", 200),
        "sysmeta": {},
        "account_really_exists": case.get("really_exists", True),
    }
    if case.get("stored") is not None:
        info["sysmeta"]["project-domain-id"] = case["stored"]
    names = ("AUTH_p1", "AUTH_p2", "SERVICE_p1", "OTHER_p1", "p1")
    env = {environkeys.INFOCACHE: {f"account/{name}": info for name in names}}
    if case.get("sync_key"):
        env[environkeys.SYNC_KEY] = case["sync_key"]
    if case.get("override"):
        env[environkeys.AUTHORIZE_OVERRIDE] = True
    if case.get("token_info") is not None:
        env[environkeys.KEYSTONE_TOKEN_INFO] = case["token_info"]
    conf = case.get("conf", {})
    auth = Keystoneauth(app, KeystoneauthSettings.parse(conf), conf)
    response = auth.handle(Request(case["method"], case["path"], headers, env=env))
    return {
        **app.seen,
        "status": response.status,
        "shown": response.headers.get("x-account-project-domain-id"),
        "challenge": response.headers.get("www-authenticate"),
    }


def status(method, path, headers=OWN, **case):
    return ask({"method": method, "path": path, "headers": headers, **case})["status"]


CASES = make_cases()
BLOCK = 250


@pytest.mark.parametrize("start", range(0, len(CASES), BLOCK))
def test_every_case_has_the_answer_of_the_peer(start):
    lines = ANSWERS.read_text().splitlines()[start : start + BLOCK]
    for number, (case, line) in enumerate(zip(CASES[start : start + BLOCK], lines, strict=True), start):
        ours = json.loads(json.dumps(ask(case)))
        assert ours == json.loads(line), f"case {number}: {case}"


# --- the rules, one by one ------------------------------------------------------------------------------


def with_roles(roles, **others):
    return {**OWN, "x-roles": roles, **{name.replace("_", "-"): value for name, value in others.items()}}


@pytest.mark.parametrize("role", ["admin", "ADMIN", "member, swiftoperator"])
def test_an_operator_owns_the_account_of_its_project_alone(role):
    seen = ask({"method": "PUT", "path": "/v1/AUTH_p1/c", "headers": with_roles(role)})
    assert (seen["status"], seen["owner"], seen["user"]) == (204, True, ("p1", "pn"))
    assert status("GET", "/v1/AUTH_p2/c", with_roles(role)) == 403
    assert status("DELETE", "/v1/AUTH_p1", with_roles(role)) == 403


def test_nobody_is_asked_for_a_token_and_who_has_one_is_refused():
    seen = ask({"method": "GET", "path": "/v1/AUTH_p1", "headers": {}})
    assert (seen["status"], seen["challenge"]) == (401, 'Swift realm="AUTH_p1"')
    assert status("GET", "/v1/AUTH_p1") == 403
    for unconfirmed in ({"x-identity-status": "Invalid"}, {"x-service-identity-status": "Invalid"}):
        assert status("GET", "/v1/AUTH_p1", {**with_roles("admin"), **unconfirmed}) == 401


def test_a_reseller_admin_owns_all_accounts_and_a_system_reader_reads_them():
    boss = {"method": "DELETE", "path": "/v1/AUTH_p2", "headers": with_roles("reselleradmin")}
    assert [ask(boss)[name] for name in ("status", "owner", "reseller")] == [204, True, True]
    conf = {"system_reader_roles": "auditor"}
    for method, expected in (("GET", 204), ("HEAD", 204), ("PUT", 403)):
        assert status(method, "/v1/AUTH_p2/c/o", with_roles("Auditor"), conf=conf) == expected


def test_a_project_reader_reads_its_project():
    conf = {"project_reader_roles": "reader"}
    for method, expected in (("GET", 204), ("HEAD", 204), ("POST", 403)):
        assert status(method, "/v1/AUTH_p1/c", with_roles("reader"), conf=conf) == expected
    assert status("GET", "/v1/AUTH_p2/c", with_roles("reader"), conf=conf) == 403


def test_service_accounts_need_the_role_of_a_service_besides():
    conf = {"reseller_prefix": "AUTH, SERVICE", "SERVICE_service_roles": "service"}
    path = "/v1/SERVICE_p1/c"
    assert status("PUT", path, with_roles("admin"), conf=conf) == 403
    assert status("PUT", path, with_roles("admin", x_service_roles="Service"), conf=conf) == 204
    assert status("PUT", path, with_roles("member", x_service_roles="service"), conf=conf) == 403
    assert status("PUT", "/v1/AUTH_p1/c", with_roles("admin"), conf=conf) == 204


@pytest.mark.parametrize("acl", ["p1:u1", "p1:*", "*:u1", "*:*", "pn:un", "pn:*", "*:un", "x:y,p1:u1"])
def test_an_acl_lets_users_of_other_projects_in(acl):
    assert status("PUT", "/v1/AUTH_p2/c/o", acl=acl) == 204
    assert status("DELETE", "/v1/AUTH_p2", acl=acl) == 403, "never to delete an account"


@pytest.mark.parametrize(
    "case",
    [
        {"conf": {"allow_names_in_acls": "no"}},
        {"headers": {**OWN, "x-user-domain-id": "other"}},
        {"headers": {**OWN, "x-project-domain-id": "other"}},
        {"stored": "other"},
        {"stored": "_unknown"},
        {"account_status": 404},
    ],
)
def test_names_in_acls_count_in_the_default_domain_alone(case):
    asked = {"headers": OWN, "token_info": {"token": {}}, **case}
    assert status("GET", "/v1/AUTH_p2/c", acl="pn:un", **asked) == 403
    assert status("GET", "/v1/AUTH_p2/c", acl="p1:u1", **asked) == 204


def test_a_role_in_an_acl_counts_within_the_project():
    assert status("GET", "/v1/AUTH_p1/c", with_roles("Writer"), acl="writer") == 204
    assert status("GET", "/v1/AUTH_p2/c", with_roles("Writer"), acl="writer") == 403


@pytest.mark.parametrize("headers", [{}, OWN], ids=["nobody", "somebody"])
def test_referrers_and_the_key_of_container_sync_let_anybody_in(headers):
    denied = 403 if headers else 401
    assert status("GET", "/v1/AUTH_p2/c/o", headers, acl=".r:*") == 204
    assert status("GET", "/v1/AUTH_p2/c", headers, acl=".r:*") == denied
    assert status("GET", "/v1/AUTH_p2/c", headers, acl=".r:*,.rlistings") == 204
    synced = {**headers, "x-container-sync-key": "secret", "x-timestamp": "1"}
    assert status("PUT", "/v1/AUTH_p2/c/o", synced, sync_key="secret") == 204
    assert status("PUT", "/v1/AUTH_p2/c/o", synced, sync_key="other") == denied
    assert status("OPTIONS", "/v1/AUTH_p2/c", headers) == 204


@pytest.mark.parametrize("headers", [{}, OWN], ids=["nobody", "somebody"])
@pytest.mark.parametrize("path", ["/", "/v1//c", "/%FF"])
def test_a_path_that_names_nothing_is_not_found(path, headers):
    assert status("GET", path, headers) == 404


@pytest.mark.parametrize(
    ("account_status", "stored", "domain", "told"),
    [
        (404, None, "pd", "pd"),
        (404, None, None, None),
        (200, None, "default", "default"),
        (200, None, "pd", None),
        (200, "_unknown", "pd", "pd"),
        (200, "_unknown", None, ""),
        (200, "pd", "pd", None),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("PUT", "/v1/AUTH_p1/c"), ("POST", "/v1/AUTH_p1")])
def test_an_account_remembers_the_domain_of_its_project(method, path, account_status, stored, domain, told):
    headers = with_roles("admin") if domain is None else with_roles("admin", x_project_domain_id=domain)
    case = {"method": method, "path": path, "headers": headers, "token_info": {"token": {}}}
    assert ask({**case, "account_status": account_status, "stored": stored})["domain"] == told


def test_a_new_account_of_another_project_has_an_unknown_domain():
    case = {"method": "PUT", "path": "/v1/AUTH_p2", "headers": with_roles("reselleradmin")}
    assert ask({**case, "account_status": 404})["domain"] == "_unknown"
    assert ask({**case, "really_exists": False})["domain"] == "_unknown"


def test_an_override_passes_untouched_unless_it_is_forbidden():
    case = {"method": "GET", "path": "/v1/AUTH_p1", "headers": {}, "override": True}
    assert ask(case)["status"] == 204
    assert ask({**case, "conf": {"allow_overrides": "false"}})["status"] == 401


def test_the_callback_knows_who_asks_in_subrequests_too():
    app = App({})
    auth = Keystoneauth(app, KeystoneauthSettings(), {})
    auth.handle(Request("GET", "/v1/AUTH_p1/c", with_roles("admin")))
    callback = app.requests[0].env[environkeys.AUTHORIZE]
    assert callback(Request("GET", "/v1/AUTH_p1/other/o")) is None
    assert callback(Request("GET", "/v1/AUTH_p2/other/o")).status == 401


def test_hidden_accounts_are_for_none():
    conf = {"system_reader_roles": "auditor"}
    for path in ("/v1/.layout/state/layout", "/v1/.identity/users/a", "/v1/.expiring_objects"):
        for method in ("GET", "PUT", "POST", "DELETE"):
            assert status(method, path, with_roles("reselleradmin, auditor"), conf=conf) == 403
