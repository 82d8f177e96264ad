"""The command that takes rings to nodes without an agent."""

import pytest

from swift.layout.daemon import PublishCommand
from swift.telemetry.telemetry import Telemetry
from test.support.filters import Log

pytestmark = pytest.mark.process


@pytest.fixture
def command(tmp_path):
    def make(text, **options):
        log = Log()
        return PublishCommand(text, str(tmp_path), Telemetry(log=log), **options), log

    return make


def test_it_runs_once_for_each_version_with_the_directory(command, tmp_path):
    made, log = command(f"sh -c 'echo \"$1\" >> {tmp_path}/runs' hook")
    for version in (1, 1, 2):
        made.run(version)
    assert (tmp_path / "runs").read_text() == f"{tmp_path}\n" * 2
    assert not log.lines


def test_it_runs_again_until_it_ends_with_0(command, tmp_path):
    made, log = command(f"sh -c 'echo no place; ls {tmp_path}/there' hook")
    made.run(1)
    assert "publish_command ended with status 2: " in log.lines[0]
    (tmp_path / "there").touch()
    for _ in range(2):
        made.run(1)
    assert len(log.lines) == 1


@pytest.mark.parametrize(
    ("text", "reason"), [("/nonexistent", "No such file"), ("sh -c 'exec sleep 60'", "was killed after")]
)
def test_one_that_cannot_run_or_does_not_end_is_logged(command, text, reason):
    made, log = command(text, timeout_s=0.1)
    made.run(1)
    assert reason in log.lines[0]


def test_without_a_command_nothing_runs(command):
    made, log = command("")
    made.run(1)
    assert not log.lines
