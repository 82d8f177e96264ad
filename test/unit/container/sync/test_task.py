"""What a node copies in a pass: its share of what is new, and once more all that was new before."""

from __future__ import annotations

import os

import pytest

from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cluster.syncrealms import Realm, Realms
from swift.cluster.transport import BackendResponse
from swift.container.broker import ContainerBroker
from swift.container.rows import ObjectRow
from swift.container.sync.remote import RemoteError
from swift.container.sync.task import ContainerSync, ContainerSyncSettings
from swift.container.syncstore import keep_link, link_of
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.gateway.internal_client import InternalClient
from swift.http.response import Response
from test.support.daemons import DaemonFixture, DeviceRing, LogLines

HASHER = PathHasher(b"p", b"s")
SYNC_TO = "//realm/far/b/copy"
NAMES = [f"o{number:02}" for number in range(12)]


class Far:
    """The other cluster; ``fails`` are names of objects that do not come through."""

    def __init__(self):
        self.names, self.fails, self.faulty = [], set(), ""
        self.after = lambda: None

    def ask(self, method, target, name, timestamp, headers, body=None, *, query=""):
        if name in self.fails:
            raise RemoteError("cut")
        if name == self.faulty:
            raise OSError("no memory")
        if method == "PUT":
            self.names.append(name)
            self.after()
        return BackendResponse(404 if method == "HEAD" else 201, {})


class Bench:
    """A node with the container ``a/c``, which lies on the first three devices; ``own`` is its own."""

    def __init__(self, root, own=0, **options):
        self.log = LogLines()
        self.rig = DaemonFixture(root, log=self.log)
        self.far = Far()
        self.realms = {"REALM": Realm("key", clusters={"FAR": "http://far/v1/"})}
        client = InternalClient(self._handle, "test", tries=1)
        ring = DeviceRing(own)
        self.task = ContainerSync(
            ring.context(self.rig),
            ring,
            ContainerSyncSettings(**options),
            client,
            self.far,
            Realms(self.realms),
        )
        place = DatabasePath(str(self.rig.root / "sda"), "containers", "7", HASHER.hexdigest("a", "c"))
        self.broker = ContainerBroker(place, Engine(), "a", "c")
        self.broker.create(Timestamp(5), 0, created_at=Timestamp(5))
        self.ask_for_copies(SYNC_TO)

    def _handle(self, request):
        return Response(200, {"x-timestamp": Timestamp(1000).internal}, b"x")

    def ask_for_copies(self, to, key="secret", at=6, **more):
        stamp = Timestamp(at).internal
        values = {"X-Container-Sync-To": to, "X-Container-Sync-Key": key, **more}
        self.broker.update_metadata({name: (value, stamp) for name, value in values.items()})
        info = self.broker.info()
        if to:
            keep_link(self.broker, info)

    def put(self, *names):
        self.broker.merge_rows([ObjectRow(name, Timestamp(900).internal, 1, "t/p", "e") for name in names])

    def damage(self, change):
        def write(connection):
            connection.execute("DROP TRIGGER IF EXISTS object_update")
            connection.execute(f"UPDATE object {change}")

        self.broker.write(write)

    def run_once(self):
        """What came over in a pass."""
        self.far.names = []
        assert self.rig.runner(self.task, server_type="container").run_once() or self.rig.stop.requested
        return sorted(self.far.names)

    @property
    def counts(self):
        stats = self.rig.recon("container").read()["container_sync_stats"]
        return {name: count for name, count in stats.items() if count}

    @property
    def points(self):
        info = self.broker.info()
        return info.x_container_sync_point1, info.x_container_sync_point2


@pytest.fixture
def make(tmp_path):
    made = []

    def make(own=0, **options):
        root = tmp_path / f"n{len(made)}"
        root.mkdir()
        made.append(Bench(root, own, **options))
        return made[-1]

    yield make
    for bench in made:
        bench.broker.close()


def test_the_primaries_share_what_is_new_and_each_looks_at_all_of_it_later(make):
    shares = []
    for own in range(3):
        bench = make(own)
        bench.put(*NAMES)
        shares.append(bench.run_once())
        assert bench.run_once() == NAMES
        assert bench.run_once() == []
    assert all(shares)
    assert sorted(name for share in shares for name in share) == NAMES


def test_what_others_are_to_copy_is_not_taken_for_what_they_were_to(make):
    bench = make()
    bench.put(*NAMES[:5])
    bench.run_once()
    bench.put(*NAMES[5:])
    came = bench.run_once()
    assert came[:5] == NAMES[:5]
    assert len(came) < 12 and bench.points == (12, 5)


def test_a_handoff_copies_nothing(make):
    bench = make(4)
    bench.put(*NAMES)
    assert bench.run_once() == []
    assert (bench.counts, bench.points) == ({"skips": 1}, (-1, -1))


def test_a_copy_that_failed_is_made_again_and_what_follows_it_is_not_held_up(make):
    bench = make(sync_row_concurrency=2)
    bench.put(*NAMES)
    bench.run_once()
    bench.far.fails = {"o03", "o07"}
    assert bench.run_once() == [name for name in NAMES if name not in bench.far.fails]
    assert bench.points == (12, 3)
    assert bench.counts == {"syncs": 1, "puts": 10, "failures": 2}
    bench.far.fails = set()
    assert bench.run_once() == NAMES[3:]
    assert bench.points == (12, 12)


@pytest.mark.parametrize("damage", ["created_at = 'never'", "size = 'many'", "name = ''", "name = x'ff'"])
def test_a_row_that_cannot_be_read_is_told_and_holds_nobody_up(make, damage):
    bench = make()
    bench.put(*NAMES)
    bench.damage(f"SET {damage} WHERE name = 'o03'")
    bench.run_once()
    bench.far.names = []
    assert bench.run_once() == [name for name in NAMES if name != "o03"]
    assert bench.counts == {"syncs": 1, "puts": 11, "failures": 1}
    assert bench.points == (12, 3)
    assert any("cannot copy row 4 of /a/c" in line for line in bench.log.lines)
    bench.damage("SET name = 'o03', created_at = '0000000900.00000', size = 1 WHERE ROWID = 4")
    assert bench.run_once() == NAMES[3:]
    assert bench.points == (12, 12)


def test_a_row_whose_copy_fails_unforeseen_holds_nobody_up(make):
    bench = make()
    bench.put(*NAMES)
    bench.run_once()
    bench.far.faulty = "o03"
    assert bench.run_once() == [name for name in NAMES if name != "o03"]
    assert (bench.points, bench.counts["failures"]) == ((12, 3), 1)


def test_what_was_forgotten_since_keeps_nobody_from_an_end(make):
    """Tombstones are reclaimed: there may be no row any more where new ones began."""
    bench = make()
    bench.put("o")
    bench.run_once()
    bench.broker.write(lambda connection: connection.execute("DELETE FROM object").rowcount)
    bench.run_once()
    assert bench.points == (1, 1)
    bench.put("p")
    bench.far.fails = {"p"}
    bench.run_once()
    assert bench.points == (2, 1)
    bench.run_once()
    assert bench.points == (2, 1), "as long as it fails it is tried again"


def test_a_container_s_time_ends_between_rows_and_the_next_pass_goes_on(make):
    bench = make(sync_row_concurrency=1, container_time=5.0)
    bench.put(*NAMES)
    bench.far.after = lambda: bench.rig.clock.advance(6.0)
    assert len(bench.run_once()) == 1
    first = bench.points
    assert 0 < first[0] < 12 and first[1] == -1
    bench.far.after = lambda: None
    bench.run_once()
    assert bench.points == (12, first[0])


def test_a_daemon_that_is_to_end_does_not_begin_with_other_rows(make):
    bench = make(sync_row_concurrency=1)
    bench.put(*NAMES)
    bench.run_once()
    bench.far.after = bench.rig.stop.request
    assert bench.run_once() == ["o00"]
    assert bench.points == (12, 1)


@pytest.mark.parametrize("to", ["//realm/nowhere/b/copy", "ftp://far/b/copy", "http://[/b", "//realm/far"])
def test_a_target_that_cannot_be_is_told_and_counted(make, to):
    bench = make()
    bench.put("o")
    bench.ask_for_copies(to, at=7)
    assert bench.run_once() == []
    assert bench.counts == {"failures": 1}
    assert any("container sync of a/c is misconfigured" in line for line in bench.log.lines)


@pytest.mark.parametrize(
    "name", ["X-Container-Sysmeta-Versions-Enabled", "X-Container-Sysmeta-Versions-Location"]
)
def test_a_container_of_versions_is_skipped(make, name):
    bench = make()
    bench.put("o")
    bench.ask_for_copies(SYNC_TO, at=7, **{name: "x"})
    assert bench.run_once() == []
    assert bench.counts == {"skips": 1}


def test_a_link_of_a_container_that_is_not_copied_any_more_goes(make):
    bench = make()
    bench.put("o")
    bench.ask_for_copies("", at=7)
    link = link_of(bench.broker.place)
    assert os.path.lexists(link)
    assert bench.run_once() == []
    assert not os.path.lexists(link)


def test_a_link_to_nothing_and_a_database_that_is_none_do_not_end_the_pass(make):
    bench = make()
    bench.put("o")
    for number, content in enumerate((None, b"no database at all" * 100)):
        place = bench.broker.place._replace(name_hash=f"{number:031}f")
        os.makedirs(os.path.dirname(link_of(place)))
        os.symlink(place.file(), link_of(place))
        if content is not None:
            os.makedirs(place.directory)
            with open(place.file(), "wb") as file:
                file.write(content)
    bench.run_once()
    assert bench.points[0] == 1
    assert bench.counts["failures"] == 1
    assert os.listdir(bench.rig.root / "sda/quarantined/containers") == [place.name_hash]
