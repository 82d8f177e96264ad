"""Whole databases that arrive from another node get a name when they are whole, and not before."""

import os
import sqlite3

import pytest

from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.container.replication import ContainerReplica
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.connection import DatabaseBroken
from swift.db.files import DatabasePath
from swift.dbsync.receivedfiles import ReceivedFiles, epoch_in, snapshot
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle

HASH = "0" * 29 + "abc"


class Site:
    """A device on which a container has a database, and another on which it has none yet."""

    def __init__(self, root):
        self.sent = self.broker(root, "sda")
        self.sent.create(Timestamp(5), 0, created_at=Timestamp(5))
        self.sent.merge_rows([ObjectRow("o", Timestamp(6).internal, 3, "t/p", "e", 0, 0)])
        self.sent.info()
        self.here = self.broker(root, "sdb")
        self.arrivals = ReceivedFiles(DiskHandle(Disk()), self.here.place)

    def broker(self, root, device):
        (root / device).mkdir()
        return ContainerBroker(DatabasePath(str(root / device), "containers", "7", HASH), Engine(), "a", "c")

    def data(self):
        copy = snapshot(Disk(), self.sent.place, self.sent.newest.path)
        with open(copy, "rb") as file:
            return file.read()

    def arrive(self, data, remote_id="sender"):
        upload = self.arrivals.upload(remote_id)
        upload.write(data)
        upload.finish()

    def install(self, remote_id="sender", file_name=None, name_hash=HASH):
        return self.arrivals.install(
            ContainerReplica(self.here), remote_id, file_name, lambda names: name_hash
        )

    def left(self):
        return os.listdir(self.arrivals.directory)


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.sent.close()
    made.here.close()


def identity(broker):
    return broker.read(lambda connection: connection.execute("SELECT id FROM container_info").fetchone()[0])


def test_an_arrived_database_gets_its_name_and_an_identity_of_its_own(site):
    site.arrive(site.data())
    assert site.install()
    assert site.here.refresh()
    names = site.here.read(lambda connection: connection.execute("SELECT name FROM object").fetchall())
    assert [name for (name,) in names] == ["o"]
    assert identity(site.here).endswith("-sdb") and identity(site.here) != identity(site.sent)
    assert site.left() == []


def test_where_a_database_is_none_is_put(site):
    site.arrive(site.data())
    assert site.install()
    site.arrive(site.data())
    assert not site.install()


def test_what_did_not_arrive_is_not_installed(site):
    assert not site.install("somebody else")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_off_gets_no_name_and_goes(site, part):
    data = site.data()
    site.arrive(data[: int(len(data) * part)])
    with pytest.raises(DatabaseBroken):
        site.install()
    assert not site.here.refresh() and site.left() == []


def test_a_database_of_another_container_is_refused(site):
    site.arrive(site.data())
    with pytest.raises(DatabaseBroken, match="another container"):
        site.install(name_hash="f" * 32)
    assert not site.here.refresh()


def test_a_database_of_something_else_is_refused(site, tmp_path):
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.commit()
    connection.close()
    site.arrive((tmp_path / "x.db").read_bytes())
    with pytest.raises(DatabaseBroken, match="not a database of containers"):
        site.install()


def test_an_upload_that_is_given_up_leaves_nothing(site):
    upload = site.arrivals.upload("sender")
    upload.write(b"half")
    upload.discard()
    assert not site.arrivals.has("sender") and site.left() == []


def test_a_file_name_may_carry_an_epoch(site):
    epoch = Timestamp(9).normal
    site.arrive(site.data())
    assert site.install(file_name=f"{HASH}_{epoch}.db")
    assert os.listdir(site.here.place.directory).count(f"{HASH}_{epoch}.db") == 1


@pytest.mark.parametrize(
    "name",
    ["", "x.db", f"{HASH}_.db", f"{HASH}_soon.db", f"../{HASH}.db", f"{HASH}_1.db/x", f"{'1' * 32}.db", 7],
)
def test_a_name_that_does_not_belong_here_is_refused(site, name):
    with pytest.raises(InvalidValue):
        epoch_in(site.here.place, name)
    with pytest.raises(InvalidValue):
        site.install(file_name=name)


def test_a_snapshot_that_fails_leaves_nothing(site):
    with pytest.raises(Exception, match=r"none\.db"):
        snapshot(Disk(), site.here.place, f"{site.here.place.device_path}/none.db")
    assert site.left() == []
