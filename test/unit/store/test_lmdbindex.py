"""swift/store/lmdbindex.py on a real LMDB."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from swift.base.errors import ConfigError
from swift.store.lmdbindex import (
    IndexBusy,
    IndexFailed,
    IndexFull,
    IndexReplaced,
    LmdbIndex,
    WriterLock,
    require_lmdb,
)

VALUE = b"v" * 1200
KEYS = [b"k%05d" % number for number in range(400)]


class ObjectPath:
    """An SSD and a memory."""

    def __init__(self, root):
        self.ssd, self.memory = root / "ssd", root / "memory"

    def open(self, boot="this boot"):
        return LmdbIndex(str(self.ssd), boot, str(self.memory))

    @property
    def file(self):
        return next(self.ssd.glob("*.mdb"))


@pytest.fixture
def object_path(tmp_path):
    return ObjectPath(tmp_path)


def fill(index):
    with index.writing() as txn:
        for key in KEYS:
            txn.put(key, VALUE)


def test_what_is_put_is_found_and_told_in_order(object_path):
    index = object_path.open()
    fill(index)
    assert index.get(KEYS[7]) == VALUE
    assert index.get(b"none") is None
    assert index.keys(b"k000", KEYS[9], 3) == KEYS[10:13]
    with index.writing() as txn:
        assert txn.delete(KEYS[0])
        assert not txn.delete(KEYS[0])
        assert next(txn.scan(b"k")) == KEYS[1]


def test_an_exception_within_a_change_changes_nothing(object_path):
    index = object_path.open()
    with pytest.raises(ZeroDivisionError), index.writing() as txn:
        txn.put(b"a", b"b")
        raise ZeroDivisionError
    assert index.get(b"a") is None


def test_locks_are_in_memory_and_not_on_the_ssd(object_path):
    object_path.open()
    assert [path.suffix for path in object_path.ssd.iterdir() if path.name != "index.json"] == [".mdb"]
    assert next(object_path.memory.glob("*.mdb-lock")).stat().st_blocks


@pytest.mark.parametrize("left_bytes", [0, 4096, 8192, 40_960])
def test_pages_that_cannot_be_read_are_an_error_and_the_next_index_is_another_one(object_path, left_bytes):
    index = object_path.open()
    fill(index)
    os.truncate(object_path.file, left_bytes)
    with pytest.raises(IndexFailed):
        for key in KEYS:
            index.get(key)
    with pytest.raises(IndexFailed, match="cannot be read"):
        index.keys(b"k", b"", 1000)
    with pytest.raises(IndexFailed, match="cannot be read"), index.writing() as txn:
        txn.put(b"a", VALUE)
    with pytest.raises(IndexFailed, match="cannot be read"):
        index.check()
    # Another user of this process may still have the old one open.
    other = object_path.open()
    assert other.identity != index.identity
    assert other.get(KEYS[0]) is None
    fill(other)
    index.close(is_last=False)
    other.check()
    assert other.get(KEYS[-1]) == VALUE


@pytest.mark.parametrize("kind", ["scan", "put", "delete"])
def test_a_change_that_meets_such_a_page_does_not_happen(object_path, kind):
    index = object_path.open()
    fill(index)
    old = object_path.file
    content = old.read_bytes()
    os.truncate(old, 20_480)
    with pytest.raises(IndexFailed), index.writing() as txn:
        for key in KEYS:
            if kind == "scan":
                list(txn.scan(key))
            elif kind == "put":
                txn.put(key, VALUE * 2)
            else:
                txn.delete(key)
    assert not old.exists() or old.read_bytes() == content[:20_480]


def test_threads_may_use_it_while_another_one_closes_it(object_path):
    index = object_path.open()
    fill(index)
    found, begun = [], threading.Event()

    def work():
        try:
            while True:
                assert index.get(KEYS[50]) == VALUE
                begun.set()
        except IndexFailed as error:
            found.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(30)
    index.close(is_last=False)
    for thread in threads:
        thread.join(30)
    assert found == ["it was closed"] * 4


def test_it_survives_a_boot_only_when_its_last_user_closed_it(object_path):
    first = object_path.open()
    fill(first)
    first.close(is_last=True)
    second = object_path.open("another boot")
    assert second.get(KEYS[0]) == VALUE
    second.close(is_last=False)
    third = object_path.open("a third boot")
    assert third.get(KEYS[0]) is None
    assert len(list(object_path.ssd.glob("*.mdb"))) == 1


def test_without_its_locks_it_is_thrown_away(object_path):
    """Whoever removed them may have left somebody who still uses them."""
    first = object_path.open()
    fill(first)
    for path in object_path.memory.iterdir():
        path.unlink()
    second = object_path.open()
    assert second.identity != first.identity
    with pytest.raises(IndexReplaced):
        first.check()


NO_STATES = ("", "[]", "{", '{"name": "../../x", "closed": true}', '{"name": 7, "closed": 1}')


@pytest.mark.parametrize("state", NO_STATES)
def test_a_state_that_is_none_means_a_new_index(object_path, state):
    first = object_path.open()
    fill(first)
    first.close(is_last=True)
    (object_path.ssd / "index.json").write_text(state)
    second = object_path.open()
    assert second.get(KEYS[0]) is None
    assert json.loads((object_path.ssd / "index.json").read_text())["name"]


def test_an_index_that_is_gone_is_noticed(object_path):
    index = object_path.open()
    index.check()
    object_path.file.unlink()
    with pytest.raises(IndexReplaced):
        index.check()


@pytest.mark.parametrize("is_closed", (False, True))
def test_an_index_on_a_full_device_is_opened_and_noted_as_used(object_path, is_closed):
    index = object_path.open()
    fill(index)
    if is_closed:
        index.close(is_last=True)
    # Each write to it says that no space is left.
    (object_path.ssd / "index.json.new").symlink_to("/dev/full")
    again = object_path.open()
    assert again.get(KEYS[0]) == VALUE
    state = json.loads((object_path.ssd / "index.json").read_text())
    assert state["closed"] is False and state["boot"] == "this boot"


def test_a_new_index_on_a_full_device_is_refused_with_that_reason(object_path):
    object_path.ssd.mkdir()
    (object_path.ssd / "index.json.new").symlink_to("/dev/full")
    with pytest.raises(IndexFailed, match="No space left"):
        object_path.open()


def test_an_index_without_room_refuses_a_change_and_is_read(object_path):
    index = LmdbIndex(str(object_path.ssd), "this boot", str(object_path.memory), map_bytes=1 << 20)
    fill(index)
    with pytest.raises(IndexFull), index.writing() as txn:
        for key in KEYS:
            txn.put(key + b"more", VALUE)
    assert index.get(KEYS[-1]) == VALUE and index.get(KEYS[0] + b"more") is None
    index.check()


WRITES_WITH_ROOM_FOR_A_PART = """
import resource, sys
from swift.store.lmdbindex import IndexFailed, LmdbIndex
free = int(sys.argv[4])
index = LmdbIndex(*sys.argv[1:4], free_bytes=lambda _path: free)
with index.writing() as txn:
    txn.put(b"k", b"old")
# The kernel writes up to the limit, as up to the last free block.
resource.setrlimit(resource.RLIMIT_FSIZE, (index.size_bytes() + 30000, resource.RLIM_INFINITY))
try:
    with index.writing() as txn:
        for number in range(40):
            txn.put(b"k%d" % number, bytes(4000))
except IndexFailed as error:
    print(type(error).__name__, index.get(b"k").decode())
"""


@pytest.mark.process
@pytest.mark.parametrize(("free", "error"), [(0, "IndexFull"), (1 << 30, "IndexFailed")])
def test_a_change_with_room_for_a_part_of_it_fails_for_lack_of_room(object_path, free, error):
    where = [str(object_path.ssd), "this boot", str(object_path.memory), str(free)]
    found = subprocess.run(
        [sys.executable, "-c", WRITES_WITH_ROOM_FOR_A_PART, *where],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.stdout == f"{error} old\n", found.stderr


@pytest.mark.parametrize("is_closed", (False, True))
def test_a_copy_in_place_of_an_index_is_not_believed(object_path, is_closed):
    index = object_path.open()
    fill(index)
    if is_closed:
        index.close(is_last=True)
    backup = object_path.ssd.rename(object_path.ssd.parent / "backup")
    shutil.copytree(backup, object_path.ssd)
    assert not index.is_current()
    again = object_path.open()
    assert again.get(KEYS[0]) is None and again.is_current()


KILLED_WHILE_READING = """
import os, signal, sys
from swift.store.lmdbindex import LmdbIndex
index = LmdbIndex(*sys.argv[1:])
txn = index._opened.env.begin()
txn.get(b"k")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.process
def test_an_index_does_not_grow_because_a_reader_was_killed(object_path):
    index = object_path.open()
    fill(index)
    before = index.size_bytes()
    arguments = [str(object_path.ssd), "this boot", str(object_path.memory)]
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_READING, *arguments], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    index.check()
    for number in range(300):
        with index.writing() as txn:
            txn.put(KEYS[number], VALUE)
    assert index.size_bytes() < before + (1 << 20)


STOPPED_WHILE_WRITING = """
import os, signal, sys
from swift.store.lmdbindex import LmdbIndex
index = LmdbIndex(*sys.argv[1:])
with index.writing() as txn:
    txn.put(b"k", b"v")
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.process
@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL])
def test_a_change_is_refused_while_another_process_is_stopped_within_one(object_path, end):
    where = [str(object_path.ssd), "this boot", str(object_path.memory)]
    index = LmdbIndex(*where, writer_timeout_s=0.3)
    index.get(b"k")
    stopped = subprocess.Popen([sys.executable, "-c", STOPPED_WHILE_WRITING, *where])
    try:
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        with pytest.raises(IndexBusy, match="more than 0.3 s"), index.writing():
            pass
        assert index.get(b"k") is None
        stopped.send_signal(end)
        assert stopped.wait(60) == (0 if end is signal.SIGCONT else -end)
        with index.writing() as txn:
            assert txn.get(b"k") == (b"v" if end is signal.SIGCONT else None)
    finally:
        stopped.kill()
        stopped.wait(60)


def test_after_one_change_that_waited_in_vain_others_wait_less_until_one_succeeds(tmp_path):
    path = str(tmp_path / "lock")
    mine, theirs = WriterLock(path, 0.4), WriterLock(path)
    with theirs.hold():
        for seconds in ("0.4", "0.25"):
            with pytest.raises(IndexBusy, match=f"more than {seconds} s"), mine.hold():
                pass
    with mine.hold():
        pass
    with theirs.hold(), pytest.raises(IndexBusy, match="more than 0.4 s"), mine.hold():
        pass


def test_threads_of_one_process_change_it_in_turn(tmp_path):
    lock = WriterLock(str(tmp_path / "lock"), 0.1)
    failures = []

    def change():
        try:
            with lock.hold():
                failures.append("held twice")
        except IndexBusy as error:
            failures.append(error)

    with lock.hold():
        thread = threading.Thread(target=change)
        thread.start()
        thread.join(60)
    assert [type(failure) for failure in failures] == [IndexBusy]


def test_a_release_of_lmdb_that_a_damaged_index_ends_is_refused():
    for version in ("2.1.1", "2.2.0", "3.0.0", "3.1"):
        require_lmdb(version)
    for version in ("1.4.0", "2.0.0", "2.1.0"):
        with pytest.raises(ConfigError, match="needs lmdb 2.1.1 or newer, not"):
            require_lmdb(version)
    with pytest.raises(ConfigError, match=f"needs the package lmdb .{sys.executable} -m pip install"):
        require_lmdb("")


def written_over(file, content):
    """Write older content over a file, as ``rsync --inplace`` does: its inode stays."""
    with open(file, "r+b") as opened:
        opened.write(content)


READS = {
    "get": lambda index: index.get(KEYS[0]),
    "keys": lambda index: index.keys(b"k", b"", 3),
    "items": lambda index: index.items(b"k", b"", 3),
    "writing": lambda index: index.writing().__enter__(),
    "close": lambda index: index.close(is_last=True),
}


@pytest.mark.parametrize("use", READS)
def test_an_older_copy_that_is_written_over_an_index_is_noticed_at_its_next_use(object_path, use):
    index, other = object_path.open(), object_path.open()
    fill(index)
    older = object_path.file.read_bytes()
    with index.writing() as txn:
        txn.put(b"k", b"newer")
    written_over(object_path.file, older)
    with pytest.raises(IndexFailed, match="an older copy perhaps"):
        READS[use](index)
    assert not other.is_current()
    assert object_path.open().get(b"k") is None


def test_an_older_copy_that_is_written_over_an_index_during_a_change_is_noticed_at_the_next_change(
    object_path,
):
    index = object_path.open()
    fill(index)
    older = object_path.file.read_bytes()
    for value in (b"1", b"2"):
        with index.writing() as txn:
            txn.put(b"k", value)
    with index.writing() as txn:
        txn.put(b"k", b"3")
        written_over(object_path.file, older)
    with pytest.raises(IndexFailed, match="an older copy perhaps"), index.writing():
        pass
    assert not index.is_current()


def test_changes_of_several_who_have_it_open_are_no_older_copy(object_path):
    users = [object_path.open() for _ in range(2)]
    for number in range(20):
        with pytest.raises(ZeroDivisionError), users[0].writing() as txn:
            txn.put(b"k", b"never")
            raise ZeroDivisionError
        with users[number % 2].writing() as txn:
            txn.put(b"k", b"%d" % number)
        with users[0].writing():
            pass
        assert users[1].get(b"k") == b"%d" % number
    users[0].close(is_last=True)
    assert object_path.open("another boot").get(b"k") == b"19"


def test_one_index_at_a_time_is_in_use_whatever_became_of_its_directory(object_path):
    index = object_path.open()
    assert index.is_current()
    other = LmdbIndex(str(object_path.ssd.parent / "elsewhere"), "this boot", str(object_path.memory))
    assert other.is_current() and not index.is_current()
    with pytest.raises(IndexReplaced):
        index.check()


def test_a_file_that_is_missing_is_not_the_one_of_a_state_that_knew_none(object_path):
    index = object_path.open()
    name = object_path.file.stem
    object_path.file.unlink()
    state = {"boot": "this boot", "name": name, "closed": True, "inode": 0}
    (object_path.ssd / "index.json").write_text(json.dumps(state))
    again = object_path.open()
    assert again.identity != index.identity and again.is_current()


def test_an_index_whose_directory_was_replaced_is_noted_nowhere(object_path):
    index = object_path.open()
    object_path.ssd.rename(object_path.ssd.parent / "away")
    new = object_path.open()
    index.close(is_last=True)
    state = json.loads((object_path.ssd / "index.json").read_text())
    assert (state["closed"], state["name"]) == (False, object_path.file.stem)
    assert json.loads((object_path.ssd.parent / "away/index.json").read_text())["closed"] is False
    new.check()
