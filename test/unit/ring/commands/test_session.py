"""One run of swift-ring-builder: what it writes, asks and prints, and that a dry run writes nothing."""

import io
import json

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.commands.session import (
    EXIT_ERROR,
    BuilderSession,
    EndSubcommand,
    file_names,
    take_switches,
)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


@pytest.fixture
def make(tmp_path):
    def made(answer=None, **more):
        def ask(question):
            if answer is None:
                raise EOFError
            return answer

        path = tmp_path / "x"
        streams = {"out": io.StringIO(), "err": io.StringIO()}
        return BuilderSession(f"{path}.builder", f"{path}.ring.gz", "x", **{**streams, "ask": ask, **more})

    return made


def builder():
    made = RingBuilder(2, 1, 0)
    made.add_device(region=1, zone=1, ip="10.0.0.1", port=6200, device="sda", weight=1.0)
    made.rebalance(seed=1)
    return made


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ("a.builder", ("a.builder", "a.ring.gz")),
        ("a.ring.gz", ("a.builder", "a.ring.gz")),
        ("/etc/a", ("/etc/a", "/etc/a.ring.gz")),
        (".builder", (".builder", ".ring.gz")),
        ("a.builder.ring.gz", ("a.builder.builder", "a.builder.ring.gz")),
    ],
)
def test_one_argument_stands_for_two_files(given, files):
    assert file_names(given) == files


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["a", "--dry-run", "b"], (["a", "b"], True, False)),
        (["--format", "json", "a"], (["a"], False, True)),
        (["--format=json", "--format=text"], ([], False, False)),
        (["--formats"], (["--formats"], False, False)),
        ([], ([], False, False)),
    ],
)
def test_switches_stand_anywhere_among_the_arguments(words, left):
    assert take_switches(words) == left


@pytest.mark.parametrize("words", [["--format"], ["--format="], ["--format", "xml"], ["--format=JSON"]])
def test_a_format_that_there_is_not_ends_it(words):
    with pytest.raises(EndSubcommand) as told:
        take_switches(words)
    assert told.value.code == EXIT_ERROR and "must be text or json" in told.value.text


def test_without_a_builder_file_there_is_nothing_to_work_on(make):
    with pytest.raises(EndSubcommand, match="does not exist: .*x.builder"):
        make().loaded  # noqa: B018


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_dry_run_leaves_no_file(make, tmp_path, dry_run):
    session = make(builder=builder(), dry_run=dry_run)
    session.prepare_backups()
    session.save()
    session.write_ring(format_version=1)
    session.back_up(session.builder_path)
    names = sorted(path.name.partition(".")[2] for path in tmp_path.rglob("*") if path.is_file())
    assert names == ([] if dry_run else ["builder", "ring.gz", "x.builder"])


def test_a_report_is_either_for_people_or_for_programs(make):
    for as_json, printed in ((False, "line\n"), (True, json.dumps({"a": 1}, indent=4) + "\n")):
        session = make(as_json=as_json)
        session.say("line")
        session.report({"a": 1})
        session.warn("beware")
        assert (session.out.getvalue(), session.err.getvalue()) == (printed, "beware\n")


@pytest.mark.parametrize(
    ("answer", "is_meant"),
    [("y", True), (" Y\n", True), ("yes", False), ("n", False), ("", False), (None, False)],
)
def test_only_y_is_a_yes_and_who_says_nothing_has_said_no(make, answer, is_meant):
    session = make(answer)
    if is_meant:
        session.confirm("sure?", "aborted", yes=False)
    else:
        with pytest.raises(EndSubcommand, match="aborted"):
            session.confirm("sure?", "aborted", yes=False)
    make(None).confirm("sure?", "aborted", yes=True)


def test_progress_is_for_those_who_watch(make):
    assert make().progress() is None
    screen = Screen()
    progress = make(err=screen).progress()
    progress("moving", 0, 0)
    progress("moving", 1, 10)
    progress("moving", 5, 5)
    assert screen.getvalue() == "\r\x1b[K\r\x1b[Kmoving: 1 of 10 (10%)\r\x1b[K"
