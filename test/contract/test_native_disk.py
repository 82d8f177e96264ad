"""Contract of the calls of ``NativeDisk`` that take several steps: all of it, or nothing and no trace."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swift.platform.disk import APPENDED, NOTHING, PUBLISHED, Disk, JournalLines, SoleFile
from swift.platform.durable import make_directories
from swift.platform.locks import lock_directory
from swift.platform.nativedisk import NativeDisk
from test.support.native import faulty_native, library

ATTRIBUTES = (("user.swift.metadata", b"pickle"), ("user.swift.metadata_checksum", b"sum"))


@pytest.fixture
def disk():
    return NativeDisk(faulty_native())


@pytest.fixture(autouse=True)
def descriptors():
    """No call keeps a descriptor that it does not return; tests close what they got."""
    before = set(os.listdir("/proc/self/fd"))
    yield
    # Those of tests before may be collected meanwhile.
    assert set(os.listdir("/proc/self/fd")) <= before


def put(directory, name="1700000000.00000.data", body=b"body", attributes=ATTRIBUTES):
    path = directory / name
    path.write_bytes(body)
    for key, value in attributes:
        os.setxattr(path, key, value)
    return path


# --- holding ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", ["suffix", "hash", "suffix-missing"])
def test_directories_are_made_as_the_long_way_makes_them(disk, tmp_path, there):
    made = {}
    for way in ("native", "long"):
        path = tmp_path / way / "7/abc/hash"
        os.makedirs({"suffix": path.parent, "hash": path}.get(there, path.parent.parent))
        made[way] = []
        if way == "long":
            made[way] = make_directories(disk, str(path), below=str(tmp_path))
        else:
            fd, names, file = disk.try_hold(str(path), str(tmp_path), made[way])
            assert (names, file) == ([], None)
            assert os.path.samestat(os.fstat(fd), os.stat(path))
            os.close(fd)
        made[way] = [os.path.relpath(each, tmp_path / way) for each in made[way]]
    assert made["native"] == made["long"]


def test_what_is_missing_further_above_takes_the_long_way(disk, tmp_path):
    made = []
    assert disk.try_hold(str(tmp_path / "7/abc/hash"), str(tmp_path), made) is None
    assert (made, os.listdir(tmp_path)) == ([], [])
    assert disk.try_hold(str(tmp_path / "abc/hash"), str(tmp_path / "abc"), made) is None
    assert os.listdir(tmp_path) == []
    assert disk.try_hold(str(tmp_path / "abc"), None, made) is None
    assert os.listdir(tmp_path) == []


def test_a_directory_is_held_alone_and_listed_from_its_begin(disk, tmp_path):
    names = {f"{number:0200}" for number in range(100)}
    for name in names:
        (tmp_path / name).touch()
    fd, listed, file = disk.try_hold(str(tmp_path), None, [])
    assert (sorted(listed), file) == (sorted(names), None)
    assert sorted(os.listdir(fd)) == sorted(names)
    assert disk.try_hold(str(tmp_path), None, []) is None
    os.close(fd)
    os.close(lock_directory(disk, str(tmp_path)))


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_directory_takes_the_long_way(disk, tmp_path, kind):
    if kind == "file":
        (tmp_path / "hash").touch()
    else:
        (tmp_path / "hash").symlink_to("nowhere")
    assert disk.try_hold(str(tmp_path / "hash"), str(tmp_path), []) is None
    assert disk.try_look(str(tmp_path / "hash"), opens=True, body_bytes_max=10) is None


# --- reading ---------------------------------------------------------------------------------------------


def same_status(found, expected):
    fields = ("mode", "ino", "dev", "nlink", "uid", "gid", "size", "mtime", "mtime_ns", "ctime_ns")
    return all(getattr(found, f"st_{field}") == getattr(expected, f"st_{field}") for field in fields)


@pytest.mark.parametrize("body", [b"", b"body", bytes(10)])
def test_the_only_data_file_is_read_with_its_directory(disk, tmp_path, body):
    path = put(tmp_path, body=body)
    for opens in (True, False):
        names, file = disk.try_look(str(tmp_path), opens=opens, body_bytes_max=4)
        assert names == [path.name]
        assert isinstance(file, SoleFile)
        assert isinstance(file.status, os.stat_result)
        assert same_status(file.status, path.stat())
        assert (file.metadata, file.checksum) == (b"pickle", b"sum")
        assert file.body == (body if opens and 0 < len(body) <= 4 else None)
        assert (file.fd >= 0) == opens
        if opens:
            assert os.pread(file.fd, 100, 0) == body
            os.close(file.fd)
    fd, names, file = disk.try_hold(str(tmp_path), None, [])
    assert (names, file.fd, file.metadata) == ([path.name], -1, b"pickle")
    os.close(fd)


@pytest.mark.parametrize("case", ["empty", "two", "tombstone", "fifo", "link", "directory", "no-attributes"])
def test_of_anything_else_only_the_names_are_read(disk, tmp_path, case):
    name = "1700000000.00000.data"
    if case == "two":
        put(tmp_path, "1.ts")
    if case in ("two", "no-attributes"):
        put(tmp_path, attributes=ATTRIBUTES if case == "two" else ATTRIBUTES[:1])
    elif case == "tombstone":
        put(tmp_path, "1.ts")
    elif case == "fifo":
        os.mkfifo(tmp_path / name)
    elif case == "link":
        (tmp_path / name).symlink_to("/etc/hostname")
    elif case == "directory":
        (tmp_path / name).mkdir()
    names, file = disk.try_look(str(tmp_path), opens=True, body_bytes_max=100)
    assert (sorted(names), file) == (sorted(os.listdir(tmp_path)), None)


# --- writing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"body", bytes(70_000)])
def test_a_file_has_body_and_attributes_and_no_name(disk, tmp_path, body):
    fd = disk.try_create(str(tmp_path), body, ATTRIBUTES)
    assert os.listdir(tmp_path) == []
    assert os.pread(fd, 100_000, 0) == body
    assert {name: os.getxattr(fd, name) for name in os.listxattr(fd)} == dict(ATTRIBUTES)
    assert (os.fstat(fd).st_mode & 0o777, os.get_inheritable(fd)) == (0o600, False)
    os.close(fd)


def test_a_file_that_cannot_be_made_takes_the_long_way(disk, tmp_path):
    assert disk.try_create(str(tmp_path / "none"), b"", ()) is None
    assert disk.try_create(str(tmp_path), b"", (("user.a", bytes(100_000)),)) is None
    assert disk.try_create(str(tmp_path), b"", (("invalid", b""),)) is None
    assert disk.try_create(str(tmp_path), b"", (("user.a", b""),) * 17) is None


def lines_in(folder, text=b"abc\n"):
    return JournalLines(str(folder / ".lock"), str(folder / "hashes.invalid"), text)


def test_a_line_is_appended_under_the_lock(disk, tmp_path):
    assert disk.try_append(lines_in(tmp_path))
    assert disk.try_append(lines_in(tmp_path, b"def\n"))
    assert (tmp_path / "hashes.invalid").read_bytes() == b"abc\ndef\n"
    assert (tmp_path / ".lock").stat().st_mode & 0o777 == 0o644 & ~umask()
    fd = lock_directory(disk, str(tmp_path))
    os.close(fd)
    lock = os.open(tmp_path / ".lock", os.O_RDONLY)
    Disk().flock(lock, 6)
    assert not disk.try_append(lines_in(tmp_path))
    os.close(lock)
    assert not disk.try_append(lines_in(tmp_path / "none"))
    (tmp_path / "hashes.invalid").unlink()
    os.mkfifo(tmp_path / "hashes.invalid")
    assert not disk.try_append(lines_in(tmp_path))


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_is_named_after_its_line(disk, tmp_path):
    (tmp_path / "hash").mkdir()
    dir_fd = os.open(tmp_path / "hash", os.O_RDONLY)
    fd = disk.try_create(str(tmp_path / "hash"), b"body", ATTRIBUTES)
    assert disk.try_publish(lines_in(tmp_path / "none"), fd, "a", dir_fd=dir_fd) == NOTHING
    assert os.listdir(tmp_path / "hash") == []
    assert disk.try_publish(lines_in(tmp_path), fd, "a", dir_fd=dir_fd) == PUBLISHED
    assert (tmp_path / "hash/a").read_bytes() == b"body"
    fd = disk.try_create(str(tmp_path / "hash"), b"other", ATTRIBUTES)
    assert disk.try_publish(lines_in(tmp_path), fd, "a", dir_fd=dir_fd) == APPENDED
    assert (tmp_path / "hash/a").read_bytes() == b"body"
    assert (tmp_path / "hashes.invalid").read_bytes() == b"abc\nabc\n"
    os.close(fd)
    os.close(dir_fd)


def test_an_error_of_a_sync_is_raised(disk, tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    disk.sync(fd, [str(tmp_path)])
    with pytest.raises(FileNotFoundError) as raised:
        disk.sync(fd, [str(tmp_path), str(tmp_path / "none")])
    assert raised.value.filename == str(tmp_path / "none")
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.sync(fd)


def test_the_room_of_a_filesystem_is_found_without_the_lock_because_that_may_wait(disk):
    assert disk.statvfs is os.statvfs


# --- errors ----------------------------------------------------------------------------------------------


def calls(disk, root, fd):
    """Return a call of each kind."""
    (root / "hash").mkdir()
    put(root / "hash", "1.data")
    return {
        "hold": lambda: disk.try_hold(str(root / "hash"), str(root), []),
        "look": lambda: disk.try_look(str(root / "hash"), opens=True, body_bytes_max=100),
        "create": lambda: disk.try_create(str(root / "hash"), b"body", ATTRIBUTES),
        "append": lambda: disk.try_append(lines_in(root)),
        "sync": lambda: disk.sync(fd, [str(root)]),
    }


def close_result(result):
    if isinstance(result, int) and not isinstance(result, bool):
        os.close(result)
    for each in result if isinstance(result, tuple) else ():
        if isinstance(each, SoleFile) and each.fd >= 0:
            os.close(each.fd)
        elif isinstance(each, int):
            os.close(each)


@pytest.mark.parametrize(
    "code", [errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EROFS], ids=errno.errorcode.get
)
@pytest.mark.parametrize("way", ["hold", "look", "create", "append", "sync"])
def test_each_call_that_fails_leaves_no_descriptor_and_no_part(disk, tmp_path, way, code):
    fault, number = faulty_native().fault, 0
    fd = os.open(tmp_path, os.O_RDONLY)
    call = calls(disk, tmp_path, fd)[way]
    while True:
        before = set(os.listdir("/proc/self/fd"))
        fault(number, code, False, 0)
        error = result = None
        try:
            result = call()
        except OSError as raised:
            error = raised
        made = fault(-1, 0, False, 0)
        close_result(result)
        assert set(os.listdir("/proc/self/fd")) <= before
        if made <= number:
            break
        if way == "sync":
            assert error.errno == code
        elif error is not None or result not in (None, False):
            # Without its file a look is as good as a list.
            assert error is None and isinstance(result, tuple) and result[-1] is None
        number += 1
    os.close(fd)
    assert error is None and (way == "sync" or result)
    assert number >= 3
    if way == "append":
        assert (tmp_path / "hashes.invalid").read_bytes() == b"abc\n"


def test_a_line_that_was_written_in_part_is_an_error(disk, tmp_path):
    fault = faulty_native().fault
    fault(-1, 0, False, 3)
    assert disk.try_append(lines_in(tmp_path, b"abcdefgh\n"))
    # Lock, its status and lock; journal and its status; the first write.
    fault(6, errno.ENOSPC, True, 3)
    with pytest.raises(OSError, match="No space"):
        disk.try_append(lines_in(tmp_path, b"xyzuvw\n"))
    fault(-1, 0, False, 0)
    assert (tmp_path / "hashes.invalid").read_bytes() == b"abcdefgh\nxyz"


def fuzz(path, folder, calls, environment):
    """Make random calls in a process of their own."""
    fuzzer = Path(__file__).parents[1] / "support/native_fuzz.py"
    command = [sys.executable, str(fuzzer), str(path), str(folder), str(calls)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{calls} calls" in done.stdout


@pytest.mark.process
def test_a_bad_argument_is_an_exception(tmp_path):
    fuzz(library("-DSWIFT_FAULTS"), tmp_path, 2000, dict(os.environ))


@pytest.mark.long
@pytest.mark.process
def test_no_argument_touches_memory_that_is_not_its_own(tmp_path):
    sanitized = library("-fsanitize=address", "-g", "-DSWIFT_FAULTS")
    runtime = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    if not os.path.isabs(runtime.stdout.strip()):
        pytest.skip("the compiler has no AddressSanitizer")
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    fuzz(sanitized, tmp_path, 20000, environment)
