"""Seed one-line faults into swift/, and report which of them a selection of tests notices.

    python -m tools.seeded_faults --count 20 --seed 1 --in swift/middleware/slo -- test/unit/middleware/slo

Each fault is made in a copy of the tree: a condition is negated, a comparison or a number is off by one, two
arguments are swapped, or a statement is left out. The same seed gives the same faults in the same sources, so
that two states of the tests can be compared (``--tree`` names the root of another checkout).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What is copied of a tree.
COPIED = (
    *("swift", "test", "tools", "etc", "doc", "bin", ".ci", "setup.py", "pyproject.toml", "tox.ini"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "SECURITY.md"),
    *("requirements.txt", "requirements-test.txt"),
)
#: Operators that are off by one, or off by the case of equality.
OFF_BY_ONE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
OFF_BY_ONE |= {ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}


@dataclass(frozen=True)
class Fault:
    """A line of a module, and its faulty replacement."""

    path: str
    line: int
    kind: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}\n  - {self.before.strip()}\n  + {self.after.strip()}"

    def seeded(self, text: str) -> str:
        """Return the module's text with the fault."""
        lines = text.split("\n")
        lines[self.line - 1] = self.after
        return "\n".join(lines)


def faults_of(text: str, path: str) -> list[Fault]:
    """Return every fault that can be seeded into a module, each of which still compiles."""
    lines = text.split("\n")
    found = []
    for node, kind, start, end, new in _changes(ast.parse(text), lines):
        line = lines[node.lineno - 1]
        before, after = _sliced(line, start, end)
        changed = before + new + after
        fault = Fault(path, node.lineno, kind, line, changed)
        if changed != line and _compiles(fault.seeded(text)):
            found.append(fault)
    return found


#: A node, the kind of fault, its first byte in the line, the byte behind its last, and the new text.
Change = tuple[ast.expr | ast.stmt, str, int, int, str]


def _changes(tree: ast.Module, lines: Sequence[str]) -> Iterator[Change]:
    silent = _without_effect(tree)
    for node in ast.walk(tree):
        if node in silent or not isinstance(node, (ast.expr, ast.stmt)):
            continue
        if isinstance(node, (ast.If, ast.IfExp, ast.While)) and _is_short(node.test):
            test = node.test
            assert test.end_col_offset is not None
            text = _text(lines, test)
            yield test, "negated condition", test.col_offset, test.end_col_offset, f"(not ({text}))"
        if node.lineno != node.end_lineno:
            continue
        assert node.end_col_offset is not None
        start, end = node.col_offset, node.end_col_offset
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and _is_short(node):
            left, right = _text(lines, node.left), _text(lines, node.comparators[0])
            yield node, "comparison", start, end, f"{left} {OFF_BY_ONE[type(node.ops[0])]} {right}"
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, "off by one", start, end, str(node.value + 1)
        if isinstance(node, ast.Call) and len(node.args) >= 2 and not _has_star(node):
            first, second = node.args[:2]
            assert second.end_col_offset is not None
            swapped = f"{_text(lines, second)}, {_text(lines, first)}"
            yield node, "swapped arguments", first.col_offset, second.end_col_offset, swapped
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and not _is_text(node):
            yield node, "dropped line", start, end, "pass"


def _without_effect(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes that only annotations and assertions have."""
    silent: set[ast.AST] = set()
    for node in ast.walk(tree):
        roots: list[ast.AST | None] = [node] if isinstance(node, ast.Assert) else []
        roots += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for root in roots:
            silent.update(ast.walk(root) if root is not None else ())
    return silent


def _is_short(node: ast.expr) -> bool:
    return node.lineno == node.end_lineno


def _has_star(node: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in node.args[:2])


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(lines: Sequence[str], node: ast.expr) -> str:
    assert node.end_col_offset is not None
    return lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()


def _sliced(line: str, start: int, end: int) -> tuple[str, str]:
    data = line.encode()
    return data[:start].decode(), data[end:].decode()


def _compiles(text: str) -> bool:
    try:
        compile(text, "fault", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def draw(tree: Path, parts: Sequence[str], count: int, seed: int) -> list[Fault]:
    """Return ``count`` faults at different lines of the modules below ``parts``."""
    by_line: dict[tuple[str, int], list[Fault]] = {}
    for path in sorted(path for part in parts for path in _modules(tree / part)):
        for fault in faults_of(path.read_text(), str(path.relative_to(tree))):
            by_line.setdefault((fault.path, fault.line), []).append(fault)
    dice = random.Random(seed)
    return [dice.choice(by_line[place]) for place in dice.sample(sorted(by_line), min(count, len(by_line)))]


def _modules(part: Path) -> list[Path]:
    return [part] if part.is_file() else list(part.rglob("*.py"))


def copy_of(tree: Path, target: Path) -> Path:
    """Return a copy of what tests need of a tree."""
    target.mkdir(parents=True)
    for name in COPIED:
        source = tree / name
        if source.is_dir():
            shutil.copytree(source, target / name, symlinks=True)
        elif source.exists():
            shutil.copy2(source, target / name)
    return target


def is_noticed(fault: Fault, copy: Path, tests: Sequence[str], timeout_s: float) -> bool:
    """Return True if the tests fail, or hang, with the fault."""
    file = copy / fault.path
    before = file.read_text()
    file.write_text(fault.seeded(before))
    try:
        return not passes(copy, tests, timeout_s)
    finally:
        file.write_text(before)


def passes(copy: Path, tests: Sequence[str], timeout_s: float) -> bool:
    """Return True if the tests pass in a copy of the tree."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    # Changed modules keep their size and second: compiled ones are not believed.
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPYCACHEPREFIX", None)
    running = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return running.wait(timeout_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        _end(running)


def _end(running: subprocess.Popen[bytes]) -> None:
    """Kill the remaining processes of a run, and their children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(running.pid, number)
        except ProcessLookupError:
            return
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            continue


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="seeded_faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", default=["test/unit", "test/contract"], help="of pytest")
    parser.add_argument("--count", type=int, default=100, help="faults to seed (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    parser.add_argument("--in", dest="parts", action="append", help="folder or module (default: swift)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="root of a checkout (default: this)")
    parser.add_argument("--workers", type=int, default=1, help="faults that are tried at once")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds until tests count as hanging")
    parser.add_argument("--report", type=Path, help="file for a JSON line per fault")
    parser.add_argument("--list", action="store_true", help="only print the faults")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Seed the faults; return 0 when the tests passed without any."""
    options = make_parser().parse_args(arguments)
    faults = draw(options.tree, options.parts or ["swift"], options.count, options.seed)
    if options.list:
        print("\n".join(map(str, faults)))
        return 0
    with tempfile.TemporaryDirectory(prefix="seeded-faults-") as folder:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(options.workers):
            copies.put(copy_of(options.tree, Path(folder) / str(number)))
        first = copies.get()
        if not passes(first, options.tests, options.timeout):
            print("the tests fail without any fault", file=sys.stderr)
            return 1
        copies.put(first)

        def tried(fault: Fault) -> bool:
            copy, started_s = copies.get(), time.monotonic()
            try:
                noticed = is_noticed(fault, copy, options.tests, options.timeout)
            finally:
                copies.put(copy)
            _tell(fault, noticed, time.monotonic() - started_s, options.report)
            return noticed

        with ThreadPoolExecutor(options.workers) as pool:
            noticed = sum(pool.map(tried, faults))
    print(f"{noticed} of {len(faults)} faults noticed, seed {options.seed}")
    return 0


def _tell(fault: Fault, noticed: bool, seconds: float, report: Path | None) -> None:
    if not noticed:
        print(f"not noticed: {fault}", flush=True)
    if report is not None:
        with report.open("a") as file:
            file.write(json.dumps({**asdict(fault), "noticed": noticed, "seconds": round(seconds, 1)}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
