"""Log-in of people: which session they get, and what leads to the console."""

import json

import pytest

from swift.http import environkeys
from swift.identity.oidc.login import OidcSession
from test.support.oidc import FakeProvider, query_of
from test.unit.middleware.swiftauth.test_filter import World, keys_of_token, texts

TRUST = json.dumps(
    {
        "Statement": {
            "Effect": "Allow",
            "Principal": {"Federated": "main"},
            "Action": "sts:AssumeRoleWithWebIdentity",
        }
    }
)
DENY = {"Effect": "Deny", "Action": "sts:GetSessionToken", "Resource": "*"}


class Site:
    """A cluster with a provider, whose people have the role ``acme:staff``."""

    def __init__(self):
        self.provider = FakeProvider(role_claim="roles")
        verifier = self.provider.verifier()
        self.world = World(public_url="https://swift.example", verifier=verifier)
        settings = {"issuer": self.provider.provider.issuer, "client_id": "swift", "tenant": "acme"}
        settings["role_claim"] = "roles"
        self.world.op("PutProvider", provider="main", settings=json.dumps(settings))
        self.world.op("CreateRole", role="acme:staff", trust=TRUST, groups=[".admin"])

    def log_in(self, return_to):
        begun = self.world.send("GET", f"/auth/oidc/main/login?return_to={return_to}")
        assert begun.status == 303
        sent = query_of(begun.headers["location"])
        self.provider.tokens = lambda _form: (
            200,
            {"id_token": self.provider.token(nonce=sent["nonce"], roles=["none", "staff"])},
        )
        cookie = begun.headers["set-cookie"].partition(";")[0]
        path = f"/auth/oidc/main/callback?code=c&state={sent['state']}"
        return self.world.send("GET", path, {"cookie": cookie})


@pytest.mark.parametrize("return_to", ["/console", "/console/acme/cat?page=2"])
def test_a_log_in_that_leads_to_the_console_is_passed_to_it(return_to):
    site = Site()
    page = site.log_in(return_to.replace("?", "%3F"))
    assert page.status == 200
    found = site.world.request.env[environkeys.OIDC_SESSION]
    assert found == OidcSession(found.token, return_to)
    assert found.token in page.read_body().decode()
    keys = keys_of_token(site.world, found.token)
    arn = texts(site.world.query(keys, "GetCallerIdentity"), "Arn")
    assert arn == ["arn:aws:sts::acme:assumed-role/staff/u-1"]
    site.world.op("PutInlinePolicy", role="acme:staff", name="deny", document=json.dumps({"Statement": DENY}))
    site.world.made.clock.now += 31
    assert keys_of_token(site.world, found.token) == keys, "sessions of roles need no right"
    site.world.send("DELETE", "/auth/token", {"x-auth-token": found.token})
    assert site.world.query(keys, "GetCallerIdentity").status == 403


@pytest.mark.parametrize("return_to", ["/", "/other", "http://127.0.0.1:8000/console"])
def test_other_log_ins_are_not_passed_to_the_console(return_to):
    site = Site()
    assert site.log_in(return_to).status == 200
    assert environkeys.OIDC_SESSION not in site.world.request.env
