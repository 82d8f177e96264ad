"""A release has one version, in everything that names it, and its artefacts are listed with their sums."""

import calendar
import hashlib
import re
from pathlib import Path

import pytest

from swift import __version__
from tools.release import ReleaseError, checksums, main, run, unmet

ROOT = Path(__file__).parents[2]
MINOR = __version__.rpartition(".")[0]


def test_the_changelog_begins_with_this_release_and_its_date():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    if headings[0] == "Unreleased":
        # Changes since the release.
        del headings[0]
    assert re.fullmatch(rf"{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)", headings[0])
    assert len({heading.split()[0] for heading in headings}) == len(headings)


def test_debian_packages_have_the_version_and_the_day_of_the_release():
    text = (ROOT / "debian/changelog").read_text()
    assert text.startswith(f"swift-object-store (1:{__version__}) unstable;")
    year, month, day = re.search(
        r"^## \S+ \((\d+)-(\d+)-(\d+)\)", (ROOT / "CHANGELOG.md").read_text(), re.M
    ).groups()
    assert f", {day} {calendar.month_abbr[int(month)]} {year} " in text.split("\n -- ")[1].splitlines()[0]


def test_pages_name_this_release():
    for name in ("install", "first-cluster", "nodes"):
        text = (ROOT / f"doc/howto/{name}.md").read_text()
        assert set(re.findall(r"/opt/swift-([\d.]+\d)", text)) == {__version__}
    for name, words in (
        ("README.md", f"\n{MINOR} is the"),
        ("doc/explanation/support.md", f"| {MINOR} | "),
        ("doc/explanation/limits.md", f" of release {MINOR}."),
        ("doc/explanation/testing.md", f"Figures of {MINOR}."),
        ("containers/build", f"swift:{MINOR}"),
    ):
        assert words in (ROOT / name).read_text(), name


def test_the_sums_are_those_of_sha256sum(tmp_path):
    (tmp_path / "b.deb").write_bytes(b"1")
    (tmp_path / "a.whl").write_bytes(b"2")
    (tmp_path / "SHA256SUMS").write_text("former")
    one, two = (hashlib.sha256(data).hexdigest() for data in (b"1", b"2"))
    assert checksums(tmp_path) == f"{two}  a.whl\n{one}  b.deb\n"


def test_a_release_never_overwrites_another(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "exists; choose another directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_the_build_of_debian_packages_lacks_is_told():
    told = (
        "dpkg-checkbuilddeps: error: Unmet build dependencies: build-essential:native "
        "debhelper-compat (= 13) python3-all (>= 3.11)\n"
    )
    assert unmet(told) == "build-essential debhelper python3-all"
    assert unmet("dpkg-checkbuilddeps: error: no file\n") == "dpkg-checkbuilddeps: error: no file"
    # The page names them all.
    page = (ROOT / "doc/howto/install.md").read_text()
    control = (ROOT / "debian/control").read_text()
    needed = re.search(r"^Build-Depends: (.*)$", control, re.M)[1]
    (line,) = re.findall(r"apt-get install (build-essential .*)", page)
    assert set(unmet(f"Unmet build dependencies: build-essential {needed.replace(',', '')}").split()) < {
        *line.split()
    }


def test_a_command_that_fails_is_told_with_its_output(tmp_path):
    assert run(["echo", "made"]) == "made\n"
    with pytest.raises(ReleaseError) as failed:
        run(["sh", "-c", "echo first; echo reason >&2; exit 3"])
    assert str(failed.value) == "sh ended with status 3:\nfirst\nreason"
