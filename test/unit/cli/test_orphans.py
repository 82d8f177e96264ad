"""Processes that no pid file knows; nobody else is ever signalled."""

import os
import signal

import pytest

from swift.cli.orphans import find_orphans, known_pids, main, signal_number
from swift.runtime.service.processes import RunningProcess


def running(pid, parent=1, words=("swift-object-server", "a.conf")):
    return RunningProcess(pid, parent, pid, words, 100 * 3600.0)


def test_pids_are_read_below_a_directory_and_what_is_none_is_passed_over(tmp_path):
    (tmp_path / "object-server").mkdir()
    (tmp_path / "object-server" / "1.pid").write_text("12\n")
    (tmp_path / "proxy-server.pid").write_text("34")
    for name, text in (("a.pid", b"nonsense"), ("b.pid", b""), ("c.pid", b"\xff"), ("d.txt", b"56")):
        (tmp_path / name).write_bytes(text)
    (tmp_path / "e.pid").mkdir()
    (tmp_path / "f.pid").write_text("9" * 5000)
    assert known_pids(str(tmp_path)) == {12, 34}
    assert known_pids(str(tmp_path / "none")) == set()


def test_who_is_known_or_descends_from_one_who_is_is_no_orphan():
    ours = os.getpid()
    child = running(1 << 30, parent=ours)
    assert list(find_orphans([child], {ours})) == []
    assert list(find_orphans([child], {os.getppid()})) == []
    assert list(find_orphans([child], {1 << 30})) == []
    assert list(find_orphans([child], {1, 0})) == [child]


def test_who_runs_once_was_started_by_hand():
    by_hand = running(1 << 30, words=("swift-object-auditor", "a.conf", "once"))
    assert list(find_orphans([by_hand], set())) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("TERM", signal.SIGTERM),
        ("sigterm", signal.SIGTERM),
        ("15", 15),
        ("9", 9),
        ("HUP", signal.SIGHUP),
        ("", None),
        ("0", None),
        ("-9", None),
        ("999", None),
        ("9" * 5000, None),
        ("15.0", None),
        ("NOSUCH", None),
        ("_DFL", None),
        ("SIG_IGN", None),
        ("_SETMASK", None),
        ("SIG", None),
        ("NAL", None),
    ],
)
def test_a_signal_has_a_name_or_a_number(text, number):
    assert signal_number(text) == number


def test_where_nobody_is_old_enough_nobody_is_listed_or_signalled(tmp_path, capsys):
    assert main(["-a", "1000000", "-k", "KILL", "-r", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["-a", "1000000", "--format", "json", "-r", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "[]\n"
