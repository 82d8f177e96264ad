"""Make what a release consists of: source archive, wheel, Debian packages, SBOM and checksums.

    python -m tools.release dist            # all that this machine can make
    python -m tools.release dist --twice    # and once more: every file must be the same, byte for byte

The version stands in ``swift/__init__.py``. The time of all files is that of the last commit, so two builds
of one commit are equal. The wheel has a compiled part: it is for machines like this one.

Debian packages need the packages of ``Build-Depends`` in debian/control and
build-essential; they are left out without these.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


#: Lines of a failed command's output that are printed.
_LINES_MAX = 20
_UNMET = "Unmet build dependencies:"


class ReleaseError(Exception):
    """A command failed; the text has the end of its output."""


def run(command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a command; return what it printed. Raises ``ReleaseError``."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        lines = done.stdout.strip().splitlines()[-_LINES_MAX:]
        raise ReleaseError("\n".join((f"{command[0]} ended with status {done.returncode}:", *lines)))
    return done.stdout


def commit_time(root: Path) -> str:
    """Return the time of the last commit, Unix seconds."""
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def checked_out(root: Path, target: Path) -> Path:
    """Return a copy of the last commit's files, with the time of the commit."""
    target.mkdir(parents=True)
    packed = subprocess.run(
        ["git", "-C", str(root), "archive", "HEAD"], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(target)], input=packed, check=True)
    return target


def python_packages(source: Path, out: Path, time: str) -> None:
    """Build the wheel and the source archive. Raises ``ReleaseError`` if nothing was compiled."""
    # Symbols for debuggers contain the paths of the build and are left out.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": time, "PYTHONHASHSEED": "0", "CFLAGS": "-g0"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    run(command, env=environment)
    for wheel in out.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            if not any(name.endswith(".so") for name in packed.namelist()):
                raise ReleaseError("swift/platform/native.c was not compiled; is there a C compiler?")
    for archive in out.glob("*.tar.gz"):
        _normalize(archive, int(time))


def _normalize(archive: Path, time: int) -> None:
    """Pack a source archive again, sorted and with one time and owner."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(archive, folder)
        plain = Path(folder) / "plain.tar"
        with tarfile.open(plain, "w", format=tarfile.PAX_FORMAT) as made:
            for path in sorted(Path(folder).rglob("*")):
                if path == plain:
                    continue
                entry = made.gettarinfo(str(path), str(path.relative_to(folder)))
                entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
                entry.pax_headers = {}
                with path.open("rb") if path.is_file() else open(os.devnull, "rb") as data:
                    made.addfile(entry, data if path.is_file() else None)
        with gzip.GzipFile(archive, "wb", mtime=time) as packed:
            packed.write(plain.read_bytes())


def missing_build_packages(source: Path) -> str:
    """Return the system's packages that are missing to build Debian packages; empty if none is."""
    if not all(map(shutil.which, ("dpkg-buildpackage", "dpkg-checkbuilddeps"))):
        return "build-essential debhelper dh-python dpkg-dev python3-all-dev python3-setuptools"
    done = subprocess.run(
        ["dpkg-checkbuilddeps"],
        cwd=source,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    return unmet(done.stderr) if done.returncode else ""


def unmet(text: str) -> str:
    """Return the packages that ``dpkg-checkbuilddeps`` misses, as apt-get takes them."""
    if _UNMET not in text:
        return text.strip()
    names = re.sub(r"\([^)]*\)", "", text.partition(_UNMET)[2]).split()
    return " ".join("debhelper" if name == "debhelper-compat" else name.partition(":")[0] for name in names)


def debian_packages(source: Path, out: Path, time: str) -> str:
    """Build the Debian packages; return the names of the packages that are missing for it."""
    if missing := missing_build_packages(source):
        return missing
    environment = {**os.environ, "SOURCE_DATE_EPOCH": time}
    # dh-python builds with the interpreter of the system.
    environment["PATH"] = f"/usr/bin:/bin:{environment['PATH']}"
    command = ["dpkg-buildpackage", "--unsigned-source", "--unsigned-changes", "--build=binary"]
    run(command, cwd=source, env=environment)
    for package in source.parent.glob("*.deb"):
        shutil.move(package, out / package.name)
    return ""


def bill_of_materials(source: Path, out: Path, time: str) -> None:
    """Write the software bill of materials (CycloneDX) of the requirements."""
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(source / "requirements.txt")]
    command += [
        "--output-reproducible",
        "--output-format",
        "JSON",
        "--output-file",
        str(out / "sbom.cdx.json"),
    ]
    run(command, env={**os.environ, "SOURCE_DATE_EPOCH": time})


def checksums(out: Path) -> str:
    """Return the lines of ``SHA256SUMS``."""
    files = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def release(root: Path, out: Path) -> str:
    """Make a release in a new directory; return the packages that Debian packages were left out for."""
    out.mkdir(parents=True)
    time = commit_time(root)
    with tempfile.TemporaryDirectory() as folder:
        # Paths of the build must not differ between two builds.
        source = checked_out(root, Path(folder) / "build" / "source")
        bill_of_materials(source, out, time)
        python_packages(source, out, time)
        shutil.rmtree(source)
        missing = debian_packages(checked_out(root, source), out, time)
    (out / "SHA256SUMS").write_text(checksums(out))
    return missing


def main(argv: Sequence[str] | None = None) -> int:
    """Make a release; return 1 when a second build differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release",
        description="Make the source archive, wheel, Debian packages, SBOM and checksums of the last commit.",
        epilog="example: python -m tools.release dist --twice",
    )
    parser.add_argument("out", type=Path, help="a directory that does not exist yet")
    parser.add_argument("--twice", action="store_true", help="build again and compare")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    args = parser.parse_args(argv)
    if args.out.exists():
        parser.error(f"{args.out} exists; choose another directory or remove it")
    try:
        return _make(args)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1


def _make(args: argparse.Namespace) -> int:
    if missing := release(args.root, args.out):
        print(f"no Debian packages; their build needs: apt-get install {missing}", file=sys.stderr)
    if args.twice:
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder) / "again"
            release(args.root, again)
            first, second = (
                set((each / "SHA256SUMS").read_text().splitlines()) for each in (args.out, again)
            )
        if first != second:
            differing = sorted({line.split("  ")[1] for line in first ^ second})
            print(f"the second build differs: {', '.join(differing)}", file=sys.stderr)
            return 1
    print((args.out / "SHA256SUMS").read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
