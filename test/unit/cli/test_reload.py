"""What swift-reload refuses before it looks at any process."""

import pytest

from swift.cli.reload import make_parser


@pytest.mark.long
@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e12", "soon"])
def test_a_time_that_nobody_can_wait_for_is_wrong_usage(seconds, capsys):
    with pytest.raises(SystemExit) as stopped:
        make_parser().parse_args(["1", f"--timeout={seconds}"])
    assert stopped.value.code == 2
    assert "argument -t/--timeout: " in capsys.readouterr().err


def test_a_time_may_be_a_fraction():
    assert make_parser().parse_args(["1", "-t", "0.5"]).timeout == 0.5
