"""Sharded containers as a sharder leaves them, made without one."""

import shutil
import sqlite3

from swift.db.connection import chexor


def add_ranges(path, account, container, *, epoch, state):
    """The own range in ``state`` and two shards at ``m``."""
    connection = sqlite3.connect(path)
    connection.create_function("chexor", 3, chexor)
    own = (f"{account}/{container}", "", "", state, epoch)
    shards = [
        (f".shards_{account}/{container}-{n}", *bounds, 40 if state == 70 else 20, None)
        for n, bounds in enumerate((("", "m"), ("m", "")))
    ]
    for name, lower, upper, range_state, range_epoch in (own, *shards):
        connection.execute(
            "INSERT INTO shard_range (name, timestamp, lower, upper, meta_timestamp, state, state_timestamp, "
            "epoch) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (name, epoch, lower, upper, epoch, range_state, epoch, range_epoch),
        )
    connection.commit()
    connection.close()


def shard(folder, account, container, *, epoch):
    """Turn the database of a hash directory into a sharded one: no rows, an epoch in its name."""
    (old,) = folder.glob("*.db")
    new = old.with_name(f"{old.stem}_{epoch}.db")
    shutil.copy(old, new)
    connection = sqlite3.connect(new)
    connection.create_function("chexor", 3, chexor)
    connection.execute("DELETE FROM object")
    connection.commit()
    connection.close()
    add_ranges(new, account, container, epoch=epoch, state=70)
    old.unlink()
