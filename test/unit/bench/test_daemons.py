"""What daemons cost, counted and told; a client of the mix goes on whatever its cluster does."""

import time
from types import SimpleNamespace

from swift.bench.daemons import MixedClient, answers_per_second, cpu_of, table
from test.support.processes import free_ports

NAMES = {"idle": 1.25, "alone": [100.0, 300.0, 200.0], "beside": [150.0]}


def client(number=1):
    return MixedClient(SimpleNamespace(host="127.0.0.1:1", token="t"), number, time.monotonic())


def test_the_table_is_of_medians():
    assert table({"ours": NAMES}).splitlines()[2] == "| ours | 1.2 | 200 | 150 | 25 % |"


def test_a_cluster_that_answered_nothing_has_no_share():
    assert (
        table({"theirs": {**NAMES, "alone": [0.0], "beside": [0.0]}})
        .splitlines()[2]
        .endswith("| 0 | 0 | - |")
    )


def test_cpu_is_of_all_processes():
    usage = {"proxy": (1.5, 10), "object": (2.0, 20)}
    assert cpu_of(SimpleNamespace(usage=lambda: usage)) == 3.5


def test_a_client_reads_and_deletes_only_what_it_has_written():
    mix, alive, seen = client(), set(), set()
    for _ in range(3000):
        method, path, body = mix._next()
        seen.add(method)
        is_listing = path.count("/") == 1
        if method == "PUT":
            assert body
            alive.add(path)
        elif method == "DELETE":
            alive.remove(path)
        else:
            assert is_listing or path in alive
    assert seen == {"PUT", "GET", "HEAD", "DELETE"}


def test_a_client_sends_the_same_at_every_run_and_others_something_else():
    runs = []
    for number in (1, 1, 2):
        mix = client(number)
        runs.append([mix._next() for _ in range(20)])
    assert runs[0] == runs[1] != runs[2]


def test_a_cluster_that_is_not_there_answers_nothing_and_ends_no_client():
    away = SimpleNamespace(host=f"127.0.0.1:{free_ports(1)[0]}", token="t")
    assert answers_per_second(away, 0.05) == 0
