"""A worker process: jobs in, results out, one line of JSON each."""

import json
import signal
import subprocess
import sys

import pytest

from swift.bench.load.endpoint import LoadEndpoint
from swift.bench.load.measure import PhaseResult
from swift.bench.load.share import LoadJob
from swift.bench.load.worker import summary
from swift.bench.load.workload import parse
from test.support.processes import free_ports

TEXT = """
[objects]
containers = 1
per_container = 1
[[phase]]
kind = "main"
clients = 1
operations = 2
mix = {get = 1}
"""


def job(text=TEXT):
    (port,) = free_ports(1)
    endpoint = LoadEndpoint(f"http://127.0.0.1:{port}/v1/a", "t")
    found = LoadJob(parse(TEXT, "w"), TEXT, {}, 0, 0, 1, endpoint, "load-x").to_json()
    return {"run": 4, "job": {**found, "text": text}}


@pytest.fixture
def worker():
    child = subprocess.Popen(
        [sys.executable, "-m", "swift.bench.load.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        yield child
        if child.poll() is None:
            child.kill()


def said(worker):
    return json.loads(worker.stdout.readline())


def test_it_says_its_pid_and_ends_with_its_input(worker):
    assert said(worker) == {"ready": worker.pid}
    out, err = worker.communicate("", timeout=60)
    assert (worker.returncode, out, err) == (0, "", "")


def test_a_job_that_cannot_be_done_is_told_and_the_next_is_taken(worker):
    said(worker)
    lines = [json.dumps(job("name = 7\n[[phase]]\nkind = 'none'\n")), json.dumps(job())]
    out, _err = worker.communicate("".join(f"{line}\n" for line in lines), timeout=60)
    every = [json.loads(line) for line in out.splitlines()]
    assert "failed" in every[0] and "done" in every[-1] and worker.returncode == 0
    assert all(each["run"] == 4 for each in every)
    done = PhaseResult.from_json(json.loads(out.splitlines()[-1])["done"])
    assert done.of("get").failed == 2 and done.count == 0


def test_an_interrupt_of_the_terminal_is_not_for_it(worker):
    said(worker)
    worker.send_signal(signal.SIGINT)
    worker.communicate("", timeout=60)
    assert worker.returncode == 0


def test_one_to_whom_nobody_listens_ends(worker):
    said(worker)
    worker.stdout.close()
    worker.stdin.write(json.dumps(job()) + "\n")
    worker.stdin.flush()
    assert worker.wait(60) == 1


def test_a_summary_has_a_row_for_each_operation():
    result = PhaseResult()
    result.of("get").add(0, 0.01, 5, None)
    result.of("put").add(0, 0.01, 5, "503")
    found = summary(result)
    assert found["get"][:3] == [1, 5, 0] and 9 < found["get"][3] <= found["get"][4] < 11
    assert found["put"][:3] == [0, 0, 1]
