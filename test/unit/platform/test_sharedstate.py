"""What processes of a node tell each other through memory: whom they believe, who lives, who came first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from swift.platform import sharedstate as shared
from swift.platform.sharedstate import SessionLost, SharedState, StateHeld, TierSession, held, reports_in

#: Opens a session, says so, and lives until its input ends.
ANOTHER = """
import sys
from swift.platform.sharedstate import TierSession
session = TierSession(sys.argv[1])
session.report(b"another")
print(session.token.hex(), session.is_first, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def shared_state():
    return SharedState(bytearray(shared.BYTES))


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "state")


class Another:
    """A session in another process."""

    def __init__(self, folder):
        self._process = subprocess.Popen(
            [sys.executable, "-c", ANOTHER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        token, first = self._process.stdout.readline().split()
        self.token, self.is_first = bytes.fromhex(token), first == "True"

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


@pytest.fixture
def another(folder):
    made = []

    def start():
        made.append(Another(folder))
        return made[-1]

    yield start
    for each in made:
        each.kill()


def test_a_new_epoch_of_one_device_leaves_the_others_alone(shared_state):
    shared_state.renew()
    before = {device: shared_state.epoch(device) for device in ("sda", "sdb", "sdc")}
    assert all(before.values())
    shared_state.renew("sdb")
    assert [device for device in before if shared_state.epoch(device) != before[device]] == ["sdb"]


def test_a_change_is_seen_by_whoever_read_before_it(shared_state):
    before = shared_state.stripe(b"sda/objects/7")
    shared_state.touch(b"sda/objects/7")
    assert shared_state.stripe(b"sda/objects/7") != before


def test_a_device_that_is_mounted_anew_is_not_believed(shared_state):
    shared_state.mounted("sda", 41)
    epoch = shared_state.epoch("sda")
    shared_state.mounted("sda", 41)
    assert shared_state.epoch("sda") == epoch
    shared_state.mounted("sda", 42)
    assert shared_state.epoch("sda") != epoch


def test_a_pause_ends(shared_state):
    shared_state.pause(1000)
    assert shared_state.is_paused(999) and not shared_state.is_paused(1000)


@pytest.mark.process
def test_the_first_process_after_all_had_gone_believes_nothing_of_before(folder, another):
    other = another()
    assert other.is_first
    session = TierSession(folder)
    assert not session.is_first
    epoch = session.shared_state.epoch("sda")
    left = []
    session.close(left.append)
    assert left == [False], "the other one lives"
    other.kill()
    again = TierSession(folder)
    assert again.is_first and again.shared_state.epoch("sda") != epoch
    again.close(left.append)
    assert left[-1] is True


def test_processes_share_what_they_say(folder):
    one, two = TierSession(folder), TierSession(folder)
    one.shared_state.index = 7
    two.shared_state.touch(b"sda/objects/7")
    assert (two.shared_state.index, one.shared_state.stripe(b"sda/objects/7")) == (
        7,
        two.shared_state.stripe(b"sda/objects/7"),
    )


@pytest.mark.process
def test_a_process_that_was_killed_is_known_to_be_gone_and_its_figures_with_it(folder, another):
    session, other = TierSession(folder), another()
    session.report(b"mine, and long")
    session.report(b"mine")
    assert sorted(reports_in(folder)) == [b"another", b"mine"]
    assert session.is_alive(other.token) and session.is_alive(session.token)
    other.kill()
    assert not session.is_alive(other.token)
    assert reports_in(folder) == [b"mine"]


def test_a_report_is_whole_at_any_moment_also_when_it_is_shorter_than_the_one_before(folder):
    session = TierSession(folder)
    (path,) = Path(folder, "sessions").iterdir()
    for report, size in ((b"{}", 2), (b'{"a": 1}', 8), (b"{}", 8)):
        session.report(report)
        # Nothing is cut off in a second step, before which there would be the end of another one.
        assert path.read_bytes() == report.ljust(size)
        assert reports_in(folder) == [report]


def test_a_process_whose_file_was_removed_learns_it(folder):
    session = TierSession(folder)
    (path,) = (os.path.join(folder, "sessions", name) for name in os.listdir(f"{folder}/sessions"))
    os.unlink(path)
    with pytest.raises(SessionLost):
        session.report(b"figures")


def test_nobody_has_left_figures_where_nobody_was(tmp_path):
    assert reports_in(str(tmp_path / "none")) == []


def test_a_directory_that_others_may_write_is_refused(folder):
    os.makedirs(folder)
    os.chmod(folder, 0o777)
    with pytest.raises(PermissionError, match="no other may write"):
        TierSession(folder)


def test_a_link_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError):
        TierSession(str(tmp_path / "state"))


@pytest.mark.long
@pytest.mark.process
def test_one_process_at_a_time_is_within(tmp_path):
    path = str(tmp_path / "lock")
    script = (
        "import sys; from swift.platform.sharedstate import held\nwith held(sys.argv[1]): print('within')"
    )
    with held(path):
        waiting = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1.5)
    assert waiting.communicate(timeout=60)[0] == "within\n"


@pytest.mark.long
def test_a_session_is_refused_while_a_stopped_process_opens_or_closes_one(folder):
    session = TierSession(folder)
    left = []
    with held(f"{folder}/lock"):
        with pytest.raises(StateHeld, match="more than 1 s"):
            TierSession(folder)
        session.close(left.append)
    assert left == [False] and not os.listdir(f"{folder}/sessions")
    assert TierSession(folder).is_first
