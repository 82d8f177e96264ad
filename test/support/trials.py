"""A failure under load as it might have been measured."""

from swift.load.failures.copies import Lack
from swift.load.failures.scenario import Times, windows_of
from swift.load.measure import OperationResult


def with_result(trial):
    """The trial with what came of it: ten seconds of each time."""
    one = OperationResult()
    for second in range(30):
        for _ in range(5 if 10 <= second < 20 else 10):
            one.add(second + 0.5, 0.010, 1000, None)
        if 10 <= second < 20:
            one.add(second + 0.5, 0.5, 0, "503")
    trial.result.operations["put"] = one
    trial.began_s, trial.repaired_s = 10.0, 20.0
    trial.whole_s, trial.lacked = 12.0, Lack(7, 4, 100)
    trial.windows = windows_of(trial, Times(10, 10, 10, 60))
    return trial
