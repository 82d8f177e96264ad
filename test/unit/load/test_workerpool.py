"""Processes that make load: what they measure comes back, and they end when they are told to."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from swift.load.endpoint import LoadEndpoint
from swift.load.share import LoadJob
from swift.load.workerpool import WorkerPool, WorkerPoolFailed
from swift.load.workload import parse

TEXT = """
[objects]
containers = 1
per_container = 1
[[phase]]
kind = "main"
clients = 2
seconds = 100
mix = {head = 1}
"""


class Store(BaseHTTPRequestHandler):
    """Says yes to everything."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        pass


@pytest.fixture
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield LoadEndpoint(f"http://127.0.0.1:{server.server_port}/v1/a", "token")
    server.shutdown()
    thread.join()
    server.server_close()


def jobs_of(endpoint, text, shares=2):
    return [
        LoadJob(parse(text, "w"), text, {}, 0, share, shares, endpoint, "load-x") for share in range(shares)
    ]


@pytest.fixture
def crew():
    made = WorkerPool(2)
    yield made
    made.close()
    assert all(child.returncode is not None for child in made._children)


def test_all_shares_together_do_what_was_asked_for(crew, endpoint):
    text = TEXT.replace("seconds = 100", "operations = 31")
    assert crew.run(jobs_of(endpoint, text), lambda _summaries: None).count == 31
    assert crew.run(jobs_of(endpoint, text), lambda _summaries: None).load_cpu_s > 0


def test_a_phase_that_is_ended_gives_what_it_had(crew, endpoint):
    def end_when_both_did_something(summaries):
        if len(summaries) == 2:
            crew.end_phase()

    result = crew.run(jobs_of(endpoint, TEXT), end_when_both_did_something)
    assert result.count > 0 and result.seconds < 60


def test_a_phase_can_be_ended_before_the_processes_listen(endpoint):
    crew = WorkerPool(1)
    try:
        # Its first word may come long before the process is ready.
        result = crew.run(jobs_of(endpoint, TEXT, 1), lambda _summaries: crew.end_phase())
        assert result.seconds < 60
    finally:
        crew.close()


def test_a_job_that_cannot_be_run_is_a_failure(crew, endpoint):
    job = jobs_of(endpoint, TEXT)[0]
    bad = LoadJob(job.workload, "[[phase]]", {}, 0, 0, 2, endpoint, "x")
    with pytest.raises(WorkerPoolFailed, match="workload:1"):
        crew.run([bad, bad], lambda _summaries: None)


def test_what_is_said_late_of_a_job_that_failed_is_not_taken_for_the_next(crew, endpoint):
    job = jobs_of(endpoint, TEXT)[0]
    bad = LoadJob(job.workload, "[[phase]]", {}, 0, 0, 2, endpoint, "x")
    text = TEXT.replace("seconds = 100", "operations = 31")
    for _ in range(3):
        with pytest.raises(WorkerPoolFailed, match="workload:1"):
            crew.run([bad, bad], lambda _summaries: None)
        assert crew.run(jobs_of(endpoint, text), lambda _summaries: None).count == 31


def test_a_process_that_is_gone_is_a_failure(crew, endpoint):
    for child in crew._children:
        child.kill()
    with pytest.raises(WorkerPoolFailed, match="has ended"):
        crew.run(jobs_of(endpoint, TEXT), lambda _summaries: None)


@pytest.mark.long
def test_workers_of_a_scheduler_run_the_same_jobs(endpoint):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    from swift.load.distributed import DistributedWorkers

    text = TEXT.replace("seconds = 100", "operations = 20")
    local = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
        protocol="tcp://",
    )
    with local:
        elsewhere = DistributedWorkers(local.scheduler_address)
        try:
            assert len(elsewhere) == 2
            assert elsewhere.run(jobs_of(endpoint, text), lambda _summaries: None).count == 20
            received = []

            def end(summaries):
                received.append(summaries)
                if summaries:
                    elsewhere.end_phase()

            assert elsewhere.run(jobs_of(endpoint, TEXT), end).seconds < 60
            assert received[-1]
        finally:
            elsewhere.close()
