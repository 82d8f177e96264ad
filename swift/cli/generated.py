"""Files of the checkout that are made from the code: written, or compared with what is there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

#: Every file below a root, with its text.
Files = Callable[[Path], Iterator[tuple[Path, str]]]


def write_or_check(
    module: str, description: str | None, files: Files, argv: Sequence[str] | None, *, alone: str = ""
) -> int:
    """The main of ``python -m module``; 0 when all is as it should be.

    Files beside the written ones whose names match the pattern ``alone`` are removed.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=(description or "").partition("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2], help="the checkout")
    args = parser.parse_args(argv)
    wanted = dict(files(args.root))
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if args.check:
        for path in stale:
            print(f"{path} is stale; run python -m {module}", file=sys.stderr)
        return 1 if stale else 0
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if alone:
        _remove_others(wanted, alone)
    print(f"{len(stale)} files changed")
    return 0


def _remove_others(wanted: dict[Path, str], pattern: str) -> None:
    for folder in {path.parent for path in wanted}:
        for path in folder.glob(pattern):
            if path not in wanted:
                path.unlink()
