"""Every file operation of a request fails once: no false success, no leftovers, no lost object."""

from __future__ import annotations

import errno
import os
from functools import partial
from hashlib import md5

import pytest

from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.config.kinds import Reserve
from swift.green import gather
from swift.http.body import BodyError
from swift.http.request import Request
from swift.obj.server import ObjectServer
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.runtime.backendapp import BackendContext
from swift.store.registry import EngineParts, StoreRegistry

PATH = "/sda/1/AUTH_a/c/o"
SMALL = b"new body"
LARGE = os.urandom(600_000)
OPERATIONS = frozenset(
    (
        *("open", "read", "pread", "write", "truncate", "fstat", "fsync", "fdatasync", "flock", "stat"),
        *("listdir", "mkdir", "rmdir", "unlink", "rename", "link", "statvfs", "getxattr", "setxattr"),
        "listxattr",
        *("open_unnamed", "link_unnamed", "preallocate", "read_cached", "duplicate", "sync_filesystem"),
    )
)


class FaultyDisk(Disk):
    """Counts operations and lets one of them fail."""

    def __init__(self):
        self.count = 0
        self.fail_at = 0
        self.code = errno.EIO
        self.failed = ""
        self.unnamed = True

    def arm(self, number, code):
        self.count, self.fail_at, self.code, self.failed = 0, number, code, ""

    def dirty_bytes(self):
        return 0

    def __getattribute__(self, name):
        real = super().__getattribute__(name)
        if name not in OPERATIONS:
            return real

        def operation(*args, **kwargs):
            self.count += 1
            if name == "open_unnamed" and not self.unnamed:
                raise OSError(errno.EOPNOTSUPP, "no unnamed files here")
            if self.count == self.fail_at:
                self.failed = name
                raise OSError(self.code, os.strerror(self.code))
            return real(*args, **kwargs)

        return operation


@pytest.fixture
def disk():
    return FaultyDisk()


@pytest.fixture
def app(tmp_path, disk):
    (tmp_path / "sda").mkdir()
    context = BackendContext(
        devices=Devices(str(tmp_path), mount_check=False),
        hasher=PathHasher(b"p"),
        # However slow the machine is, no sync takes long by this clock, so that all of them are shared.
        clock=ManualClock(4_000_000_000.0),
    )
    parts = EngineParts(
        devices=context.devices,
        hasher=context.hasher,
        clock=context.clock,
        disk=disk,
        reserve=Reserve(0, is_percent=False),
        shared_sync_dirty_limit=1 << 40,
    )
    return ObjectServer(context, ObjectSettings(), StoreRegistry(parts))


def put(app, second, body, path=PATH):
    headers = {
        "x-timestamp": f"{5_000_000_000 + second}.00000",
        "content-type": "text/plain",
        "content-length": str(len(body)),
    }
    return app.handle(Request("PUT", path, headers, body)).status


def simple(app, method, second, **headers):
    headers["x-timestamp"] = f"{5_000_000_000 + second}.00000"
    return app.handle(Request(method, PATH, headers)).status


def get(app, path=PATH):
    response = app.handle(Request("GET", path))
    return response.status, response.read_body()


def object_files(root):
    ignored = {".lock", "hashes.invalid", "hashes.pkl"}
    found = [path for path in (root / "sda").rglob("*") if path.is_file() and path.name not in ignored]
    return sorted(path.name for path in found if "quarantined" not in path.parts)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


CODES = [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EMFILE]
#: Every error that a read can meet, of the device, the filesystem, the network below it or the process.
READ_CODES = [
    *(errno.EIO, errno.ENODATA, errno.EUCLEAN, errno.EBADMSG, errno.ESTALE, errno.ETIMEDOUT, errno.EROFS),
    *(errno.ENODEV, errno.ENXIO, errno.EACCES, errno.EPERM, errno.ENOMEM, errno.EMFILE, errno.ENFILE),
    *(errno.EREMOTEIO, errno.ENOTCONN, errno.EINVAL, errno.EBUSY),
]


@pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed", "temporary-names"])
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_a_put_that_meets_an_error_is_not_acknowledged_unless_it_is_stored(
    app, disk, tmp_path, code, body, unnamed
):
    disk.unnamed = unnamed
    second, number = 0, 0
    open_before = descriptors()
    while True:
        number += 1
        second += 10
        simple(app, "DELETE", second)
        second += 10
        disk.arm(number, code)
        status = put(app, second, body)
        reached = disk.count >= number
        failed = disk.failed
        disk.arm(0, 0)
        # A device with room that has none for an attribute blames the metadata.
        blamed = (400,) if (failed, code) == ("setxattr", errno.ENOSPC) else ()
        assert status in (201, 503, 507, 500, *blamed), (number, failed)
        if status == 201:
            assert get(app) == (200, body), (number, failed)
        else:
            assert get(app)[0] == 404, (number, failed)
            tombstone = f"{5_000_000_000 + second - 10}.00000.ts"
            assert object_files(tmp_path) == [tombstone], (number, failed)
        assert descriptors() <= open_before + 4, (number, failed)
        if not reached:
            assert status == 201
            break
    assert number > 10


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_of_puts_that_share_their_syncs_each_is_acknowledged_only_if_it_is_stored(app, disk, code):
    number, failures = 0, set()
    open_before = descriptors()
    while True:
        number += 1
        paths = [f"/sda/{number}/AUTH_a/c/o{number}-{which}" for which in range(3)]
        disk.arm(number, code)
        responses = gather([partial(put, app, 1, SMALL, path) for path in paths])
        reached, failed = disk.count >= number, disk.failed
        disk.arm(0, 0)
        for path, status in zip(paths, responses, strict=True):
            found = get(app, path)
            assert found == (200, SMALL) if status == 201 else found[0] == 404, (number, failed, responses)
        if failed == "sync_filesystem":
            assert 201 not in responses
        failures.add(failed)
        # The second thread of a device and of the syncs may start meanwhile.
        assert descriptors() <= open_before + 4, (number, failed)
        if not reached:
            assert responses == [201] * 3
            break
    assert {"sync_filesystem", "duplicate", "link_unnamed"} <= failures


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_a_first_put_that_meets_an_error_leaves_no_file_at_all(app, disk, tmp_path, code):
    number = 0
    while True:
        number += 1
        path = f"/sda/{number}/AUTH_a/c/o{number}"
        headers = {"x-timestamp": "5000000000", "content-type": "a/b", "content-length": "8"}
        before = object_files(tmp_path)
        disk.arm(number, code)
        status = app.handle(Request("PUT", path, headers, SMALL)).status
        reached, failed = disk.count >= number, disk.failed
        disk.arm(0, 0)
        if status == 201:
            response = app.handle(Request("GET", path))
            assert response.read_body() == SMALL, failed
            assert md5(SMALL).hexdigest() in response.headers["etag"]
        else:
            assert object_files(tmp_path) == before, (number, failed)
            assert app.handle(Request("GET", path)).status == 404
        if not reached:
            break


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_an_overwrite_that_meets_an_error_keeps_the_old_body_or_has_the_new_one(app, disk, code):
    assert put(app, 1, b"old body") == 201
    second, number, current = 1, 0, b"old body"
    while True:
        number += 1
        second += 1
        disk.arm(number, code)
        status = put(app, second, b"body %d" % second)
        reached, failed = disk.count >= number, disk.failed
        disk.arm(0, 0)
        if status == 201:
            current = b"body %d" % second
        assert get(app) == (200, current), (number, failed, status)
        if not reached:
            break


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_a_post_or_delete_that_meets_an_error_did_not_happen(app, disk, method, code):
    second, number = 0, 0
    while True:
        number += 1
        second += 10
        assert put(app, second, SMALL) == 201
        disk.arm(number, code)
        status = simple(app, method, second + 1, **{"x-object-meta-a": "b"})
        reached, failed = disk.count >= number, disk.failed
        disk.arm(0, 0)
        response = app.handle(Request("HEAD", PATH))
        if status in (202, 204):
            happened = response.status == 404 if method == "DELETE" else "x-object-meta-a" in response.headers
            assert happened, (number, failed)
        else:
            blamed = (400,) if (failed, code) == ("setxattr", errno.ENOSPC) else ()
            assert status in (503, 507, *blamed), (number, failed, status)
            assert response.status == 200, (number, failed, status)
            assert "x-object-meta-a" not in response.headers, (number, failed)
        if not reached:
            break


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("code", READ_CODES, ids=errno.errorcode.get)
def test_a_read_that_meets_an_error_says_nothing_about_the_object(app, disk, tmp_path, code, body, method):
    """Neither 404 nor wrong bytes are answered, nothing is moved away, and the next read finds the object."""
    number, failures = 0, set()
    open_before = descriptors()
    assert put(app, 1, body) == 201
    assert simple(app, "POST", 2, **{"x-object-meta-a": "b"}) == 202
    while True:
        number += 1
        disk.arm(number, code)
        response = app.handle(Request(method, PATH))
        try:
            found = response.read_body()
        except BodyError:
            found = None
        reached, failed = disk.count >= number, disk.failed
        disk.arm(0, 0)
        failures.add(failed)
        assert response.status in (200, 503, 507), (number, failed, response.status)
        if response.status == 200 and method == "GET":
            assert found in (body, None), (number, failed)
        assert get(app) == (200, body), (number, failed)
        assert not (tmp_path / "sda/quarantined").exists(), (number, failed)
        assert descriptors() <= open_before + 4
        if not reached:
            break
    assert {"listdir", "getxattr"} <= failures


def test_errors_of_a_device_are_counted_and_those_of_the_process_are_not(app, disk):
    assert put(app, 1, SMALL) == 201
    for code, status in ((errno.EIO, 503), (errno.ENODEV, 507), (errno.EMFILE, 503)):
        disk.arm(1, code)
        assert simple(app, "HEAD", 2) == status
    page = app.context.telemetry.metrics.render()
    assert 'swift_device_errors_total{device="sda",error="EIO"} 1' in page
    assert 'swift_device_errors_total{device="sda",error="ENODEV"} 1' in page
    assert "EMFILE" not in page


def damage(root):
    """Break the metadata of the only object, which a read then proves."""
    path = next((root / "sda/objects").rglob("*.data"))
    os.setxattr(path, "user.swift.metadata", b"junk")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "RESERVED", "PUT-IF-NONE-MATCH", "EXPIRE"])
def test_an_object_that_is_put_away_by_a_request_is_unknown_to_it(app, tmp_path, method):
    assert put(app, 1, SMALL) == 201
    damage(tmp_path)
    stamp = {"x-timestamp": "5000000009"}
    ways = {
        "PUT-IF-NONE-MATCH": ("PUT", {"if-none-match": "*", "content-type": "a/b", "content-length": "1"}),
        "EXPIRE": ("DELETE", {"x-if-delete-at": "5000000005"}),
        "RESERVED": ("GET", {"if-match": "*"}),
    }
    verb, headers = ways.get(method, (method, {}))
    body = b"x" if verb == "PUT" else b""
    assert app.handle(Request(verb, PATH, {**stamp, **headers}, body)).status == 503
    assert len(os.listdir(tmp_path / "sda/quarantined/objects")) == 1
    assert simple(app, "HEAD", 10) == 404


def test_a_delete_that_puts_an_object_away_deletes_it(app, tmp_path):
    assert put(app, 1, SMALL) == 201
    damage(tmp_path)
    assert simple(app, "DELETE", 2) == 204
    assert object_files(tmp_path) == ["5000000002.00000.ts"]
    assert simple(app, "DELETE", 3) == 404
