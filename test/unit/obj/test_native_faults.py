"""Every system call of the extension fails once, or the process is killed at it: as ``test_faults`` says."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from functools import partial
from types import SimpleNamespace

import pytest

from swift.base.clock import ManualClock
from swift.base.hashing import PathHasher
from swift.config.kinds import Reserve
from swift.http.request import Request
from swift.obj.server import ObjectServer
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.platform.nativedisk import NativeDisk
from swift.runtime.backendapp import BackendContext
from swift.store.registry import EngineParts, StoreRegistry
from test.support.native import faulty_native
from test.unit.obj.test_faults import PATH, descriptors, get, object_files, put, simple

CODES = [errno.EIO, errno.ENOSPC, errno.EMFILE]
#: A fault of one call, of all calls from it on, and of one while writes take a byte at a time.
KINDS = {"once": (False, 0), "lasting": (True, 0), "short": (False, 1)}
OLD, NEW = b"old body", b"new body"


def make_app(root):
    (root / "sda").mkdir(exist_ok=True)
    context = BackendContext(
        devices=Devices(str(root), mount_check=False),
        hasher=PathHasher(b"p"),
        clock=ManualClock(4_000_000_000.0),
    )
    parts = EngineParts(
        devices=context.devices,
        hasher=context.hasher,
        clock=context.clock,
        disk=NativeDisk(faulty_native()),
        reserve=Reserve(0, is_percent=False),
    )
    return ObjectServer(context, ObjectSettings(), StoreRegistry(parts))


@pytest.fixture
def app(tmp_path):
    return make_app(tmp_path)


def sweep(code, kind, work):
    """Yield what ``work`` returns with a fault at the first call, at the second, until there is none."""
    number = made = 0
    while made >= number:
        faulty_native().fault(number, code, *KINDS[kind])
        result = work()
        made = faulty_native().fault(-1, 0, False, 0)
        yield SimpleNamespace(number=number, result=result, is_last=made <= number)
        number += 1
    assert number > 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_a_put_is_acknowledged_only_if_it_is_stored(app, tmp_path, code, kind):
    open_before = descriptors()
    for step in sweep(code, kind, lambda: put(app, 1, NEW)):
        status, found = step.result, get(app)
        assert status in (201, 503, 507), step
        assert found == (200, NEW) if status == 201 else found[0] == 404, step
        assert len(object_files(tmp_path)) == (status == 201), step
        assert descriptors() <= open_before + 4, step
        assert not step.is_last or status == 201
        shutil.rmtree(tmp_path / "sda/objects", ignore_errors=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_an_overwrite_keeps_the_old_body_or_has_the_new_one(app, code, kind):
    second, current = 1, OLD
    assert put(app, second, current) == 201

    def overwrite():
        nonlocal second
        second += 1
        return put(app, second, b"body %d" % second)

    for step in sweep(code, kind, overwrite):
        if step.result == 201:
            current = b"body %d" % second
        assert get(app) == (200, current), step


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_post_or_delete_that_fails_did_not_happen(app, method, code, kind):
    second = 1

    def change():
        return simple(app, method, second + 1, **{"x-object-meta-a": "b"})

    assert put(app, second, OLD) == 201
    for step in sweep(code, kind, change):
        response = app.handle(Request("HEAD", PATH))
        if step.result in (202, 204):
            assert response.status == 404 if method == "DELETE" else "x-object-meta-a" in response.headers
        else:
            assert step.result in (503, 507), step
            assert response.status == 200, step
            assert "x-object-meta-a" not in response.headers
        second += 10
        assert put(app, second, OLD) == 201


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("code", [*CODES, errno.ENODATA, errno.EUCLEAN], ids=errno.errorcode.get)
def test_a_read_finds_the_object_by_the_long_way(app, tmp_path, code, method, kind):
    assert put(app, 1, OLD) == 201
    open_before = descriptors()
    for step in sweep(code, kind, lambda: app.handle(Request(method, PATH))):
        assert step.result.status == 200, step
        assert step.result.read_body() == (OLD if method == "GET" else b""), step
        assert descriptors() <= open_before + 4, step
    assert not (tmp_path / "sda/quarantined").exists()


def killed_at(number, work):
    """Return True if a process that does ``work`` was killed at this call of the extension."""
    child = os.fork()
    if not child:
        status = 1
        try:
            faulty_native().fault(number, 0, False, 0)
            status = 0 if work() in (201, 204) else 1
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.process
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_kill_leaves_the_object_before_the_change_or_after_it(tmp_path, method):
    number, second, states = 0, 1, set()
    app = make_app(tmp_path)
    while True:
        assert put(app, second, OLD) == 201
        second += 1
        change = partial(put, app, second, NEW) if method == "PUT" else partial(simple, app, method, second)
        is_killed = killed_at(number, change)
        # Another process, which remembers nothing.
        app = make_app(tmp_path)
        status, body = get(app)
        found = body if status == 200 else status
        assert found in (OLD, NEW if method == "PUT" else 404), number
        states.add(found)
        assert not [name for name in object_files(tmp_path) if not name.endswith((".data", ".ts"))]
        second += 1
        if not is_killed:
            break
        number += 1
    assert len(states) == 2
    assert found != OLD
    assert number > 10
