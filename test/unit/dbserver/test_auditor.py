"""Auditors read every database, move broken ones away and tell what is wrong (account-container.md §15)."""

import sqlite3
from dataclasses import replace

import pytest

from swift.account.auditor import KIND as ACCOUNT
from swift.account.auditor import AccountAuditorSettings
from swift.account.server import AccountServer
from swift.base.timestamp import Timestamp
from swift.container.auditor import KIND as CONTAINER
from swift.container.auditor import ContainerAuditorSettings
from swift.container.server import ContainerServer
from swift.db.connection import DatabaseBroken, DatabaseFailing
from swift.db.files import DatabasePath
from swift.dbserver.auditor import DatabaseAuditor
from swift.http.request import Request
from test.support import databases
from test.support.daemons import DaemonFixture

AT = 1_700_000_000


class Bench:
    """Servers that fill databases, and the auditor of one kind on the same devices."""

    def __init__(self, root, kind, devices=("sda",), **options):
        self.rig = DaemonFixture(root, devices)
        self.kind = kind
        settings = AccountAuditorSettings if kind is ACCOUNT else ContainerAuditorSettings
        self.settings = settings(**options)
        self.task = DatabaseAuditor(self.rig.context, kind)
        self.servers = {
            "account": AccountServer(self.rig.context),
            "container": ContainerServer(self.rig.context),
        }
        self.tick = AT

    def ask(self, kind, path, **headers):
        self.tick += 1
        sent = {"x-timestamp": Timestamp(self.tick).internal}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        response = self.servers[kind].handle(Request("PUT", path, sent, b""))
        assert response.status < 300, response

    def account(self, name, containers=3, device="sda"):
        self.ask("account", f"/{device}/1/{name}")
        for number in range(containers):
            stamps = {"x_put_timestamp": Timestamp(AT + 5).internal, "x_delete_timestamp": "0"}
            self.ask(
                "account",
                f"/{device}/1/{name}/c{number}",
                x_object_count="2",
                x_bytes_used="20",
                **stamps,
            )
        return self.file("accounts", name, device=device)

    def container(self, name, objects=3, device="sda"):
        self.ask("container", f"/{device}/1/a/{name}")
        for number in range(objects):
            path = f"/{device}/1/a/{name}/o{number}"
            self.ask("container", path, x_size="5", x_etag="e", x_content_type="t/p")
        return self.file("containers", "a", name, device=device)

    def file(self, directory, *names, device="sda"):
        place = DatabasePath(
            str(self.rig.root / device), directory, "1", self.rig.context.hasher.hexdigest(*names)
        )
        return (
            self.rig.root
            / device
            / directory
            / "1"
            / place.name_hash[-3:]
            / place.name_hash
            / (f"{place.name_hash}.db")
        )

    def stop_servers(self):
        for server in self.servers.values():
            server.brokers.close()

    def run_once(self):
        self.stop_servers()
        server_type = self.kind.server_type
        assert self.rig.runner(self.task, self.settings.schedule, server_type=server_type).run_once()
        facts = self.rig.recon(server_type).read()
        return facts[f"{server_type}_audits_passed"], facts[f"{server_type}_audits_failed"]

    @property
    def quarantined(self):
        return sorted(path.name for path in self.rig.root.glob(f"*/quarantined/{self.kind.directory}/*"))


@pytest.fixture
def containers(tmp_path):
    return Bench(tmp_path, CONTAINER)


@pytest.fixture
def accounts(tmp_path):
    return Bench(tmp_path, ACCOUNT)


def change(path, script):
    """Write to a database behind everybody's back, triggers and all."""
    connection = sqlite3.connect(path)
    connection.create_function("chexor", 3, lambda old, name, text: old)
    connection.executescript(script)
    connection.commit()
    connection.close()


def damage(path, at, data=b"\xff" * 4096):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def test_sound_databases_pass_also_with_pending_rows(containers):
    for number in range(4):
        containers.container(f"c{number}", objects=number)
    assert containers.run_once() == (4, 0)
    assert containers.quarantined == []
    facts = containers.rig.recon("container").read()
    assert facts["container_audits_since"] == pytest.approx(containers.rig.clock.time())
    assert facts["container_auditor_pass_completed"] >= 0
    page = (containers.rig.root.parent / "recon" / "container-auditor.prom").read_text()
    assert 'event="passes"' in page


def test_accounts_pass_too(accounts):
    accounts.account("AUTH_a")
    accounts.account("AUTH_b", containers=0)
    assert accounts.run_once() == (2, 0)


def test_what_is_no_database_is_moved_away_and_the_others_are_audited(containers):
    bad = containers.container("bad")
    containers.container("good")
    containers.stop_servers()
    bad.write_bytes(b"this is no database at all" * 1000)
    assert containers.run_once() == (1, 1)
    assert containers.quarantined == [bad.stem]
    assert containers.run_once() == (1, 0)


@pytest.mark.parametrize("table_limit", [32 << 20, 0], ids=["whole", "in pieces"])
def test_a_damaged_page_is_found_though_everything_else_can_be_read(containers, table_limit):
    bad = containers.container("bad", objects=0)
    rows = ", ".join(f"('o{n:05}', '1', 1, 't', 'e')" for n in range(3000))
    change(bad, f"INSERT INTO object (name, created_at, size, content_type, etag) VALUES {rows}")
    containers.task.whole_bytes_max = table_limit
    assert containers.run_once() == (1, 0)
    damage(bad, bad.stat().st_size // 4096 // 2 * 4096)
    assert containers.run_once() == (0, 1)
    assert containers.quarantined == [bad.stem]


@pytest.mark.parametrize(("kind", "table"), [(ACCOUNT, "account_stat"), (CONTAINER, "container_info")])
def test_a_database_that_does_not_say_whose_it_is_is_moved_away(tmp_path, kind, table):
    bench = Bench(tmp_path, kind)
    path = bench.account("AUTH_a") if kind is ACCOUNT else bench.container("c")
    bench.run_once()
    change(path, f"DELETE FROM {table}")
    assert bench.run_once() == (0, 1)
    assert bench.quarantined == [path.stem]


def test_a_half_file_is_broken(accounts):
    bad = accounts.account("AUTH_a", containers=300)
    accounts.run_once()
    with open(bad, "r+b") as file:
        file.truncate(bad.stat().st_size // 2)
    assert accounts.run_once() == (0, 1)
    assert accounts.quarantined == [bad.stem]


def test_totals_that_are_not_those_of_the_rows_fail_and_stay(accounts):
    path = accounts.account("AUTH_a")
    accounts.run_once()
    change(path, "UPDATE policy_stat SET object_count = 7")
    assert accounts.run_once() == (0, 1)
    assert accounts.quarantined == []
    assert path.exists()


def test_account_totals_that_are_not_those_of_the_policies_fail(accounts):
    path = accounts.account("AUTH_a")
    accounts.run_once()
    change(path, "UPDATE account_stat SET bytes_used = bytes_used + 1")
    assert accounts.run_once() == (0, 1)


def test_a_database_under_anothers_name_fails(containers):
    path = containers.container("c")
    containers.run_once()
    change(path, "UPDATE container_info SET container = 'other'")
    assert containers.run_once() == (0, 1)
    assert path.exists()


@pytest.mark.parametrize("age", databases.OLD_ACCOUNTS)
def test_account_databases_of_every_age_pass_and_are_migrated(accounts, age):
    path = accounts.file("accounts", "a")
    path.parent.mkdir(parents=True)
    databases.make_old_account(path, age)
    assert accounts.run_once() == (1, 0)


@pytest.mark.parametrize("age", databases.OLD_CONTAINERS)
def test_container_databases_of_every_age_pass_and_are_migrated(containers, age):
    path = containers.file("containers", "a", "c")
    path.parent.mkdir(parents=True)
    databases.make_old_container(path, age)
    assert containers.run_once() == (1, 0)


def test_a_database_that_was_replaced_meanwhile_stays(containers):
    path = containers.container("c")
    containers.stop_servers()
    sound = path.read_bytes()
    path.write_bytes(b"damaged" * 1000)
    kind = containers.kind

    class Replacing:
        def __getattr__(self, name):
            return getattr(kind, name)

        def open_found(self, place, engine):
            try:
                return kind.open_found(place, engine)
            finally:
                # Both exist for a moment, so their inode numbers differ for sure.
                other = path.with_name("other")
                other.write_bytes(sound)
                other.rename(path)

    containers.task.kind = Replacing()
    assert containers.run_once() == (0, 0)
    assert containers.quarantined == []
    assert path.exists()


def test_unmounted_devices_and_strange_files_stop_nothing(tmp_path):
    bench = Bench(tmp_path, CONTAINER, ("sda", "sdb"), containers_per_second=2)
    for number in range(3):
        bench.container(f"c{number}", device="sdb")
    root = bench.rig.root / "sdb/containers"
    (root / "not-a-partition").mkdir()
    (root / "77").touch()
    (root / "1/abc/0123").mkdir(parents=True)
    (root / "1/abc" / ("ab" * 16)).mkdir(parents=True)
    assert bench.run_once() == (3, 0)
    # Three databases and an empty hash directory, half a second apart.
    assert bench.rig.clock.slept == pytest.approx(1.5, abs=0.01)


@pytest.mark.parametrize(
    "error",
    [
        lambda path: DatabaseFailing(path, "disk I/O error", is_device_error=True),
        lambda path: OSError(5, "Input/output error", path),
        lambda path: DatabaseBroken(path, "malformed", is_proven=False),
    ],
    ids=["sqlite", "system", "malformed-once"],
)
def test_an_error_of_the_device_moves_nothing(containers, error):
    """Nor does damage that a second reading does not find."""
    path = containers.container("c")

    def fails(_place, _engine):
        raise error(str(path))

    containers.task.kind = replace(CONTAINER, open_found=fails)
    containers.run_once()
    assert path.exists() and containers.quarantined == []


def test_errors_of_devices_are_counted_by_auditors(containers):
    path = containers.container("c")

    def fails(_place, _engine):
        raise DatabaseFailing(str(path), "disk I/O error", is_device_error=True)

    containers.task.kind = replace(CONTAINER, open_found=fails)
    containers.run_once()
    page = containers.rig.context.telemetry.metrics.render()
    assert 'swift_device_errors_total{device="sda",error="EIO"} 1' in page
