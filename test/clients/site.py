"""The place where clients are tried: a cluster, a folder, and ways to run and install programs."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path


class Missing(Exception):
    """A client cannot be had here; the text says why."""


@dataclass
class Outcome:
    """What a client did: how many of its checks held."""

    client: str
    version: str = ""
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    #: What was left out, and why.
    skipped: str = ""

    def check(self, what: str, holds: object) -> None:
        """Count one check."""
        if holds:
            self.passed += 1
        else:
            self.failed.append(what)


class Site:
    """A running cluster as a client sees it."""

    def __init__(self, auth_url: str, folder: Path, *, user: str = "test:tester", key: str = "testing"):
        self.auth_url = auth_url
        self.user = user
        self.key = key
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """With the account in the variables that Swift's clients read, and a home of its own."""
        return {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("OS_", "ST_", "AWS_"))
            },
            "HOME": str(self.home),
            "ST_AUTH": self.auth_url,
            "ST_USER": self.user,
            "ST_KEY": self.key,
        }

    def run(
        self, *words: object, timeout_s: float = 600, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """A program with its output; a status other than 0 is the caller's to judge."""
        return subprocess.run(
            [str(word) for word in words],
            env={**self.environment, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def find(self, program: str, package: str) -> str:
        """The path of a program; raises ``Missing`` naming the system package that has it."""
        path = shutil.which(program)
        if path is None:
            raise Missing(f"{program} is not installed (system package {package})")
        return path

    def install(self, name: str, *packages: str) -> Path:
        """The ``bin`` of an environment with packages of PyPI; raises ``Missing``."""
        environment = self.folder / f"venv-{name}"
        if not (environment / "bin").exists():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True, capture_output=True)
            done = self.run(environment / "bin" / "pip", "install", "-q", *packages)
            if done.returncode:
                raise Missing(f"pip cannot install {' '.join(packages)}: {done.stderr.strip()[-200:]}")
        return environment / "bin"

    def files(self, name: str, count: int, *, size_max: int = 20_000, large: int = 0) -> Path:
        """A folder with files of all sizes, the same at each call; ``large`` bytes in one more."""
        root = self.folder / name
        chance = random.Random(name)
        for number in range(count):
            path = root / f"d{number % 7}" / f"{number} ü.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(chance.randbytes(chance.choice((0, 1, 100, chance.randrange(size_max)))))
        if large:
            (root / "large.bin").write_bytes(chance.randbytes(large))
        return root


def digests(root: Path) -> dict[str, str]:
    """Relative name to MD5 of all files below a folder."""
    return {
        str(path.relative_to(root)): hashlib.md5(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
