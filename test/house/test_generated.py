"""Generated files are what the declarations say; every option has a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from swift.entry import commands
from tools.generate.render import default_text
from tools.generate.samples import SAMPLES

ROOT = Path(__file__).parents[2]


@pytest.mark.process
def test_generated_files_are_up_to_date():
    # In a process of its own: modules of commands make the standard library cooperative.
    done = subprocess.run(
        [sys.executable, "-m", "tools.generate", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_option_says_what_it_means_and_reads_back_its_own_default():
    for sample in SAMPLES:
        for section in sample.sections:
            for settings in section.settings:
                for option in settings.options():
                    assert option.doc.endswith("."), f"{settings.__name__}.{option.name} needs a sentence"
                    if option.sample is None:
                        assert option.kind.parse(default_text(option)) == option.default, option.name


def test_the_help_of_every_command_has_an_example():
    for name in commands():
        assert ".SH EXAMPLES" in (ROOT / "doc" / "man" / f"{name}.1").read_text(), name
