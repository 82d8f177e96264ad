"""Fixtures shared by the functional and probe tests."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from test.support.cluster import LiveCluster
from test.support.tmpfs import memory_folder, remove

# How long an example takes says more about the machine than about the code.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Every run tries the same examples; ``--hypothesis-profile explore`` looks for others.
settings.register_profile("repeatable", UNTIMED, derandomize=True)
settings.register_profile("explore", UNTIMED, derandomize=False)
settings.load_profile("repeatable")


#: Folders in which nearly all tests run commands.
COMMANDS = (
    *("unit/aio", "unit/cli", "unit/load", "unit/operations", "unit/plan", "unit/runtime/service"),
    "unit/tools",
)
#: Files with tests that take minutes together, and wait for processes most of the time.
LONG = (
    *("test_handbook.py", "test_restarts.py", "test_sharding.py", "test_splitting.py", "test_hosts.py"),
    *("test_load.py", "test_collapse.py"),
)
#: What Python tells before it starts a process.
PROCESS_EVENTS = frozenset(("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"))
_started = []
_FOLDER = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """A SIGTERM ends the run as Ctrl-C does: fixtures end the clusters that they started.

    Temporary folders are in memory if that is possible, unless ``SWIFT_TEST_TMP=disk``.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not config.option.basetemp and not hasattr(config, "workerinput"):
        config.stash[_FOLDER] = folder = memory_folder()
        config.option.basetemp = folder and str(folder / "t")
    if os.environ.get("SWIFT_TEST_QUICK"):
        sys.addaudithook(lambda event, _details: event in PROCESS_EVENTS and _started.append(event))


def pytest_sessionfinish(session, exitstatus):
    """Leave the folders of failed tests until the next run."""
    folder = session.config.stash.get(_FOLDER, None)
    if folder is not None and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        remove(folder)


def pytest_collection_modifyitems(items):
    """Mark the tests of commands, which ``bin/test quick`` leaves out; order all for workers."""
    folders = tuple(Path(__file__).parent / folder for folder in COMMANDS)
    for item in items:
        if any(folder in item.path.parents for folder in folders):
            item.add_marker(pytest.mark.process)
    items[:] = ordered_for_workers(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def ordered_for_workers(items, workers):
    """Return tests so that each worker begins with its share of the long ones, and none is left for the end.

    ``--dist=worksteal`` gives each worker one contiguous part at first.
    """
    long = [item for item in items if item.path.name in LONG]
    rest = [item for item in items if item.path.name not in LONG]
    ordered, left = [], len(items)
    for worker in range(workers):
        size = left // (workers - worker)
        first = long[worker::workers]
        ordered += first + rest[: size - len(first)]
        del rest[: max(0, size - len(first))]
        left -= size
    return ordered + rest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test of ``bin/test quick`` that starts a process."""
    _started.clear()
    result = yield
    if _started and item.get_closest_marker("process") is None:
        pytest.fail("it starts a process: mark it with @pytest.mark.process", pytrace=False)
    return result


@pytest.fixture
def tmp_path(request, tmp_path):
    """The folder of the test; of one with the mark ``disk`` it is where ``tempfile`` has its folders."""
    if request.node.get_closest_marker("disk") is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A live cluster that no test of the session damages."""
    live = LiveCluster(tmp_path_factory.mktemp("cluster") / "data", ec="2+1", rest_s=LiveCluster.AT_REST_S)
    live.start()
    yield live
    live.stop()


@pytest.fixture()
def own_cluster(tmp_path):
    """A live cluster that the test may damage."""
    live = LiveCluster(tmp_path / "data")
    live.start()
    yield live
    live.stop()


@pytest.fixture(scope="session")
def swift_client():
    """Runs the ``swift`` command line client; returns the finished process."""

    def run(cluster, *args, check=True, cwd=None):
        auth = ["-A", cluster.plan.auth_url, "-U", cluster.plan.user, "-K", cluster.plan.key]
        command = [sys.executable, "-m", "swiftclient.shell", *auth, *args]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=600, check=False)
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done

    return run
