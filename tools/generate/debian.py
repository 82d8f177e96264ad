"""The lists of commands and man pages of Debian's packages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path

from swift.entry import commands

_BIN, _MAN = "usr/bin/", "doc/man/"


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the lists, each with its text; files that are no commands keep their lines."""
    package_of: Callable[[str], str] = run_path(str(root / "debian/units.py"))["package_of"]
    names: dict[str, list[str]] = defaultdict(list)
    for name in sorted(commands()):
        names[package_of(name)].append(name)
    for package, own in names.items():
        path = root / f"debian/{package}.install"
        others = [line for line in _lines(path) if not line.startswith(_BIN)]
        yield path, "".join(f"{line}\n" for line in (*(f"{_BIN}{name}" for name in own), *others))
        yield root / f"debian/{package}.manpages", "".join(f"{_MAN}{name}.1\n" for name in own)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
