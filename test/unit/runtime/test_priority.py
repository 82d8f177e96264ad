"""Daemons leave processor and disks to servers when operators say so."""

import os
import subprocess
import sys

import pytest

from swift.base.errors import ConfigError
from swift.config.common import PrioritySettings
from swift.runtime.priority import set_priority

SHOW = """
import os, sys
from swift.config.common import PrioritySettings
from swift.runtime.priority import set_priority
set_priority(PrioritySettings.parse(dict(word.split("=") for word in sys.argv[1:])))
os.system("ionice -p %d; ps -o ni= -p %d" % (os.getpid(), os.getpid()))
"""


def priorities(*words):
    """What another process says of its priorities after setting these."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *words], capture_output=True, text=True, check=True, timeout=60
    )
    io, nice = done.stdout.splitlines()
    return io.strip(), int(nice)


@pytest.mark.process
def test_a_process_gets_the_priorities_of_its_configuration():
    # Nobody may become less nice.
    wanted = max(5, os.getpriority(os.PRIO_PROCESS, 0))
    assert priorities(f"nice_priority={wanted}", "ionice_class=IOPRIO_CLASS_BE", "ionice_priority=6") == (
        "best-effort: prio 6",
        wanted,
    )
    assert priorities("ionice_class=IOPRIO_CLASS_IDLE")[0] == "idle"


@pytest.mark.process
def test_without_a_word_nothing_changes():
    assert priorities()[1] == os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize(
    ("name", "value"), [("nice_priority", "20"), ("ionice_class", "IDLE"), ("ionice_priority", "8")]
)
def test_what_is_no_priority_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=name):
        PrioritySettings.parse({name: value})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_priority_that_is_not_allowed_is_an_error():
    with pytest.raises(ConfigError, match="nice_priority = -20"):
        set_priority(PrioritySettings(nice_priority=-20))
