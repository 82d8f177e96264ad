"""A store of files below a temporary folder, and one object in it."""

from __future__ import annotations

import os
from hashlib import md5

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.platform.disk import Disk
from swift.platform.mounts import Devices
from swift.policy.policy import Policy
from swift.store.api import ObjectKey, Viewpoint
from swift.store.registry import EngineParts, file_store

NOW_S = 1_700_000_000.0
NOW = Viewpoint(NOW_S)
GOLD = Policy(0, "gold", is_default=True)
HASHER = PathHasher(b"p", b"s")
PATH = EntityPath("AUTH_a", "c", "o")
KEY = ObjectKey("sda", "7", GOLD, PATH, HASHER.hexdigest(*PATH))


def make_store(root, disk=None, notice=lambda _text: None):
    os.makedirs(root / "sda", exist_ok=True)
    return file_store(
        EngineParts(
            devices=Devices(str(root), mount_check=False),
            hasher=HASHER,
            clock=ManualClock(NOW_S),
            disk=disk or Disk(),
            notice=notice,
        )
    )


def metadata_of(body, at):
    return {
        "X-Timestamp": at.internal,
        "Content-Type": "text/plain",
        "Content-Length": str(len(body)),
        "ETag": md5(body).hexdigest(),
        "name": str(PATH),
    }


def put(store, body=b"body", at=Timestamp(NOW_S), key=KEY):  # noqa: B008
    with store.edit(key, NOW, create=True) as edit:
        draft = edit.draft(len(body))
        draft.write(body)
        edit.put(draft, at, metadata_of(body, at))


def directory(root):
    return root / "sda/objects/7" / KEY.hash[-3:] / KEY.hash


def data_file(root):
    return next(directory(root).glob("*.data"))


def read(store, start, stop):
    stored = store.open(KEY, NOW)
    try:
        return b"".join(stored.blocks(start, stop))
    finally:
        stored.close()


LARGE = os.urandom((2 << 20) + 17)
#: Where the chunks of it begin.
CHUNKS = [0, 1 << 20, 2 << 20]


def flip(path, position):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))
