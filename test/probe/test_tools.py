"""Tools against a live cluster: dispersion, audits, health, queues."""

import json

import pytest

from swift.aio.plan import ClusterPlan
from test.support.cluster import LiveCluster
from test.support.peer import run
from test.support.stub_servers import Catalog


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    made = LiveCluster(tmp_path_factory.mktemp("tools") / "data")
    made.start()
    yield made
    made.stop()


@pytest.fixture()
def conf(live, tmp_path):
    path = tmp_path / "dispersion.conf"
    path.write_text(
        f"[dispersion]\nauth_url = {live.plan.auth_url}\nauth_user = test:tester\nauth_key = testing\n"
        f"swift_dir = {live.plan.etc}\ndispersion_coverage = 20\nretries = 1\n"
    )
    return path


def lines(name, *words, code=0):
    done = run(name, *words)
    assert (done.returncode, done.stderr if code else "") == (code, done.stderr if code else ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


@pytest.fixture()
def keystone(live):
    service = Catalog(f"http://{live.host}/v1/AUTH_test", live.token())
    yield service
    service.stop()


@pytest.mark.long
def test_dispersion_logs_in_at_keystone(live, conf, keystone):
    text = conf.read_text().replace(live.plan.auth_url, f"{keystone.url}/v3/")
    text = text.replace("testing\n", "own\n").replace("test:tester", "name")
    text += "auth_version = 3.0\nproject_name = project\nproject_domain_name = D\n"
    conf.write_text(text)
    assert (
        "Created 12 containers for dispersion reporting" in lines("swift-dispersion-populate", conf)[-2:][0]
    )
    asked = keystone.asked[-1]["auth"]
    assert asked["scope"]["project"] == {"name": "project", "domain": {"name": "D"}}
    assert asked["identity"]["password"]["user"]["domain"] == {"id": "default"}
    assert "100.00% of container copies found" in "\n".join(lines("swift-dispersion-report", conf))
    for wrong, right, said in (
        ("own", "bad", f"cannot log in at {keystone.url}/v3/: it answers 401"),
        ("auth_version = 3.0", "auth_version = 2.0", "auth_version 2.0 is not known"),
        ("project_name", "endpoint_type = any\nproject_name", "endpoint_type any is not known"),
        (
            "project_name",
            "region_name = mars\nproject_name",
            "the catalog has no public object-store in region mars",
        ),
    ):
        conf.write_text(text.replace(wrong, right, 1))
        done = run("swift-dispersion-report", conf)
        assert done.returncode == 1 and said in done.stderr, (done.stdout, done.stderr)
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_dispersion_finds_what_is_missing(live, conf):
    said = lines("swift-dispersion-populate", conf)
    assert said[0] == "Using storage policy: gold "
    assert [line.split(", ")[0] for line in said[1:]] == [
        "Created 12 containers for dispersion reporting",
        "Created 12 objects for dispersion reporting",
    ]
    report = lines("swift-dispersion-report", conf)
    assert "100.00% of container copies found (36 of 36)" in report
    assert "100.00% of object copies found (36 of 36)" in report
    assert "Sample represents 18.75% of the object partition space" in report
    with daemons_paused(live):
        for each in live.stored(policy=0)[:2]:
            each.remove()
        facts = json.loads("".join(lines("swift-dispersion-report", conf, "-j", "--object-only")))
    assert set(facts) == {"object"}
    assert (facts["object"]["copies_found"], facts["object"]["copies_expected"]) == (34, 36)
    lines("swift-dispersion-populate", conf, "--no-overlap", "--container-only")
    report = lines("swift-dispersion-report", conf, "--container-only")
    assert "Sample represents 37.50% of the container partition space" in report
    assert "There were" not in "".join(report), "nothing overlaps"
    assert lines("swift-dispersion-report", conf, "-P", "nosuch", code=1) == []


def daemons_paused(live):
    """Stop the daemons, which would repair the damage that a test makes."""
    return live.stopped(*(process.name for process in live.plan.daemons()))


def test_an_audit_of_an_account_reports_differences(live, tmp_path):
    assert live.request("PUT", "audited").status == 201
    for number in range(3):
        assert live.request("PUT", f"audited/o{number}", body=b"hello").status == 201
    good = lines("swift-account-audit", "-r", live.plan.etc, "AUTH_test/audited", "-d")
    assert good[:2] == ['Auditing container "audited"', 'Auditing account "AUTH_test"']
    assert "   Objects checked: 3" in good
    assert "  Missing Replicas: 1" not in good
    errors = tmp_path / "errors"
    with daemons_paused(live):
        next(each for each in live.stored(policy=0) if each.body() == b"hello").remove()
        bad = lines("swift-account-audit", "-r", live.plan.etc, "AUTH_test/audited", "-e", errors)
        assert any(line.startswith("  Bad status 404 HEADing object") for line in bad)
        assert "  Missing Replicas: 1" in bad
        assert errors.read_text().startswith("/AUTH_test/audited/o")
        again = run("swift-account-audit", "-r", live.plan.etc, "--format", "json", input=errors.read_text())
        assert json.loads(again.stdout)["objects"] == {"checked": 1, "missing": 1}
    assert run("swift-account-audit", "-r", live.plan.etc, input="").returncode == 2


@pytest.mark.long
def test_container_deletions_are_queued_for_the_expirer(live):
    assert live.request("PUT", "doomed").status == 201
    for name in ("a1", "b1", "b2", "c1"):
        assert live.request("PUT", f"doomed/{name}", body=b"x").status == 201
    conf = live.plan.etc / "internal-client.conf"
    said = lines("swift-container-deleter", "--config", conf, "--prefix", "b", "AUTH_test", "doomed")
    assert said == ["Finished. Marked 2 objects for deletion."]
    live.await_true(lambda: live.request("GET", "doomed").body == b"a1\nc1\n", "the expirer came by", 60)
    assert lines("swift-container-deleter", "--config", "/nosuch", "AUTH_test", "doomed", code=1) == []


def test_entries_of_the_reconcilers_queue_have_the_peers_format(live):
    said = lines("swift-reconciler-enqueue", "0", "/AUTH_test/c/o", "1402436408.91203", "-d", live.plan.etc)
    assert said == ["1402434000"]
    for words in (("9", "/a/c/o", "1"), ("0", "/a/c", "1"), ("0", "/a/c/o", "x")):
        assert run("swift-reconciler-enqueue", *words, "-d", live.plan.etc).stderr.startswith("ERROR: ")


@pytest.mark.long
def test_health_reports_the_effect_of_a_lost_device(live: LiveCluster):
    plan: ClusterPlan = live.plan
    facts = json.loads(run("swift-health", "-d", plan.etc, "--format", "json").stdout)
    assert facts["devices_away"] == []
    assert all(ring["degraded"] == 0 for ring in facts["rings"])
    live.lose_device(1)
    try:
        done = run("swift-health", "-d", plan.etc, "--format", "json")
        facts = json.loads(done.stdout)
        assert done.returncode in (1, 2)
        assert facts["devices_away"] == [f"{plan.ip}/{plan.device(1)}"]
        assert all(0 < ring["degraded"] == ring["missing_copies"] for ring in facts["rings"])
        assert all(ring["without_enough_copies"] == 0 for ring in facts["rings"])
    finally:
        live.return_device(1)
    live.kill("object-2")
    try:
        done = run("swift-health", "-d", plan.etc)
        assert done.returncode == 2
        assert "1 object server silent" in done.stdout
        assert "to heal it: start them (swift-init object-server start)" in done.stdout
    finally:
        live.restart("object-2")
    assert run("swift-health", "-d", "/nosuch").returncode == 3


@pytest.mark.long
def test_pending_updates_are_counted_for_recon(live, tmp_path):
    conf = live.plan.etc / "object-server" / "1.conf"
    waiting = live.device_path(1) / "async_pending" / "abc"
    name = "0" * 29 + "abc-1795228430.52472"
    copy = tmp_path / "object-server.conf"
    where = f"recon_cache_path = {tmp_path}\nrecon_lock_path = {tmp_path}\n"
    copy.write_text(f"{conf.read_text()}\n[filter:recon]\nuse = egg:swift#recon\n{where}")
    # An updater would quarantine a file that is no update.
    with daemons_paused(live):
        waiting.mkdir(parents=True, exist_ok=True)
        (waiting / name).write_bytes(b"x")
        assert lines("swift-recon-cron", copy) == []
        (waiting / name).unlink()
    assert json.loads((tmp_path / "object.recon").read_text())["async_pending"] >= 1
    assert lines("swift-recon-cron", code=1)[0] == "Usage: swift-recon-cron CONF_FILE"
    assert lines("swift-recon-cron", "/nosuch", code=1) == []
