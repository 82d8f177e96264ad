"""python-swiftclient: the ``swift`` command, and its own functional tests from its source distribution."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

from test.clients.site import Missing, Outcome, Site, digests

PACKAGE = "python-swiftclient"


def command(site: Site) -> Outcome:
    """Upload, list, download and delete by the ``swift`` command."""
    bin_ = site.install("swiftclient", PACKAGE, "setuptools<81")
    swift = bin_ / "swift"
    outcome = Outcome("swift command", site.run(swift, "--version").stdout.split()[-1])
    source = site.files("swift-files", 200, large=6 << 20)
    done = site.run(
        swift, "upload", "files", source.name, "-S", 1 << 20, "--use-slo", "--segment-container", "segments"
    )
    outcome.check(f"upload: {done.stderr[-300:]}", done.returncode == 0)
    listed = site.run(swift, "list", "files").stdout.splitlines()
    outcome.check("all files are listed", len(listed) == 201)
    outcome.check("stat of a large object", "Content Length: 6291456" in _stat(site, swift))
    target = site.folder / "swift-back"
    done = site.run(swift, "download", "files", "-D", target)
    outcome.check(f"download: {done.stderr[-300:]}", done.returncode == 0)
    outcome.check("the same bytes come back", digests(target / source.name) == digests(source))
    done = site.run(swift, "upload", "files", source.name, "--skip-identical")
    outcome.check("nothing is uploaded twice", done.returncode == 0)
    done = site.run(swift, "copy", "files", f"{source.name}/large.bin", "-d", "/files/copied.bin")
    outcome.check(f"copy: {done.stderr[-300:]}", done.returncode == 0)
    outcome.check("capabilities", "Core: swift" in site.run(swift, "capabilities").stdout)
    done = site.run(swift, "delete", "files", f"{source.name}/large.bin")
    outcome.check(f"delete of a large object: {done.stderr[-300:]}", done.returncode == 0)
    outcome.check("its segments are gone too", site.run(swift, "list", "segments").stdout == "")
    outcome.check("bulk delete", site.run(swift, "delete", "files").returncode == 0)
    return outcome


def _stat(site: Site, swift: Path) -> str:
    text = site.run(swift, "stat", "files", "swift-files/large.bin").stdout
    return re.sub(r"\s+", " ", text)


def own_tests(site: Site) -> Outcome:
    """Its functional tests."""
    bin_ = site.install("swiftclient-tests", PACKAGE, "pytest", "requests", "setuptools<81", "openstacksdk")
    folder = site.folder / "swiftclient-source"
    done = site.run(
        bin_ / "pip", "download", "-q", "--no-deps", "--no-binary", PACKAGE, "-d", folder, PACKAGE
    )
    archives = list(folder.glob("*.tar.gz"))
    if done.returncode or not archives:
        raise Missing(f"no source distribution of {PACKAGE}: {done.stderr.strip()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    config = site.folder / "swiftclient-test.conf"
    account, _, user = site.user.partition(":")
    config.write_text(
        f"[func_test]\nauth_uri = {site.auth_url}\nauth_version = 1\n"
        f"account = {account}\nusername = {user}\npassword = {site.key}\n"
    )
    done = site.run(
        bin_ / "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        source / "test" / "functional" / "test_swiftclient.py",
        SWIFT_TEST_CONFIG_FILE=str(config),
        PYTHONPATH=str(source),
    )
    return outcome_of_pytest("python-swiftclient's tests", archives[0].name, done.stdout)


def outcome_of_pytest(client: str, version: str, text: str) -> Outcome:
    """What pytest counted."""
    outcome = Outcome(client, version.removesuffix(".tar.gz").rpartition("-")[2])
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|error|skipped)", text)}
    outcome.passed = counts.get("passed", 0)
    outcome.failed = re.findall(r"^(?:FAILED|ERROR) \S*?([\w:]+)(?: |$)", text, re.M)
    if not counts:
        outcome.failed = [text[-300:]]
    if counts.get("skipped"):
        outcome.skipped = f"{counts['skipped']} tests skip themselves"
    return outcome
