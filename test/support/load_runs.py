"""Synthetic results of load runs and of failures under load."""

import random

from swift.load.failures.copies import MissingReplicas
from swift.load.failures.scenario import PhaseDurations, measure_windows
from swift.load.measure import OperationResult, PhaseResult
from swift.load.runs import LoadRun, PhaseRun
from swift.load.savedruns import parse_saved_run
from swift.load.summary import to_json as run_json
from swift.load.workload import parse

# --- loadruns ---------------------------------------------------------------------------------------

# Runs of a load as they might have been measured, drawn by chance from a seed.


WORKLOAD = parse('name = "<w>"\n[[phase]]\nkind = "main"\nseconds = 20\nmix = {get = 1}\n', "w")


def run_of(seed, rate=100, latency_s=0.01, seconds=20):
    chance, result = random.Random(seed), PhaseResult()
    result.seconds = seconds + 0.4
    for second in range(seconds):
        for _ in range(int(chance.gauss(rate, rate / 20))):
            result.of("get").add(second, latency_s * chance.lognormvariate(0, 0.3), 1000, None)
    result.of("get").add(0, 0, 0, "503")
    return LoadRun(WORKLOAD, [PhaseRun(WORKLOAD.phases[0], result)])


def saved_of(*args, **options):
    return parse_saved_run(run_json(run_of(*args, **options), None))


# --- trials -----------------------------------------------------------------------------------------

# A failure under load as it might have been measured.


def with_result(trial):
    """Return the trial with a result: ten seconds of each period."""
    one = OperationResult()
    for second in range(30):
        for _ in range(5 if 10 <= second < 20 else 10):
            one.add(second + 0.5, 0.010, 1000, None)
        if 10 <= second < 20:
            one.add(second + 0.5, 0.5, 0, "503")
    trial.result.operations["put"] = one
    trial.began_s, trial.repaired_s = 10.0, 20.0
    trial.whole_s, trial.lacked = 12.0, MissingReplicas(7, 4, 100)
    trial.windows = measure_windows(trial, PhaseDurations(10, 10, 10, 60))
    return trial
