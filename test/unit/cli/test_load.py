"""The command itself: what it says without the packages that it needs, and what is for programs."""

import json
import subprocess
import sys

import pytest

from swift.base.extras import install_command
from swift.cli.load import EXTRAS, main

WITHOUT = "import sys; sys.modules[{!r}] = None; from swift.cli.load import main; sys.exit(main({!r}))"


def without(module, *args):
    """The command where a module is not installed."""
    command = [sys.executable, "-c", WITHOUT.format(module, list(args))]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("module", ["rich", "hdrh"])
def test_a_missing_package_is_one_line_that_says_what_to_install(module):
    done = without(module, "list")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    # The pip of this environment: that of the PATH may belong to another Python.
    assert module in done.stderr and install_command(EXTRAS[module]) in done.stderr


def test_help_needs_no_package():
    assert without("rich", "run", "--help").returncode == 0


def test_the_list_is_had_as_json(capsys):
    assert main(["list", "--format", "json"]) == 0
    assert "SmlRead" in [one["name"] for one in json.loads(capsys.readouterr().out)]


def test_what_is_shown_is_a_workload_file(capsys):
    assert main(["show", "smlread"]) == 0
    assert "[[phase]]" in capsys.readouterr().out


def test_a_number_that_is_none_is_refused_by_the_command_line(capsys):
    for option in ("--seconds=nan", "--clients=0", "--rate=x"):
        with pytest.raises(SystemExit) as end:
            main(["run", "SmlRead", option])
        assert end.value.code == 2
        assert "Traceback" not in capsys.readouterr().err
