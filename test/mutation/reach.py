"""Which tests execute a line, and how long each takes: from one run of the quick suites under coverage."""

import os
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

from coverage.numbits import numbits_to_nums

#: Suites that run in the process of pytest; others start servers, which coverage does not follow.
SUITES = ("test/unit", "test/contract", "test/sim", "test/golden")


def record(root, folder):
    """Leave ``reach.sqlite`` and ``reach.xml`` in ``folder``; raises when a test fails."""
    options = ["--cov=swift", "--cov-context=test", "--cov-report=", f"--junitxml={folder}/reach.xml"]
    environment = {**os.environ, "COVERAGE_FILE": f"{folder}/reach.sqlite"}
    subprocess.run([sys.executable, "-m", "pytest", *SUITES, *options], cwd=root, env=environment, check=True)


class Reach:
    """Looks up what ``record`` left."""

    def __init__(self, folder):
        self._seconds = _durations(Path(folder) / "reach.xml")
        self._lines = defaultdict(lambda: defaultdict(set))
        with sqlite3.connect(f"{folder}/reach.sqlite") as database:
            rows = database.execute(
                "SELECT file.path, context.context, numbits FROM line_bits"
                " JOIN file ON file.id = file_id JOIN context ON context.id = context_id"
            )
            for path, context, numbits in rows:
                module = "swift/" + path.rpartition("/swift/")[2]
                for line in numbits_to_nums(numbits):
                    self._lines[module][line].add(_test_of(context))

    def tests(self, path, line):
        """Tests (``file::name``) that execute the line, quickest first.

        A line that only imports execute (a constant) is tested by all that use its module.
        """
        lines = self._lines[path]
        found = lines[line] - {""}
        if not found:
            found = set().union(*lines.values()) - {""} if "" in lines[line] or line not in lines else set()
        return sorted(found, key=lambda test: (self.seconds(test), test))

    def seconds(self, test):
        """How long all cases of a test took together."""
        return self._seconds.get(test, 0.0)


def _test_of(context):
    """``file::name[case]|run`` → ``file::name``."""
    return context.partition("|")[0].partition("[")[0]


def _durations(path):
    seconds = defaultdict(float)
    for case in ElementTree.parse(path).iter("testcase"):
        words = case.get("classname").split(".")
        classes = [word for word in words if word[:1].isupper()]
        file = "/".join(words[: len(words) - len(classes)]) + ".py"
        seconds["::".join([file, *classes, case.get("name").partition("[")[0]])] += float(case.get("time"))
    return seconds
