"""The options that the comparisons with the peer share."""

from __future__ import annotations

import argparse
from pathlib import Path


def bare_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser without options that prints the description unchanged."""
    return argparse.ArgumentParser(
        prog=f"python -m tools.bench.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def parser(name: str, description: str | None, *, seconds: float) -> argparse.ArgumentParser:
    """Return the parser of ``python -m tools.bench.<name>``; a measurement takes ``seconds``."""
    made = bare_parser(name, description)
    root = Path(f"/var/tmp/swift-{name}")
    made.add_argument("--root", type=Path, default=root, help=f"where all is put ({root})")
    made.add_argument("--peer", type=Path, help="environment with the peer; made below --root when absent")
    made.add_argument(
        "--xfs", action="store_true", help="measure on XFS, in a 32 GiB image below --root; needs root"
    )
    made.add_argument("--seconds", type=type(seconds), default=seconds, help="length of one measurement")
    made.add_argument("--rounds", type=int, default=3, help="measurements of each row")
    made.add_argument("--only", default="", help="only rows whose name matches this regular expression")
    made.add_argument("--json", type=Path, default=Path(f"{name}.json"), help="write the figures here")
    return made
