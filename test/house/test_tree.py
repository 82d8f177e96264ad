"""What is committed is the project's and nothing of anybody's machine."""

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]


def committed_files():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in done.stdout.splitlines()]


def texts():
    for path in committed_files():
        if path.is_file() and "golden/data" not in str(path):
            try:
                yield path, path.read_text()
            except UnicodeDecodeError:
                continue


def test_no_file_carries_a_path_of_a_developers_machine():
    pattern = re.compile(r"(?<![\w.])/(work|farm|root)/")
    for path, text in texts():
        if path == Path(__file__):
            continue
        match = pattern.search(text)
        assert match is None, f"{path.relative_to(ROOT)} contains {match[0]!r}"


def test_the_top_level_is_the_agreed_one():
    top = {path.relative_to(ROOT).parts[0] for path in committed_files()}
    allowed = {
        *("swift", "etc", "bin", "test", "doc", "setup.py", "requirements.txt", "tox.ini", "README.md"),
        *("requirements-test.txt", "pyproject.toml", ".gitignore", ".ci", "tools", "MANIFEST.in"),
        *("LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "debian", "containers"),
        "requirements-release.txt",
    }
    assert top <= allowed, f"not agreed on at top level: {sorted(top - allowed)}"
