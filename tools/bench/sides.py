"""Both sides of a comparison: measured in turn in one run, printed as a table, written as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from swift.aio.xfs import exit_on_sigterm
from swift.base.errors import SwiftError
from tools.bench.compare import say
from tools.bench.contestants import Contestant, install_peer
from tools.bench.emulated import working_folder
from tools.bench.wrk import check_wrk

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Figure = TypeVar("Figure", bound="DataclassInstance")


class TableRow(NamedTuple):
    """One line of the table."""

    what: str
    unit: str
    ours: float
    theirs: float
    goal: str

    def __str__(self) -> str:
        ratio = self.ours / self.theirs if self.theirs else float("inf")
        cells = (
            self.what,
            self.unit,
            f"{self.ours:.2f}",
            f"{self.theirs:.2f}",
            f"**{ratio:.2f}x**",
            self.goal,
        )
        return f"| {' | '.join(cells)} |"


def medians(
    contestants: Sequence[Contestant], rounds: int, measure: Callable[[Contestant], float]
) -> list[float]:
    """Return the median of each contestant, measured in turn."""
    found: list[list[float]] = [[] for _ in contestants]
    for number in range(rounds):
        order = list(enumerate(contestants))
        for place, contestant in order if number % 2 == 0 else reversed(order):
            found[place].append(measure(contestant))
    return [statistics.median(values) for values in found]


def print_rows(
    name: str,
    args: argparse.Namespace,
    measure: Callable[[Path, Path, argparse.Namespace], Sequence[TableRow]],
) -> int:
    """The ``main`` of a bench of two clusters (options: ``bench.options.parser``); 0, or 1 with a sentence.

    ``measure`` gets a folder to work in and the environment with the peer.
    """
    try:
        check_wrk()
        args.root.mkdir(parents=True, exist_ok=True)
        peer = install_peer(args.peer or args.root / "peer", say)
        with working_folder(args.root, xfs=args.xfs) as folder, exit_on_sigterm():
            rows = measure(folder, peer, args)
    except (SwiftError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    print("| what | unit | ours | theirs | ratio | goal |\n|---|---|---:|---:|---:|---|")
    print("\n".join(map(str, rows)))
    args.json.write_text(json.dumps({**machine(), "rows": [row._asdict() for row in rows]}, indent=1))
    return 0


def print_figures(
    name: str,
    args: argparse.Namespace,
    measure: Callable[[Path, Path | None, argparse.Namespace], Mapping[str, Figure]],
    table: Callable[[Mapping[str, Figure], Mapping[str, Figure] | None], str],
    **about: object,
) -> int:
    """The ``main`` of a bench of single servers; 0, or 1 with a sentence.

    ``measure`` gets a folder to work in and the directory of the peer's commands, or None for our own;
    ``about`` is kept beside the figures.
    """
    if args.peer and os.geteuid() != 0:
        print(f"{name}: --peer needs root, because the peer reads /etc/swift", file=sys.stderr)
        return 1
    try:
        with tempfile.TemporaryDirectory(dir=args.root) as folder:
            sides = {"ours": measure(Path(folder) / "ours", None, args)}
            if args.peer:
                sides["theirs"] = measure(Path(folder) / "theirs", args.peer, args)
    except (SwiftError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    print(table(sides["ours"], sides.get("theirs")))
    figures = {side: {what: asdict(f) for what, f in found.items()} for side, found in sides.items()}
    args.json.write_text(json.dumps({**machine(), **about, "figures": figures}, indent=1) + "\n")
    return 0


def machine() -> dict[str, str]:
    """Return a description of the machine."""
    return {"machine": platform.platform(), "python": platform.python_version()}
