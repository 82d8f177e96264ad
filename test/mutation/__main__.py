"""Draw changes, make each in a copy of the tree, and print those that no test notices."""

import argparse
import concurrent.futures
import json
import queue
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from test.mutation.mutants import sample
from test.mutation.reach import Reach, record

PACKAGES = ("swift/store", "swift/db", "swift/platform", "swift/cluster", "swift/proxy/obj", "swift/wire")
ROOT = Path(__file__).parents[2]
#: Tests are given up after so many times what they took when they were recorded, and not before a time that
#: starting servers needs: a change that makes them hang was noticed.
PATIENCE = 5
SECONDS_MIN = 900


def main():
    """Parse the command line and work."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="folders (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=10**9, help="how many changes to draw (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="copies that are tested at once")
    parser.add_argument("--minutes", type=float, default=10**6, help="begin no change after so long")
    parser.add_argument(
        "--reach", type=Path, help="folder that keeps which tests execute what, for further runs"
    )
    parser.add_argument("--quick", action="store_true", help="without the functional tests")
    parser.add_argument("--report", type=Path, help="JSON lines of every verdict")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        kept = options.reach or Path(folder)
        if not (kept / "reach.xml").exists():
            kept.mkdir(parents=True, exist_ok=True)
            record(ROOT, kept)
        mutants, places = sample(ROOT, options.packages, options.sample, options.seed)
        print(f"{len(mutants)} changes at {places} places, seed {options.seed}", flush=True)
        verdicts = work(mutants, Reach(kept), Path(folder), options)
    survivors = verdicts.count("survived")
    print(f"{len(verdicts) - survivors} of {len(verdicts)} noticed, {survivors} survived")


def work(mutants, reach, folder, options):
    """The verdict of each change, in the order of their ends."""
    copies = queue.SimpleQueue()
    for number in range(options.workers):
        copies.put(copy_tree(folder / str(number)))
    deadline = time.monotonic() + options.minutes * 60

    def judged(mutant):
        if time.monotonic() > deadline:
            return None
        copy = copies.get()
        try:
            tests = reach.tests(mutant.path, mutant.line)
            seconds = max(SECONDS_MIN, PATIENCE * sum(map(reach.seconds, tests)))
            return judge(mutant, copy, tests, seconds, quick=options.quick)
        finally:
            copies.put(copy)

    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        futures = {pool.submit(judged, mutant): mutant for mutant in mutants}
        for future in concurrent.futures.as_completed(futures):
            mutant, verdict = futures[future], future.result()
            if verdict is None:
                continue
            verdicts.append(verdict)
            if verdict == "survived":
                print(mutant.picture(), flush=True)
            if options.report:
                with options.report.open("a") as report:
                    report.write(json.dumps({"verdict": verdict, "picture": mutant.picture()}) + "\n")
    return verdicts


def copy_tree(target):
    """A copy of what git knows of this checkout, changes included."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    target.mkdir(parents=True)
    subprocess.run(
        ["tar", "--create", "--null", "--files-from=-", "--file", str(target.with_suffix(".tar"))],
        cwd=ROOT, input=names, check=True,
    )  # fmt: skip
    subprocess.run(["tar", "--extract", "--file", str(target.with_suffix(".tar"))], cwd=target, check=True)
    return target


def judge(mutant, copy, tests, seconds, *, quick):
    """``noticed``, ``noticed by servers`` or ``survived``."""
    file = copy / mutant.path
    file.write_text(mutant.text)
    try:
        if tests and not passes(copy, tests, seconds):
            return "noticed"
        if not quick and not passes(copy, ["test/functional"], seconds):
            return "noticed by servers"
        return "survived"
    finally:
        file.write_text(mutant.before)


def passes(copy, tests, seconds):
    """Whether the tests pass within so many seconds; what hangs does not."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--timeout=100", *tests]
    done = subprocess.Popen(
        command, cwd=copy, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return done.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        done.send_signal(signal.SIGINT)
        try:
            done.wait(30)
        except subprocess.TimeoutExpired:
            done.kill()
            done.wait()
        return False


if __name__ == "__main__":
    main()
