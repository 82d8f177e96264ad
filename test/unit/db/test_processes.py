"""Several processes on one database, one of them killed: what was acknowledged is there."""

import subprocess
import sys
import textwrap

import pytest

from swift.db.listing import ListingQuery

pytestmark = pytest.mark.process

WRITER = textwrap.dedent(
    """
    import sys
    from swift.base.timestamp import Timestamp
    from swift.container.broker import ContainerBroker
    from swift.container.rows import ObjectRow
    from swift.db import pending
    from swift.db.broker import Engine
    from swift.db.files import DatabasePath

    pending.MERGE_AT_BYTES = 2000
    device, kind, partition, name_hash, label = sys.argv[1:]
    broker = ContainerBroker(DatabasePath(device, kind, partition, name_hash), Engine(), "a", "c")
    for n in range(100000):
        broker.refresh()
        broker.put_rows([ObjectRow(f"{label}{n:06d}", Timestamp(2).internal, 1, "t", "e")])
        if n % 7 == 0:
            broker.info()
        print(f"{label}{n:06d}", flush=True)
    """
)


def start(place, label):
    arguments = [place.device_path, place.kind, place.partition, place.name_hash, label]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)


def test_acknowledged_rows_of_killed_writers_are_listed_once(room):
    broker = room.created()
    writers = [start(room.place, label) for label in ("x", "y", "z")]
    acknowledged = []
    for writer in writers:
        acknowledged += [writer.stdout.readline().strip() for _ in range(40)]
    for writer in writers:
        writer.kill()
    for writer in writers:
        acknowledged += [line.strip() for line in writer.stdout.readlines() if line.endswith("\n")]
        writer.wait()
    broker.refresh()
    listed = [row[0] for row in broker.listing(ListingQuery(1_000_000), 0)]
    assert set(acknowledged) <= set(listed)
    assert len(listed) == len(set(listed)) == broker.info().object_count
    # Besides, at most the one row that each writer had not yet been able to acknowledge.
    assert len(listed) - len(acknowledged) <= len(writers)
    check = broker.read(lambda connection: connection.execute("PRAGMA integrity_check").fetchone())
    assert check == ("ok",)
