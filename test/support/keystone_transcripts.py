"""Requests for keystoneauth, and the decision of the peer's filter about each.

``SWIFT_PEER_BIN=... python -m test.support.keystone_transcripts`` records the answers again.
"""

import json
import random
import subprocess
from pathlib import Path

from test.support.peer import PEER_BIN, environment

ANSWERS = Path(__file__).parents[1] / "golden" / "data" / "keystoneauth.json"
CASES = 1500
#: A name as WSGI shows its UTF-8.
ACCENTED = "r\u00e9".encode().decode("latin-1")

IDENTITY = {
    "X-Identity-Status": ["Confirmed"] * 8 + [None, "Invalid"],
    "X-Service-Identity-Status": [None] * 8 + ["Confirmed", "Invalid"],
    "X-Roles": [
        "admin",
        "SwiftOperator",
        "member",
        "member,Reader",
        "Auditor",
        "ResellerAdmin",
        "",
        "Writer",
    ],
    "X-Service-Roles": [None, None, "service", "Service,x", "other"],
    "X-User-Id": ["u1", "u1", "u1", None],
    "X-User-Name": ["un", "un", ACCENTED],
    "X-Project-Id": ["p1", "p1", "p1", "p2", None],
    "X-Tenant-Id": [None, None, "p1"],
    "X-Project-Name": ["pn"],
    "X-User-Domain-Id": ["default", "default", "ud", None, ""],
    "X-Project-Domain-Id": ["default", "default", "pd", None, ""],
    "Referer": [None, None, "http://good.example/x", "http://bad.example/"],
    "X-Container-Sync-Key": [None, None, None, "secret", "wrong"],
    "X-Timestamp": [None, "1"],
}
METHODS = ["GET", "GET", "HEAD", "PUT", "PUT", "POST", "DELETE", "OPTIONS"]
PATHS = (
    *("/v1/AUTH_p1", "/v1/AUTH_p1/c", "/v1/AUTH_p1/c/o", "/v1/AUTH_p1/c/o/deep", "/v1/AUTH_p1/"),
    *("/v1/AUTH_p2", "/v1/AUTH_p2/c", "/v1/AUTH_p2/c/o", "/v1/SERVICE_p1", "/v1/SERVICE_p1/c"),
    *("/v1/SERVICE_p1/c/o", "/v1/OTHER_p1/c", "/", "/v1//c", "/v1/p1/c"),
)
ACLS = (
    *(None, None, None, "", "p1:u1", "p1:*", "*:u1", "*:*", "pn:un", "pn:*", "*:un", "p1:un", "pn:u1"),
    *("p2:u1", "x:y,p1:u1", "member", "MEMBER", "writer,member", ".r:*", ".r:*,.rlistings"),
    *(".r:good.example", ".r:good.example,.rlistings", ".r:-bad.example,.r:*", ".rlistings", "*"),
    *("%2A:u1", "pn:r%C3%A9", f"pn:{ACCENTED}"),
)
CONFS = (
    {},
    {},
    {"operator_roles": "Writer", "reseller_admin_role": "boss"},
    {"reseller_prefix": "AUTH, SERVICE", "SERVICE_service_roles": "service"},
    {"reseller_prefix": "AUTH_,SERVICE_", "AUTH_operator_roles": "member", "service_roles": "SERVICE"},
    {"reseller_prefix": "''", "operator_roles": "admin"},
    {"reseller_prefix": "SERVICE", "project_reader_roles": "reader"},
    {"project_reader_roles": "Reader, auditor", "allow_names_in_acls": "false"},
    {"system_reader_roles": "AUDITOR", "default_domain_id": "ud"},
    {"is_admin": "true", "allow_overrides": "false"},
)


def make_cases():
    """Return all cases, deterministically."""
    dice = random.Random(20)
    return [_case(dice) for _ in range(CASES)]


def _case(dice):
    headers = {name: dice.choice(values) for name, values in IDENTITY.items()}
    return {
        "method": dice.choice(METHODS),
        "path": dice.choice(PATHS),
        "headers": {name: value for name, value in headers.items() if value is not None},
        "conf": dice.choice(CONFS),
        "acl": dice.choice(ACLS),
        "sync_key": dice.choice([None, "secret"]),
        "override": dice.random() < 0.03,
        "token_info": dice.choice([{"token": {}}, {"token": {}}, {"access": {}}, {}, None]),
        "account_status": dice.choice([200, 200, 404]),
        "stored": dice.choice([None, None, "default", "_unknown", "", "pd", "ud"]),
        "told": dice.choice([None, "pd", ""]),
    }


#: Runs in the peer's Python, and sees its filter from outside alone.
_ASK = """
import json, sys
from swift.common.middleware.keystoneauth import filter_factory
from swift.common.swob import Request, Response

def ask(case):
    seen = {}
    def app(env, start):
        req = Request(env)
        req.acl = case["acl"]
        callback = env.get("swift.authorize")
        denial = callback(req) if callback else None
        seen["user"] = env.get("REMOTE_USER")
        seen["identity"] = env.get("keystone.identity")
        seen["owner"] = bool(env.get("swift_owner"))
        seen["reseller"] = bool(env.get("reseller_request"))
        seen["logged"] = (env.get("swift.access_logging") or {}).get("user_id")
        seen["domain"] = req.headers.get("X-Account-Sysmeta-Project-Domain-Id")
        told = {"X-Account-Sysmeta-Project-Domain-Id": case["told"]} if case["told"] is not None else {}
        response = denial or Response(status=204, request=req, headers=told)
        return response(env, start)
    req = Request.blank(case["path"], method=case["method"], headers=case["headers"])
    env = req.environ
    if case["sync_key"]:
        env["swift_sync_key"] = case["sync_key"]
    if case["override"]:
        env["swift.authorize_override"] = True
    if case["token_info"] is not None:
        env["keystone.token_info"] = case["token_info"]
    info = {"status": case["account_status"], "container_count": "0", "total_object_count": "0", "bytes": "0",
            "meta": {}, "sysmeta": {}, "storage_policies": {}, "account_really_exists": True}
    if case["stored"] is not None:
        info["sysmeta"]["project-domain-id"] = case["stored"]
    env["swift.infocache"] = {
        "account/" + name: info for name in ("AUTH_p1", "AUTH_p2", "SERVICE_p1", "OTHER_p1", "p1")
    }
    response = req.get_response(filter_factory({}, **case["conf"])(app))
    seen["status"] = response.status_int
    seen["shown"] = response.headers.get("X-Account-Project-Domain-Id")
    seen["challenge"] = response.headers.get("Www-Authenticate")
    return seen

json.dump([ask(case) for case in json.load(sys.stdin)], sys.stdout)
"""


def ask_peer(cases):
    """Return the decisions of the peer's filter about cases."""
    done = subprocess.run(
        [f"{PEER_BIN}/python", "-c", _ASK],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=environment(),
        cwd="/",
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    ANSWERS.write_text("\n".join(json.dumps(response) for response in ask_peer(make_cases())) + "\n")
