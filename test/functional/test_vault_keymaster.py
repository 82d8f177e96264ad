"""A live cluster whose root secrets Vault or OpenBao unwraps: absent, sealed, revoked, and back again."""

import json
import time

import pytest

from test.functional.test_rekey import OLD, rekey
from test.functional.test_s3 import client_of, refused
from test.support.cluster import LiveCluster
from test.support.vault import KEY, VAULTS

BODY = b"not to be read on a disk " * 100
SECRET = bytes(range(32))
#: Seconds for which secrets are used, and further ones during an outage.
FRESH_S, OUTAGE_S = 1, 3


@pytest.fixture(params=VAULTS)
def vault(request, tmp_path):
    folder = tmp_path / "vault"
    folder.mkdir()
    made = request.param(folder)
    try:
        made.make_key()
        yield made
    finally:
        made.close()


def section(vault, folder, wrapped):
    role, secret = vault.make_approle()
    (folder / "secret-id").write_text(secret)
    return f"""
[filter:vault_keymaster]
use = egg:swift#vault_keymaster
vault_url = {vault.url}
vault_timeout = 2
transit_key = {KEY}
role_id = {role}
secret_id_file = {folder}/secret-id
secret_seconds = {FRESH_S}
outage_seconds = {OUTAGE_S}
wrapped_root_secret_one = {wrapped}
active_root_secret_id = one

[filter:keymaster]
use = egg:swift#keymaster
encryption_root_secret = {OLD}
"""


@pytest.fixture
def live(vault, tmp_path):
    before = "proxy-logging proxy-server"
    options = section(vault, tmp_path, vault.wrap(SECRET))
    places = {"vault_keymaster": before, "encryption": before}
    cluster = LiveCluster(
        tmp_path / "data", nodes=1, replicas=1, proxy_workers=0, places=places, options=options
    )
    # Vault is absent when the cluster starts.
    vault.stop()
    try:
        cluster.start()
        assert cluster.request("PUT", "box").status == 201
        yield cluster
    finally:
        cluster.stop()


def put(cluster, name, body=BODY):
    return cluster.request("PUT", f"box/{name}", {"X-Object-Meta-Colour": "red"}, body)


def reason(response):
    assert response.status == 503, response
    found = response.headers["x-encryption-error"]
    assert found.encode() in response.body
    return found


@pytest.mark.long
def test_without_the_service_there_are_no_keys_and_no_plain_text(live, vault):
    for name in ("o", "empty"):
        assert reason(put(live, name, BODY if name == "o" else b"")) == "the key service does not respond"
    assert not live.stored()
    vault.start()
    vault.seal()
    live.await_true(lambda: "sealed" in reason(put(live, "o")), "the service is sealed")
    vault.unseal()
    live.await_true(lambda: put(live, "o").status == 201, "the service is unsealed")
    response = live.request("GET", "box/o")
    assert (response.body, response.headers["x-object-meta-colour"]) == (BODY, "red")
    assert not any(BODY[:20] in each.body() for each in live.stored())
    # Known secrets serve for a while during an outage, and not for ever.
    vault.seal()
    time.sleep(FRESH_S + 0.5)
    assert live.request("GET", "box/o").body == BODY
    seconds = FRESH_S + OUTAGE_S + 5
    live.await_true(lambda: live.request("GET", "box/o").status == 503, "the outage is long", seconds)
    assert "sealed" in reason(live.request("GET", "box/o"))
    assert "sealed" in reason(live.request("GET", "box?format=json"))
    assert "sealed" in reason(put(live, "new"))
    with refused("ServiceUnavailable", 503):
        client_of(live).get_object(Bucket="box", Key="o")
    vault.unseal()
    live.await_true(lambda: live.request("GET", "box/o").status == 200, "the service is back")
    rows = live.request("GET", "box?format=json").json()
    assert [row["name"] for row in rows] == ["o"]
    # A deleted key has an effect within the time of a secret.
    vault.delete_key()
    live.await_true(lambda: live.request("GET", "box/o").status == 503, "the key is revoked", FRESH_S + 2)
    assert "refuses" in reason(put(live, "o"))
    text = live.log_text()
    assert "Traceback" not in text and "key service is sealed" in text
    for secret in (SECRET.hex(), "AAECAwQFBgcICQoLDA0ODw==", "vault:v1:"):
        assert secret not in text
    assert (live.plan.root.parent / "secret-id").read_text() not in text


@pytest.mark.long
def test_objects_move_from_a_secret_in_the_configuration_to_a_wrapped_one(live, vault, tmp_path):
    vault.start()
    conf = live.plan.etc / "proxy-server.conf"
    with_both = conf.read_text()
    conf.write_text(with_both.replace(" vault_keymaster encryption", " keymaster encryption"))
    assert conf.read_text() != with_both
    restart(live)
    assert put(live, "old").status == 201
    # The rightmost keymaster encrypts; it asks the others for secrets that it does not know.
    conf.write_text(with_both.replace("vault_keymaster encryption", "keymaster vault_keymaster encryption"))
    restart(live)
    assert live.request("GET", "box/old").body == BODY
    assert put(live, "new").status == 201
    words = ("--account", "AUTH_test", "--format", "json")
    usage = json.loads(rekey(live, "status", *words))
    assert {row["secret"]: row["objects"] for row in usage["usage"]} == {"-": 1, "one": 1}
    assert usage["active"] == "one"
    run = json.loads(rekey(live, "run", "--from", "-", "--state", f"{tmp_path}/state", *words))
    assert run["counts"] == {"rewritten": 1, "kept": 1}
    assert json.loads(rekey(live, "verify", "--from", "-", *words))["is_unused"]
    conf.write_text(with_both)
    restart(live)
    assert live.request("GET", "box/old").body == BODY


def restart(cluster):
    cluster.kill("proxy")
    cluster.restart("proxy")
