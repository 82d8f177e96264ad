"""A server that takes connections and answers nobody, as one that hangs (cluster/health.py)."""

import concurrent.futures
import os
import signal
import time

import pytest

from swift.cli.aio.make import make_cluster
from swift.cluster.health import SILENCE_S
from test.support.cluster import LiveCluster

LARGE = os.urandom(256 << 10)
#: Longer than the test takes, on whatever machine.
NODE_TIMEOUT_S = 120


@pytest.fixture
def cluster(tmp_path):
    """One whose proxy, a single process, waits long for nodes."""
    live = LiveCluster(tmp_path / "data", proxy_workers=0)
    make_cluster(live.plan)
    conf = live.plan.etc / "proxy-server.conf"
    mark = "use = egg:swift#proxy\n"
    conf.write_text(conf.read_text().replace(mark, f"{mark}node_timeout = {NODE_TIMEOUT_S}\n"))
    live.start()
    yield live
    live.stop()


def test_uploads_pass_a_silent_node_by_before_the_first_of_them_has_timed_out(cluster):
    assert cluster.request("PUT", "c").status == 201
    cluster.token()
    stopped = cluster.pid("object-1")
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        os.kill(stopped, signal.SIGSTOP)
        try:
            early = [pool.submit(cluster.request, "PUT", f"c/early{i}", None, LARGE) for i in range(8)]
            time.sleep(SILENCE_S + 0.5)
            late = [pool.submit(cluster.request, "PUT", f"c/late{i}", None, LARGE) for i in range(12)]
            # Those that were its probes wait like the early ones.
            for done in concurrent.futures.as_completed(late, timeout=60):
                assert done.result().status == 201
                if sum(upload.done() for upload in late) >= 8:
                    break
            assert not all(upload.done() for upload in early), "nobody waits any more: this proves nothing"
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert {upload.result().status for upload in [*early, *late]} == {201}
    for kind, count in (("early", 8), ("late", 12)):
        for i in range(count):
            assert cluster.request("GET", f"c/{kind}{i}").body == LARGE
