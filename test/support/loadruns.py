"""Runs of a load as they might have been measured, drawn by chance from a seed."""

import random

from swift.load.measure import PhaseResult
from swift.load.runs import LoadRun, Ran
from swift.load.saved import of_json
from swift.load.summary import to_json as run_json
from swift.load.workload import parse

WORKLOAD = parse('name = "<w>"\n[[phase]]\nkind = "main"\nseconds = 20\nmix = {get = 1}\n', "w")


def run_of(seed, rate=100, latency_s=0.01, seconds=20):
    chance, result = random.Random(seed), PhaseResult()
    result.seconds = seconds + 0.4
    for second in range(seconds):
        for _ in range(int(chance.gauss(rate, rate / 20))):
            result.of("get").add(second, latency_s * chance.lognormvariate(0, 0.3), 1000, None)
    result.of("get").add(0, 0, 0, "503")
    return LoadRun(WORKLOAD, [Ran(WORKLOAD.phases[0], result)])


def saved_of(*args, **options):
    return of_json(run_json(run_of(*args, **options), None))
