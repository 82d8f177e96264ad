"""Deployments on hosts in memory: a second one changes nothing, and other clusters are left alone."""

import json
import shutil
from dataclasses import replace

import pytest

from swift.base.errors import ConfigError
from swift.operations.deploy.deployment import Deployment, drift
from swift.ring.layoutfiles import create_keys
from test.support.deploy import INVENTORY, MemoryHosts, inventory_of


class Site:
    """A folder with a state directory, and hosts."""

    def __init__(self, folder):
        self.folder = folder
        self.hosts = MemoryHosts()
        self.reported = []
        self.pauses = []

    def deployment(self, text=INVENTORY):
        return Deployment(inventory_of(self.folder, text), self.hosts, sleep=self.pauses.append)

    def apply(self, text=INVENTORY, **options):
        deployment = self.deployment(text)
        prepared = deployment.prepare(**options)
        self.hosts.calls.clear()
        return prepared.plan, deployment.apply(prepared, self.reported.append)

    def drift(self, text=INVENTORY):
        return drift(self.deployment(text).prepare(go_on=False).plan)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_a_plan_writes_nothing(site, tmp_path):
    plan = site.deployment().prepare().plan
    assert "secrets: create the hash path values" in list(plan.lines())
    assert "host two: create /etc/swift/object-server.conf" in list(plan.lines())
    assert "host one: enable swift-proxy-server!" in list(plan.lines())
    assert list(tmp_path.iterdir()) == [] and site.hosts.calls == []


def test_the_first_apply_brings_everything(site, tmp_path):
    _plan, errors = site.apply()
    assert errors == [] and site.drift() == []
    assert site.reported == ["host one: done", "host two: done", "host three: done"]
    confs = {site.hosts.files[name]["/etc/swift/swift.conf"].content for name in ("one", "two", "three")}
    assert len(confs) == 1
    secrets = tmp_path / "cluster.state/secrets.json"
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "cluster.state").stat().st_mode & 0o777 == 0o700


def test_the_second_apply_changes_nothing(site):
    site.apply()
    plan, errors = site.apply()
    assert (list(plan.lines()), errors, site.hosts.calls) == ([], [], [])
    assert plan.is_empty and plan.as_json()["changes"] is False


def test_no_report_has_a_secret(site, tmp_path):
    plan, _errors = site.apply()
    values = json.loads((tmp_path / "cluster.state/secrets.json").read_text())
    shown = "\n".join([*plan.lines(), *plan.notes(), json.dumps(plan.as_json()), repr(plan), *site.reported])
    for secret in (values["hash_path_prefix"], values["hash_path_suffix"], values["keys"]["test:tester"]):
        assert len(secret) == 32 and secret not in shown


def test_a_new_disk_changes_rings_and_reloads_nothing(site):
    site.apply()
    text = INVENTORY.replace('[{ device = "sdb"', '[{ device = "sdd", weight = 100 }, { device = "sdb"', 1)
    assert "ring object: not done: add one/sdd with weight 100" in site.drift(text)
    site.apply(text)
    rings = [f"/etc/swift/{name}.ring.gz" for name in ("account", "container", "object")]
    assert sorted(site.hosts.calls) == [("install", name, rings, []) for name in ("one", "three", "two")]
    assert site.drift(text) == []


def test_a_new_host_gets_everything_and_the_others_its_rings(site):
    site.apply()
    host = '[[host]]\nname = "four"\naddress = "10.0.0.4"\nzone = 4\nroles = ["storage"]\n'
    site.apply(f'{INVENTORY}{host}disks = [{{ device = "sdb", weight = 100 }}]\n')
    installed = {call[1]: call[2] for call in site.hosts.calls if call[0] == "install"}
    assert "/etc/swift/swift.conf" in installed["four"]
    assert installed["two"] == [f"/etc/swift/{name}.ring.gz" for name in ("account", "container", "object")]
    assert [call[:2] for call in site.hosts.calls if call[0] == "switch_units"] == [("switch_units", "four")]


def test_changed_options_reload_the_services_that_read_them(site):
    site.apply()
    text = INVENTORY.replace("[proxy.users]", "[proxy]\nworkers = 4\n[proxy.users]")
    site.apply(text)
    assert site.hosts.calls == [
        ("install", "one", ["/etc/swift/proxy-server.conf"], ["swift-proxy-server!"]),
        ("switch_units", "one", [], [], ["swift-proxy-server!"]),
    ]


def test_a_role_that_a_host_loses_ends_its_services(site):
    text = INVENTORY.replace('roles = ["storage"]', 'roles = ["proxy", "storage"]', 1)
    site.apply(text)
    plan, _errors = site.apply()
    assert "host two: disable swift-proxy-server!" in list(plan.lines())
    assert site.drift() == []


TWO_PROXIES = INVENTORY.replace('roles = ["storage"]', 'roles = ["proxy", "storage"]', 1)


def test_a_record_cannot_name_files_that_are_never_deployed(site):
    site.apply()
    for path in ("/etc/passwd", "/etc/swift/../shadow", "/etc/swiftly.conf"):
        file = replace(site.hosts.files["two"]["/etc/swift/swift.conf"], path=path)
        site.hosts.files["two"][path] = site.hosts.record["two"][path] = file
    assert site.drift() == []
    plan, _errors = site.apply()
    assert plan.is_empty and list(plan.notes()) == []


def test_files_of_a_role_that_a_host_loses_are_removed(site):
    site.apply(TWO_PROXIES)
    before = dict(site.hosts.files["two"])
    assert "host two: /etc/swift/proxy-server.conf is left from a former role" in site.drift()
    plan, errors = site.apply()
    removed = ["/etc/swift/proxy-server.conf", "/etc/memcached.conf"]
    assert errors == [] and [f"host two: remove {path}" for path in removed] == [
        line for line in plan.lines() if "remove" in line
    ]
    # memcached was configured for the proxy; services stop before their files go.
    calls = [call for call in site.hosts.calls if call[1] == "two"]
    assert ("remove", "two", removed) == calls[-1]
    assert calls[-2][3] == ["swift-proxy-server!", "memcached!"]
    assert set(before) - set(site.hosts.files["two"]) == set(removed)
    assert site.drift() == []
    site.apply()
    assert site.hosts.calls == []


def test_a_file_that_apply_did_not_write_stays(site):
    site.apply(TWO_PROXIES)
    site.hosts.spoil("two", "/etc/swift/proxy-server.conf")
    site.hosts.files["two"]["/etc/swift/extra.conf"] = site.hosts.files["two"]["/etc/swift/swift.conf"]
    plan, _errors = site.apply()
    assert "/etc/swift/proxy-server.conf was changed by hand and stays" in plan.hosts[1].notes
    assert {"/etc/swift/proxy-server.conf", "/etc/swift/extra.conf"} <= set(site.hosts.files["two"])
    assert "/etc/memcached.conf" not in site.hosts.files["two"]


def test_a_host_serves_its_devices_until_they_leave_the_rings(site):
    fourth = (
        '[[host]]\nname = "four"\naddress = "10.0.0.4"\nzone = 4\n'
        'roles = ["storage"]\ndisks = [{ device = "sdb", weight = 100 }]\n'
    )
    site.apply(INVENTORY + fourth)
    former = fourth.replace('["storage"]', "[]").replace('[{ device = "sdb", weight = 100 }]', "[]")
    plan, _errors = site.apply(INVENTORY + former)
    assert "swift-object-server!" in site.hosts.units["four"]
    assert any("until its devices are removed" in note for note in plan.notes())
    assert site.drift(INVENTORY + former) == []
    # Nothing is left of it, so that it can leave the inventory.
    site.apply(INVENTORY + former, remove=True)
    assert site.hosts.units["four"] == set() and site.hosts.files["four"] == {}
    assert site.drift(INVENTORY + former) == site.drift() == []


def test_a_removal_that_failed_is_completed_by_the_next(site):
    site.apply(TWO_PROXIES)
    site.hosts.failing = {("remove", "two")}
    assert site.apply()[1] == ["host two: remove failed: no route"]
    site.hosts.failing = set()
    site.apply()
    assert site.hosts.calls[0][:2] == ("remove", "two")
    assert site.drift() == []


def test_a_file_and_a_unit_changed_by_hand_are_found_and_put_right(site):
    site.apply()
    site.hosts.spoil("two", "/etc/swift/object-server.conf")
    del site.hosts.files["three"]["/etc/swift/object.ring.gz"]
    site.hosts.units["three"].discard("swift-object-server!")
    assert site.drift() == [
        "host two: /etc/swift/object-server.conf differs",
        "host three: /etc/swift/object.ring.gz is missing",
        "host three: swift-object-server! is not enabled and running",
    ]
    site.apply()
    assert site.drift() == []


def test_an_apply_that_broke_off_is_completed_by_the_next(site):
    site.apply()
    text = INVENTORY.replace("[proxy.users]", "[proxy]\nworkers = 4\n[proxy.users]")
    site.hosts.failing = {("switch_units", "one")}
    _plan, errors = site.apply(text)
    assert errors == ["host one: switch_units failed: no route"]
    site.hosts.failing = set()
    assert site.drift(text) == ["host one: swift-proxy-server! has not reloaded its configuration"]
    site.apply(text)
    assert site.hosts.calls == [("switch_units", "one", [], [], ["swift-proxy-server!"])]
    assert site.drift(text) == []


def test_a_host_that_fails_does_not_stop_the_others(site):
    site.hosts.failing = {("install", "two")}
    _plan, errors = site.apply()
    assert errors == ["host two: install failed: no route"]
    assert site.reported == ["host one: done", "host three: done"]
    site.hosts.failing = set()
    site.apply()
    assert site.drift() == []


def test_an_unreachable_host_is_an_error_of_the_plan(site):
    site.hosts.failing = {("inspect", "two")}
    plan = site.deployment().prepare().plan
    assert plan.errors() == ["inspect failed: no route"]
    assert "host two: inspect failed: no route" in drift(plan)


def test_one_host_can_be_deployed_alone(site):
    site.apply(host="two")
    assert {call[1] for call in site.hosts.calls} == {"two"}
    with pytest.raises(ConfigError, match="there is no host four; hosts: one, two, three"):
        site.deployment().prepare(host="four")


def test_a_host_of_another_cluster_is_refused(site, tmp_path):
    site.apply()
    kept = tmp_path / "kept"
    shutil.move(tmp_path / "cluster.state", kept)
    with pytest.raises(
        ConfigError, match=r"host one: swift.conf has other hash path values .* restore the state"
    ):
        site.deployment().prepare()
    # The secrets are back, but the builders are not: new rings would lose all data.
    (tmp_path / "cluster.state").mkdir()
    shutil.copy(kept / "secrets.json", tmp_path / "cluster.state")
    with pytest.raises(
        ConfigError, match=r"host one: it has /etc/swift/account.ring.gz, .* no builder of it"
    ):
        site.deployment().prepare()


def test_a_new_user_gets_a_key_and_others_keep_theirs(site, tmp_path):
    site.apply()
    path = tmp_path / "cluster.state/secrets.json"
    before = json.loads(path.read_text())["keys"]
    plan, _errors = site.apply(INVENTORY.replace('"test:tester" =', '"a:b" = []\n"test:tester" ='))
    assert plan.secrets == ("create the key of the user a:b",)
    after = json.loads(path.read_text())["keys"]
    assert set(after) == {"a:b", "test:tester"} and after["test:tester"] == before["test:tester"]


def test_former_builders_are_kept(site, tmp_path):
    site.apply()
    site.apply(INVENTORY.replace('"sdc", weight = 100', '"sdc", weight = 50'))
    kept = {path.name.partition(".")[2] for path in (tmp_path / "cluster.state/backups").iterdir()}
    assert kept == {"account.builder", "container.builder", "object.builder"}


def test_damaged_secrets_are_not_shown(site, tmp_path):
    site.apply()
    path = tmp_path / "cluster.state/secrets.json"
    path.write_text(path.read_text()[:-10])
    with pytest.raises(ConfigError) as failed:
        site.deployment().prepare()
    assert str(failed.value) == f"{path} is damaged; restore it from a copy"


# --- authentication of servers ------------------------------------------------------------------------

REQUIRED = INVENTORY.replace("[cluster]", '[cluster]\nserver_auth = "require"')
SECRET_PATH = "/etc/swift/server.secret"


def secrets_of(site):
    return {name: files[SECRET_PATH].content.decode() for name, files in site.hosts.files.items()}


def ids_of(site):
    lines = next(iter(secrets_of(site).values())).splitlines()
    return [line.split()[0] for line in lines]


def test_a_cluster_without_the_option_has_no_secret(site):
    site.apply()
    assert all(SECRET_PATH not in files for files in site.hosts.files.values())
    assert b"swift-servers" not in site.hosts.files["one"]["/etc/swift/swift.conf"].content


def test_all_hosts_have_the_secret_before_a_server_demands_signatures(site):
    site.apply()
    plan, errors = site.apply(REQUIRED)
    assert errors == [] and "secrets: create the secret of the servers" in list(plan.lines())
    assert len(set(secrets_of(site).values())) == 1
    assert b"[swift-servers]\nmode = require\n" in site.hosts.files["two"]["/etc/swift/swift.conf"].content
    assert [call[0] for call in site.hosts.calls] == ["install"] * 3 + ["switch_units"] * 3
    assert len(site.pauses) == 1
    assert site.drift(REQUIRED) == []


def test_no_server_demands_signatures_while_a_host_has_no_secret(site):
    site.apply()
    site.hosts.failing.add(("install", "two"))
    _plan, errors = site.apply(REQUIRED)
    assert len(errors) == 1
    assert "switch_units" not in [call[0] for call in site.hosts.calls]
    site.hosts.failing.clear()
    assert site.apply(REQUIRED)[1] == []
    assert site.drift(REQUIRED) == []


def test_no_plan_shows_a_secret_of_servers(site):
    site.apply(REQUIRED)
    before = secrets_of(site)["one"].split()[1]
    site.hosts.spoil("one", SECRET_PATH)
    plan = site.deployment(REQUIRED).prepare().plan
    shown = "\n".join((*plan.diffs(), *plan.lines(), json.dumps(plan.as_json())))
    assert before not in shown
    assert "<former secret>" in shown
    first = MemoryHosts()
    plan = Deployment(inventory_of(site.folder, REQUIRED), first).prepare().plan
    assert "    +1 <new secret>" in list(plan.diffs())


def test_a_rotation_has_three_steps(site):
    site.apply(REQUIRED)
    former = secrets_of(site)["one"]
    site.pauses.clear()
    assert site.deployment(REQUIRED).rotate_secret(site.reported.append) == []
    assert site.reported[-3:] == [
        "all hosts sign with the secret 1, also accepted: 2",
        "all hosts sign with the secret 2, also accepted: 1",
        "all hosts sign with the secret 2",
    ]
    assert len(site.pauses) == 4
    assert len(set(secrets_of(site).values())) == 1 and former not in secrets_of(site)["one"]
    assert site.drift(REQUIRED) == []


def test_a_rotation_that_broke_off_is_completed_by_the_next(site):
    site.apply(REQUIRED)
    for step in range(3):
        steps = iter(range(step))

        def report(_line, steps=steps):
            if next(steps, None) is None:
                site.hosts.failing.add(("install", "three"))

        begun = ids_of(site)
        errors = site.deployment(REQUIRED).rotate_secret(report)
        assert bool(errors) == (step < 2)
        site.hosts.failing.clear()
        if errors:
            assert site.deployment(REQUIRED).rotate_secret(site.reported.append) == []
        assert ids_of(site) == [str(int(begun[0]) + 1)]


def test_a_cluster_without_a_secret_has_nothing_to_rotate(site):
    site.apply()
    with pytest.raises(ConfigError, match="server_auth"):
        site.deployment().rotate_secret(site.reported.append)
    with pytest.raises(ConfigError, match="server_auth"):
        site.deployment(REQUIRED).rotate_secret(site.reported.append)


# --- clusters with a layout ---------------------------------------------------------------------------


@pytest.fixture
def with_layout(site, tmp_path):
    """A deployed cluster whose hosts take their rings from a layout."""
    site.apply()
    create_keys(str(tmp_path / "cluster.state"))
    plan, errors = site.apply()
    assert errors == []
    assert "host two: create /etc/swift/layout.pub" in list(plan.lines())
    return site


def test_rings_of_a_layout_are_left_to_the_hosts(with_layout, tmp_path):
    site, path = with_layout, "/etc/swift/object.ring.gz"
    files = site.hosts.files["two"]
    assert b"cluster " in files["/etc/swift/layout.pub"].content
    files[path] = replace(files[path], content=b"a ring of the layout")
    assert site.drift() == []
    # A disk more in the inventory changes no ring.
    plan, _errors = site.apply(INVENTORY.replace('"sdc"', '"sdz"'))
    assert not plan.rings
    assert files[path].content == b"a ring of the layout"


def test_storage_services_of_a_layout_stop_only_when_told(with_layout):
    site = with_layout
    disks = '[{ device = "sdb", weight = 100 }]'
    fourth = (
        f'[[host]]\nname = "four"\naddress = "10.0.0.4"\nzone = 4\nroles = ["storage"]\ndisks = {disks}\n'
    )
    site.apply(INVENTORY + fourth)
    former = INVENTORY + fourth.replace('["storage"]', "[]").replace(disks, "[]")
    (error,) = site.deployment(former).prepare().plan.errors()
    assert "drain its devices with swift-layout" in error
    plan = site.deployment(former).prepare(remove=True).plan
    assert not plan.errors()
    assert any("object" in unit for unit in plan.hosts[3].disable)


def test_damaged_public_keys_of_a_layout_stop_the_plan(with_layout, tmp_path):
    (tmp_path / "cluster.state/layout.pub").write_text("damaged")
    with pytest.raises(ConfigError, match="layout.pub"):
        with_layout.deployment().prepare()
