"""A published study, simulated beside its figures: ``python -m tools.studies 1991 --plot striping.svg``.

It needs the extra ``plan`` (SimPy, matplotlib).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from swift.base.errors import SwiftError
from swift.plan.plots import checked_path
from tools.studies import study1991, study2017
from tools.studies.comparison import comparison_text, plot_comparison

STUDIES = {"1991": study1991, "2017": study2017}


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.studies",
        description="Simulate a published study, and print it beside its figures.",
    )
    parser.add_argument("study", choices=sorted(STUDIES))
    parser.add_argument("--seconds", type=float, help="simulated seconds of each run")
    parser.add_argument("--seed", type=int, help="repeat a run; the year of the study by default")
    parser.add_argument("--plot", metavar="FILE", help="write a plot: FILE.svg or FILE.png")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to report")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate one study; return the exit code."""
    args = make_parser().parse_args(argv)
    study = STUDIES[args.study]
    try:
        if args.plot:
            checked_path(args.plot)
        seed = int(args.study) if args.seed is None else args.seed
        found = study.reproduce(seed=seed, **({"seconds": args.seconds} if args.seconds else {}))
        if args.format == "json":
            figures = [
                {**asdict(each), "deviation": each.deviation, "is_near": each.is_near} for each in found
            ]
            print(json.dumps({"study": args.study, "assumed": study.ASSUMED, "figures": figures}, indent=1))
        else:
            print(comparison_text(found))
            print("\nassumed, because the study's figures leave it open\n  " + "\n  ".join(study.ASSUMED))
        if args.plot:
            plot_comparison(found, f"Study of {args.study}", args.plot)
    except (SwiftError, OSError) as error:
        print(f"tools.studies: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
