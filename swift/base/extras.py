"""The command that installs the packages of an extra of this distribution.

No package index has the distribution, so the packages are named themselves.
"""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires

from swift import DISTRIBUTION


def install_command(extra: str) -> str:
    """Return the command for the Python that runs; the extra's name stands in for packages not known."""
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        lines = []
    marked = re.compile(rf"""\s*(.+?)\s*;.*\bextra\s*==\s*['"]{re.escape(extra).replace("_", "[-_]")}['"]""")
    packages = [match[1] for line in lines if (match := marked.match(line))]
    words = packages or [f"CHECKOUT[{extra}]"]
    return f"{sys.executable} -m pip install {shlex.join(words)}"
