"""Fixtures shared by the functional and probe tests."""

import signal
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings

from test.support.cluster import LiveCluster

# How long an example takes says more about the machine than about the code.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Every run tries the same examples; ``--hypothesis-profile explore`` looks for others.
settings.register_profile("repeatable", UNTIMED, derandomize=True)
settings.register_profile("explore", UNTIMED, derandomize=False)
settings.load_profile("repeatable")


def pytest_configure():
    """A SIGTERM ends the run as Ctrl-C does: fixtures end the clusters that they started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


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
