"""Write all generated files, or compare them with what is there: ``python -m tools.generate [--check]``.

It writes samples and reference pages of options, headers and metrics, ``known.json`` and ``declared.json``,
man pages, completions of shells, units of systemd, lists of Debian's packages, dashboards, the tables of
the S3 API and of actions, and the drawing of the layers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.generate import declared

ROOT = Path(__file__).parents[2]
#: Folder, and the pattern of the files in it that are all generated.
OWNED = (
    ("doc/man", "*.1"),
    ("etc/systemd", "swift*"),
    ("etc/completions", "*"),
    ("etc/grafana", "*"),
    ("debian", "*.manpages"),
)


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Return every generated file below ``root`` with its text."""
    from tools.generate import (
        actions,
        completions,
        dashboards,
        debian,
        house,
        manpages,
        metrics,
        s3_matrix,
        samples,
        units,
    )

    generators = (
        declared,
        samples,
        units,
        debian,
        manpages,
        completions,
        metrics,
        dashboards,
        s3_matrix,
        actions,
        house,
    )
    for module in generators:
        yield from module.files(root)


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check; return 0 when all files are up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.generate", description="Write all generated files."
    )
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    args = parser.parse_args(argv)
    if not args.check and _rewrite(declared.files(args.root)):
        # Modules imported so far lack the new declarations.
        return subprocess.run([sys.executable, "-m", "tools.generate", "--root", str(args.root)]).returncode
    wanted = dict(files(args.root))
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    others = [
        path for folder, pattern in OWNED for path in (args.root / folder).glob(pattern) if path not in wanted
    ]
    if args.check:
        for path in (*stale, *others):
            print(f"{path} is stale; run python -m tools.generate", file=sys.stderr)
        return 1 if stale or others else 0
    _rewrite(wanted.items())
    for path in others:
        path.unlink()
    print(f"{len(stale) + len(others)} files changed")
    return 0


def _rewrite(wanted: Iterable[tuple[Path, str]]) -> int:
    """Write the files that differ; return their number."""
    changed = 0
    for path, text in wanted:
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed += 1
    return changed


if __name__ == "__main__":
    raise SystemExit(main())
