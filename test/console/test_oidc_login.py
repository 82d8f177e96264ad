"""A person logs in to the console through an identity provider, with Chromium."""

import json

import pytest

from swift.aio.users import create_users
from test.console.conftest import KEY
from test.functional.test_swiftauth import user_command
from test.support.chromium import needs_chromium
from test.support.cluster import LiveCluster
from test.support.oidc_server import OidcServer, default_keys, install_provider, needs_node

pytestmark = [pytest.mark.process, needs_chromium, needs_node]


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm")
    install_provider(folder)
    return folder


@pytest.fixture
def cluster(tmp_path, provider):
    """A cluster whose people log in at a provider."""
    live = LiveCluster(
        tmp_path / "data",
        nodes=1,
        disks=3,
        rest_s=LiveCluster.AT_REST_S,
        options="[filter:console]\nuse = egg:swift#console\noidc_providers = npm\n",
        tempauth=False,
        key=KEY,
    )
    server = OidcServer(provider, [f"{live.plan.url}/auth/oidc/npm/callback"], {"ann": ["admins"], "bob": []})
    live.server = server
    server.start(*default_keys())
    try:
        live.start()
        create_users(live.plan)
        yield live
    finally:
        live.stop()
        server.stop()


@pytest.mark.long
def test_a_person_of_a_mapped_group_uses_the_console(cluster, chromium, tmp_path):
    document = {
        "issuer": cluster.server.issuer,
        "client_id": "swift",
        "tenant": "test",
        "scopes": ["openid", "email", "groups"],
        "roles": {"admins": ["reader"]},
        "redirect_uri": f"{cluster.plan.url}/auth/oidc/npm/callback",
    }
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Federated": "npm"},
                "Action": "sts:AssumeRoleWithWebIdentity",
            }
        ],
    }
    (tmp_path / "provider.json").write_text(json.dumps(document))
    (tmp_path / "trust.json").write_text(json.dumps(trust))
    words = ("provider", "set", "npm", str(tmp_path / "provider.json"), "--secret")
    user_command(cluster, *words, text="a secret of the client\n")
    words = ("role", "add", "test:reader", "--trust", str(tmp_path / "trust.json"), "--policy", "readonly")
    user_command(cluster, *words)
    page = chromium.new_context().new_page()
    page.goto(f"{cluster.plan.url}/console/usage")
    page.click("a[href*='/auth/oidc/npm/login']")
    page.fill("input[name=login]", "ann")
    page.fill("input[name=password]", "any")
    page.click("button[type=submit]")
    page.click("button[type=submit]")
    page.wait_for_url("**/console/usage")
    assert "test:role/reader/ann" in page.inner_text("header")
    page.goto(f"{cluster.plan.url}/console/buckets")
    page.fill("form[action$='/buckets/make'] [name=bucket]", "made")
    page.click("form[action$='/buckets/make'] button")
    assert page.locator("[role=alert]").count() == 1, "the role reads only"
    page.context.close()
