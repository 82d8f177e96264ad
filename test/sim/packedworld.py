"""A device of the packed engine under several processes, on a disk that may lose power.

``Machine`` is a simulated disk with an index beside it; ``Process`` is what one process sees of both, and
where it is killed or gets errors. ``World`` tells a story and looks at what may be found afterwards: after a
power cut (the index is missing then), after SIGKILL (the page cache and the index survive), and after SIGKILL
with the index thrown away.
"""

from __future__ import annotations

import errno
import os
import random
from contextlib import contextmanager
from hashlib import md5

from swift.base.clock import ManualClock
from swift.platform.devices import SpaceGuard
from swift.store.api import ABSENT, LIVE, Location, ReadOptions, SyncedVersion
from swift.store.chooser import ReclaimRules
from swift.store.core import EngineCore, EngineRules
from swift.store.errors import CorruptBody
from swift.store.lmdbindex import IndexFailed, IndexReplaced
from swift.store.packed.compaction import Compactor
from swift.store.packed.engine import PackedStore
from swift.store.packed.entry import META_SPACE, decode_entries
from swift.store.packed.writer import PackedRules
from test.sim.powercut import Killed, SimulatedDisk
from test.sim.test_powercut import GOLD, HASHER, NOW_S, TOP, OneDevice, at, live, metadata_of
from test.sim.test_powercut import key_of as key_at

VIEW = ReadOptions(NOW_S)
INDEX = 2
EC_VIEW = ReadOptions(NOW_S, fragment=INDEX)
ABSENT_OUTCOME = (ABSENT,)
#: Bodies above are files.
PACKED_MAX = 600
PART_POWER = 4
CHANGING = {
    "fdatasync",
    "fsync",
    "link",
    "link_unnamed",
    "mkdir",
    "punch_hole",
    "pwrite",
    "rename",
    "rmdir",
    "setxattr",
    "sync_filesystem",
    "truncate",
    "unlink",
    "write",
}
READING = {"fstat", "getxattr", "listdir", "listxattr", "lock_byte", "pread", "stat", "flock"}


class IndexFile:
    """One index; ``kept`` is what every process sees."""

    def __init__(self, kept=None):
        self.kept = dict(kept or {})
        #: True after something else was written over it, which the next use notices.
        self.is_overwritten = False
        #: True while those who have it open do not notice that another one is in its place.
        self.is_twin = False


class Machine:
    """The disk and the index that all processes of one boot share."""

    def __init__(self, disk, kept=None):
        self.disk = disk
        self.file = None if kept is None else IndexFile(kept)
        #: Unreadable ranges of the disk: inode number, begin, end.
        self.bad_sectors = []

    def spoil(self, path, begin, end):
        """Make a range of a file unreadable."""
        self.bad_sectors.append((self.disk.stat(path).st_ino, begin, end))

    def open_index(self, process):
        """Return the existing index, or a new one."""
        process.use_index("open")
        if self.file is None:
            self.file = IndexFile()
        return IndexHandle(self, process, self.file)


class IndexHandle:
    """``Index`` of one process."""

    identity = 1

    def __init__(self, machine, process, file):
        self._machine, self._process, self._file = machine, process, file

    def check(self):
        self._use("check")
        if not self._is_there():
            raise IndexReplaced("the index was replaced")

    def _use(self, name):
        self._process.use_index(name)
        if self._file.is_overwritten:
            self.discard()
            raise IndexFailed("another file was written over it")

    def _is_there(self):
        return self._machine.file is self._file or self._file.is_twin

    def is_current(self):
        self._process.use_index("is_current")
        return self._is_there()

    def get(self, key):
        self._use("get")
        return self._file.kept.get(key)

    def keys(self, prefix, after, count):
        self._use("keys")
        return [key for key in sorted(self._file.kept) if key.startswith(prefix) and key > after][:count]

    def items(self, begin, end, count):
        self._use("items")
        return items_of(self._file.kept, begin, end, count)

    @contextmanager
    def writing(self):
        self._use("writing")
        before = self._file.kept
        made = _Writing(dict(before))
        yield made
        self._process.use_index("commit")
        if self._file.kept is before:
            self._file.kept = made.kept
            return
        # Something was written over it meanwhile: pages of both are in the file.
        for key in {*before, *made.kept}:
            if made.kept.get(key) != before.get(key):
                self._file.kept.pop(key, None)
                if key in made.kept:
                    self._file.kept[key] = made.kept[key]

    def discard(self):
        self._file.is_twin = False
        if self._is_there():
            self._machine.file = None

    def close(self, *, is_last=False):
        pass


def items_of(kept, begin, end, count):
    return [(key, kept[key]) for key in sorted(kept) if key >= begin and (not end or key < end)][:count]


class _Writing:
    def __init__(self, kept):
        self.kept = kept
        self.get = kept.get
        self.put = kept.__setitem__

    def delete(self, key):
        return self.kept.pop(key, None) is not None

    def items(self, begin, end, count):
        return items_of(self.kept, begin, end, count)


class Process:
    """A disk and an index as one process has them.

    ``dies_in`` changes from now on it is killed; ``fault`` is asked before each call, with its name, for an
    error to raise, or for the number of bytes of a short write.
    """

    def __init__(self, machine):
        self.machine = machine
        self.dies_in = -1
        self.is_dead = False
        self.fault = lambda _name: None
        #: Called before each write with descriptor, bytes, offset.
        self.before_write = lambda _fd, _data, _offset: None
        #: Called before each change.
        self.between = lambda: None
        self._fds = set()

    def __getattr__(self, name):
        return _Call(self, name, getattr(self.machine.disk, name))

    def tick(self, name):
        """Kill the process, raise an error, or do nothing; return the fault's value."""
        if self.is_dead:
            raise Killed
        if name in CHANGING or name == "commit":
            if self.dies_in == 0:
                self.kill()
                raise Killed
            self.dies_in -= 1
            if name != "commit":
                # Writers of the index wait for each other.
                self.between()
        found = self.fault(name)
        if isinstance(found, BaseException):
            raise found
        return found

    def use_index(self, name):
        self.tick(f"index.{name}" if name != "commit" else name)

    def kill(self):
        """Kill the process: its descriptors and locks are released, the page cache stays."""
        self.is_dead = True
        for fd in self._fds:
            self.machine.disk.close(fd)

    def close(self, fd):
        self._fds.discard(fd)
        if not self.is_dead:
            self.machine.disk.close(fd)

    def open(self, path, flags, mode=0o777):
        self.tick("open")
        fd = self.machine.disk.open(path, flags, mode)
        self._fds.add(fd)
        return fd

    def open_unnamed(self, directory):
        self.tick("open_unnamed")
        fd = self.machine.disk.open_unnamed(directory)
        self._fds.add(fd)
        return fd

    def pwrite(self, fd, data, offset):
        self.before_write(fd, data, offset)
        return self._write("pwrite", fd, data, offset)

    def pread(self, fd, size, offset):
        self.tick("pread")
        disk = self.machine.disk
        for number, begin, end in self.machine.bad_sectors:
            if disk.inode_number(fd) == number and offset < end and begin < offset + size:
                raise broken()
        return disk.pread(fd, size, offset)

    def write(self, fd, data):
        return self._write("write", fd, data)

    def _write(self, name, fd, data, *more):
        short = self.tick(name)
        piece = data if short is None else memoryview(data)[: max(1, min(short, len(data)))]
        return getattr(self.machine.disk, name)(fd, piece, *more)

    def unlock_byte(self, fd, offset):
        if self.is_dead:
            raise Killed
        self.machine.disk.unlock_byte(fd, offset)


class _Call:
    __slots__ = ("_function", "_name", "_process")

    def __init__(self, process, name, function):
        self._process, self._name, self._function = process, name, function

    def __call__(self, *args, **how):
        self._process.tick(self._name)
        return self._function(*args, **how)


def no_space():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken():
    return OSError(errno.EIO, os.strerror(errno.EIO))


def store_of(
    process,
    clock,
    *,
    volume_bytes,
    packed_max=PACKED_MAX,
    reclaim_age_s=10_000_000.0,
    notice=lambda _text: None,
):
    """Return an engine for a process."""
    core = EngineCore(
        process,
        OneDevice(),
        hasher=HASHER,
        clock=clock,
        space=SpaceGuard(process, None),
        rules=EngineRules(reclaim=ReclaimRules(reclaim_age_s), sync_every_bytes=4096),
        notice=notice,
    )
    rules = PackedRules(packed_max, volume_bytes, publish_timeout_s=0.0)
    return PackedStore(core, open_index=lambda _path: process.machine.open_index(process), rules=rules)


def device_of(store):
    """Return the opened device of a store."""
    return getattr(store, "devices", store).device("sda")


def place_of(store, key):
    """Return the index location of an object."""
    return getattr(store, "devices", store).place(key)


def entries_in(kept):
    """Return the entries of objects in an index: policy, partition bits and key → entry."""
    spaces = {value[0]: key[2:] for key, value in kept.items() if key.startswith(META_SPACE + b"s")}
    found = {}
    for key, value in kept.items():
        if not key.startswith(META_SPACE):
            found[spaces[key[0]], key[1:]] = frozenset(decode_entries(value))
    return found


def live_bytes_in(kept):
    """Return the bytes of live records by volume, for volumes that have live records."""
    rows = {key[2:]: value for key, value in kept.items() if key.startswith(META_SPACE + b"v")}
    found = {key: int.from_bytes(value[8:16], "little") for key, value in rows.items()}
    return {key: count for key, count in found.items() if count}


def view_of(key):
    return VIEW if key.policy.ec is None else EC_VIEW


def outcome_of(store, key):
    """Return the state that a reader gets; damage is an error."""
    stored = store.open(key, view_of(key))
    state = stored.state
    try:
        if state.quarantine_reason:
            raise AssertionError(f"{key.path} was damaged: {state.quarantine_reason}")
        if state.kind != LIVE:
            return (state.kind,)
        try:
            body = b"".join(stored.blocks(0, state.size))
        except CorruptBody as error:
            raise AssertionError(f"{key.path} was damaged: {error}") from error
    finally:
        stored.close()
    assert md5(body).hexdigest() == state.metadata["ETag"]
    return live(body, state.metadata.get("X-Object-Meta-Colour"), state.metadata["Content-Type"])


def shown(outcome):
    if outcome[0] != LIVE:
        return outcome[0]
    return f"live {outcome[1][:20]!r} ({len(outcome[1])} bytes) {outcome[2:]}"


def key_of(name, policy=GOLD, part_power=PART_POWER):
    """Return the key of an object in the partition of its hash."""
    path_hash = HASHER.hexdigest("AUTH_a", "c", name)
    return key_at(name, policy, str(int(path_hash[:8], 16) >> (32 - part_power)))


def location_of(key):
    return Location(key.device, key.partition, key.policy, key.hash)


# --- changes as the object server makes them --------------------------------------------------------


def put(store, key, second, body, colour=None, *, fragment=None, next_part_power=None):
    draft = store.draft(key, len(body))
    try:
        for start in range(0, len(body), 3000):
            draft.write(body[start : start + 3000])
        with store.edit(key, VIEW, create=True, next_part_power=next_part_power) as edit:
            edit.put(draft, at(second), metadata_of(key, second, body, colour), fragment=fragment)
    finally:
        draft.discard()


def post(store, key, second, colour, ctype=None, *, next_part_power=None):
    with store.edit(key, VIEW, create=False, next_part_power=next_part_power) as edit:
        metadata = {"X-Timestamp": at(second).internal, "name": str(key.path)}
        metadata["X-Object-Meta-Colour"] = colour
        if ctype is not None:
            metadata |= {"Content-Type": ctype, "Content-Type-Timestamp": at(second).internal}
        edit.post(at(second), at(second) if ctype else None, metadata)


def delete(store, key, second, *, next_part_power=None):
    with store.edit(key, VIEW, create=True, next_part_power=next_part_power) as edit:
        edit.delete(at(second))


def commit(store, key, second, fragment=INDEX):
    with store.edit(key, VIEW, create=True) as edit:
        edit.commit(at(second), fragment)


def abort(store, key, second, fragment=INDEX):
    with store.edit(key, VIEW, create=True) as edit:
        edit.abort(at(second), fragment)


def purge(store, key, second, meta=None):
    synced = SyncedVersion(
        at(second),
        None if key.policy.ec is None else INDEX,
        meta_timestamp=None if meta is None else at(meta),
        durable=key.policy.ec is not None,
    )
    return store.maintenance.purge(location_of(key), synced)


class NestedBatches:
    """Changes in one batch without threads: each begins while the previous one waits."""

    def __init__(self, process):
        self._process = process
        self._members = []
        self.following = []

    def wait(self, member):
        """See ``ThreadBatches``."""
        self._members.append(member)
        if self.following:
            self.following.pop(0)()
            return True
        members, self._members = self._members, []
        return self._process(members)


# --- the world ----------------------------------------------------------------------------------------


class World:
    """A device, the processes on it, what may be found there, and the states seen so far."""

    def __init__(self, seed, limit, *, volume_bytes=6144, packed_max=PACKED_MAX, processes=2):
        self.clock = ManualClock(NOW_S)
        self.limit = limit
        self.volume_bytes = volume_bytes
        self.packed_max = packed_max
        self.chooser = random.Random(seed)
        self.seen = set()
        self.states = 0
        self.current = {}
        self.allowed = {}
        #: Outcomes without posted metadata.
        self.unposted = {}
        #: When data or tombstone, and metadata of an object were written, for purges.
        self.written = {}
        #: Called with each process that starts.
        self.on_start = lambda _store: None
        self.machine = Machine(SimulatedDisk(TOP))
        self.stores = [self._start() for _ in range(processes)]
        self.meanwhile = None
        #: The error of an inspection, which the engine might take for a failure of the device.
        self.failure = None

    def _start(self, machine=None):
        process = Process(machine or self.machine)
        store = store_of(
            process,
            self.clock,
            volume_bytes=self.volume_bytes,
            packed_max=self.packed_max,
            notice=self._notice,
        )
        store.process = process
        self.on_start(store)
        if machine is None:
            process.before_write = self._before_write
            process.between = self._between
        return store

    def _notice(self, text):
        assert not text.startswith("Quarantined"), text

    def watch(self):
        """Examine power cuts and kills before each further change."""
        self.machine.disk.before_change = self.cut

    def start(self, number):
        """Replace a process by a new one."""
        self.stores[number].process.kill()
        self.stores[number] = self._start()
        return self.stores[number]

    def is_opening(self):
        """Return True if a process holds the opening lock, for which another one would wait."""
        disk = self.machine.disk
        try:
            number = disk.stat(f"{TOP}/packed/opening").st_ino
        except FileNotFoundError:
            return False
        return number in disk._locks

    def shut_down(self):
        """Stop all processes cleanly, so that the index is valid after a boot; then cut the power."""
        for store in self.stores:
            if not store.process.is_dead:
                store.close()
        self.fail_if_found()
        if self.machine.file is not None:
            for image in self.machine.disk.crash_states(self.limit, self.chooser):
                self.inspect(SimulatedDisk(TOP, image), self.machine.file.kept)

    def lose_index(self):
        """Remove the index, as a process does that finds it damaged."""
        self.machine.file = None

    # --- telling the story ---------------------------------------------------------------------------

    def change(self, outcomes, action):
        """Run an action whose result is ``outcomes`` (by key) once it returns."""
        for key, outcome in outcomes.items():
            self.allowed[key] = {*self.allowed.get(key, (ABSENT_OUTCOME,)), outcome}
        try:
            action()
        finally:
            self.fail_if_found()
        for key, outcome in outcomes.items():
            self.current[key] = outcome
            self.allowed[key] = {outcome}
        self.cut()

    def fail_if_found(self):
        if self.failure is not None:
            raise self.failure

    def state(self, key):
        return self.current.get(key, ABSENT_OUTCOME)

    def put(self, key, second, body, colour=None, *, by=0, next_part_power=None):
        keys = self._both(key, next_part_power)
        self.change(
            dict.fromkeys(keys, live(body, colour)),
            lambda: put(self.stores[by], key, second, body, colour, next_part_power=next_part_power),
        )
        self.unposted.update(dict.fromkeys(keys, live(body, colour)))
        self.written.update(dict.fromkeys(keys, (second, None)))

    def _both(self, key, next_part_power):
        """Return the key, and the key after an increase of the part power."""
        if next_part_power is None:
            return [key]
        partition = str(int(key.hash[:8], 16) >> (32 - next_part_power))
        return list(dict.fromkeys([key, key._replace(partition=partition)]))

    def delete(self, key, second, *, by=0, next_part_power=None):
        keys = self._both(key, next_part_power)
        self.change(
            dict.fromkeys(keys, ("deleted",)),
            lambda: delete(self.stores[by], key, second, next_part_power=next_part_power),
        )
        self.written.update(dict.fromkeys(keys, (second, None)))

    def post(self, key, second, colour, ctype=None, *, by=0, next_part_power=None):
        keys = [each for each in self._both(key, next_part_power) if self.state(each)[0] == LIVE]
        outcomes = {}
        for each in keys:
            _, body, _, old_type = self.current[each]
            outcomes[each] = live(body, colour, ctype or old_type)
        self.change(
            outcomes,
            lambda: post(self.stores[by], key, second, colour, ctype, next_part_power=next_part_power),
        )
        for each in keys:
            if each in self.written:
                self.written[each] = (self.written[each][0], second)

    def archive(self, key, second, body, *, by=0, fragment=INDEX):
        """A fragment archive that is not committed: nothing changes for readers of durable data."""
        self.allowed.setdefault(key, {ABSENT_OUTCOME})
        self.change({}, lambda: put(self.stores[by], key, second, body, fragment=fragment))

    def commit(self, key, second, body, *, by=0):
        self.change({key: live(body)}, lambda: commit(self.stores[by], key, second))
        self.written[key] = (second, None)

    def abort(self, key, second, *, by=0):
        self.change({}, lambda: abort(self.stores[by], key, second))

    def purge(self, key, *, by=0):
        second, meta = self.written[key]
        assert self.state(key) != ABSENT_OUTCOME

        def work():
            purge(self.stores[by], key, second, meta)

        self.change({key: ABSENT_OUTCOME}, work)

    def relink(self, key, old, *, by=0):
        """Put an object of another partition into that of ``key`` as well."""
        if self.state(old)[0] == LIVE:
            # Files and records are linked one after another.
            self.allowed.setdefault(key, {ABSENT_OUTCOME}).add(self.unposted[old])
        self.change({key: self.state(old)}, lambda: self.stores[by].relink(key, old.partition))
        self.unposted[key] = self.unposted[old]
        self.written[key] = self.written[old]

    def compact(self, *, by=0):
        """Copy live records to other volumes and punch holes; readers see no change.

        Return the number of volumes that are gone, and the bytes of the holes.
        """
        removed, punched = 0, 0

        def work():
            nonlocal removed, punched
            store = self.stores[by]
            compactor = Compactor(store.core.disk, device_of(store))
            for number in device_of(store).volumes.numbers():
                if compactor.compact(number).is_removed:
                    removed += 1
                else:
                    punched += compactor.punch(number)

        self.change({}, work)
        return removed, punched

    def at_once(self, changes, *, by=0):
        """Apply changes of several objects in one batch."""
        device = device_of(self.stores[by])
        real = device.writer.threads
        batches = device.writer.threads = NestedBatches(device.writer.process)
        batches.following = list(changes)
        try:
            while batches.following:
                batches.following.pop(0)()
        finally:
            device.writer.threads = real

    def settle_interrupted(self, key, by):
        """Read an object that a killed process was changing; fix its outcome."""
        found = outcome_of(self.stores[by], key)
        assert found in self.allowed[key], f"{key.path} is {shown(found)}"
        self.current[key] = found
        self.allowed[key] = {found}

    # --- cutting ---------------------------------------------------------------------------------------

    def cut(self):
        """Check the states that a power cut or SIGKILL may leave now."""
        if self.limit <= 0:
            return
        disk = self.machine.disk
        for image in disk.crash_states(self.limit, self.chooser):
            if self._is_new(("power", image.fingerprint())):
                self.inspect(SimulatedDisk(TOP, image), None)
        kept = None if self.machine.file is None else self.machine.file.kept
        self.check_killed(disk, kept)

    def check_killed(self, disk, kept):
        """Check the state after all processes are killed."""
        everything = disk.forked()
        mark = hash(everything.page_cache())
        if kept is not None and self._is_new(("killed", mark, hash(frozenset(kept.items())))):
            self.inspect(everything, kept)
            everything = disk.forked()
        if self._is_new(("killed", mark)):
            self.inspect(everything, None)

    def _between(self):
        """Let another process make a change."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None and not meanwhile():
            self.meanwhile = meanwhile

    def _before_write(self, fd, data, offset):
        """Check kills in the middle of a write: a part of it is in the page cache."""
        if self.limit <= 0 or len(data) <= 64 or not any(data[:4]):
            return
        for _ in range(1 + self.limit // 8):
            disk = self.machine.disk
            forked = disk.forked()
            end = self.chooser.choice([64, 128, self.chooser.randrange(1, len(data)), len(data)])
            forked.pwrite_at(disk.inode_number(fd), data[:end], offset)
            kept = None if self.machine.file is None else self.machine.file.kept
            self.check_killed(forked, kept)

    def _is_new(self, state):
        expected = hash(frozenset((key, frozenset(outcomes)) for key, outcomes in self.allowed.items()))
        if (state, expected) in self.seen:
            return False
        self.seen.add((state, expected))
        return True

    def inspect(self, disk, kept):
        """Reopen the device, check its state, rebuild the index, and check again."""
        if self.failure is None:
            try:
                self._inspect(disk, kept)
            except AssertionError as error:
                self.failure = error
                raise

    def _inspect(self, disk, kept):
        self.states += 1
        machine = Machine(disk, kept)
        store = self._start(machine)
        found = {key: outcome_of(store, key) for key in self.allowed}
        for key, outcome in found.items():
            assert outcome in self.allowed[key], (
                f"{key.path} in {key.partition} is {shown(outcome)}, "
                f"not {' or '.join(map(shown, self.allowed[key]))}"
            )
        self.check_rebuilt_index(machine, store, found, "at once")
        if self.states % 3 == 0:
            self.check_further_changes(machine, store, found)

    def check_rebuilt_index(self, machine, store, found, when):
        """Check that an index rebuilt from the volumes is equal."""
        device_of(store)
        before = entries_in(machine.file.kept) if machine.file else {}
        again = Machine(machine.disk.forked())
        other = self._start(again)
        device_of(other)
        same = {key: outcome_of(other, key) for key in found}
        assert same == found, f"{when}: {_difference(found, same)}"
        after = entries_in(again.file.kept)
        assert after == before, f"{when}: {_difference(before, after)}"
        before, after = live_bytes_in(machine.file.kept), live_bytes_in(again.file.kept)
        assert after == before, f"{when}: live bytes {_difference(before, after)}"
        if self.states % 2:
            for device, partition, policy in sorted(
                {(key.device, key.partition, key.policy) for key in found}, key=str
            ):
                told, retold = (each.hashes(device, partition, policy) for each in (store, other))
                assert told == retold, f"{when}: hashes of {partition}"
                told, retold = (list(each.inventory(device, partition, policy)) for each in (store, other))
                assert told == retold, f"{when}: inventory of {partition}"
            assert {key: outcome_of(store, key) for key in found} == found, f"{when}: changed by hashing"
        other.process.kill()

    def check_further_changes(self, machine, store, found):
        """Check further changes after the power cut, and another power cut."""
        number = self.states // 3
        plain = [key for key in found if key.policy.ec is None]
        expected = dict(found)
        for turn, key in enumerate(sorted(plain, key=str)):
            if (turn + number) % 3 == 0:
                put(store, key, 900, b"life goes on", "black")
                expected[key] = live(b"life goes on", "black")
            elif (turn + number) % 3 == 1:
                delete(store, key, 901)
                expected[key] = ("deleted",)
        for key, outcome in expected.items():
            assert outcome_of(store, key) == outcome, f"after life went on {key.path} is no longer right"
        if number % 2:
            self.check_rebuilt_index(machine, store, expected, "later")
        for image in machine.disk.crash_states(2, self.chooser):
            self.states += 1
            disk = SimulatedDisk(TOP, image)
            left = self._start(Machine(disk))
            for key, outcome in expected.items():
                now = outcome_of(left, key)
                assert now == outcome, f"second cut: {key.path} is {shown(now)}, not {shown(outcome)}"
            left.process.kill()


def _difference(before, after):
    lines = []
    for key in {*before, *after}:
        if before.get(key) != after.get(key):
            lines.append(f"{key}: {before.get(key)} then {after.get(key)}")
    return "\n".join(lines)
