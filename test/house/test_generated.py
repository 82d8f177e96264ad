"""Generated files are what the declarations say; every option has a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from swift.cli import s3_matrix, units
from swift.cli.commands import MODULES
from swift.cli.samples import SAMPLES, files
from swift.config.render import default_text

ROOT = Path(__file__).parents[2]


def test_samples_and_reference_are_up_to_date():
    stale = [str(path.relative_to(ROOT)) for path, text in files(ROOT) if path.read_text() != text]
    assert not stale, f"run python -m swift.cli.samples: {stale}"


def test_the_table_of_the_s3_api_is_up_to_date():
    stale = [str(path.relative_to(ROOT)) for path, text in s3_matrix.files(ROOT) if path.read_text() != text]
    assert not stale, f"run python -m swift.cli.s3_matrix: {stale}"


def test_every_option_says_what_it_means_and_reads_back_its_own_default():
    for sample in SAMPLES:
        for section in sample.sections:
            for settings in section.settings:
                for option in settings.options():
                    assert option.doc.endswith("."), f"{settings.__name__}.{option.name} needs a sentence"
                    if option.sample is None:
                        assert option.kind.parse(default_text(option)) == option.default, option.name


@pytest.mark.process
def test_every_command_has_a_man_page_that_says_what_its_help_says():
    # In a process of its own: modules of commands make the standard library cooperative.
    done = subprocess.run(
        [sys.executable, "-m", "swift.cli.manpages", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in (ROOT / "doc" / "man").glob("*.1")}
    assert pages == set(MODULES), "a page for each command, and for nothing else"


def test_every_module_of_a_command_is_there_and_its_help_has_an_example():
    for name, module in MODULES.items():
        assert (ROOT / "swift" / "cli" / f"{module.replace('.', '/')}.py").exists(), name
        assert ".SH EXAMPLES" in (ROOT / "doc" / "man" / f"{name}.1").read_text(), name


def test_units_of_systemd_are_up_to_date_and_no_other_is_there():
    wanted = dict(units.files(ROOT))
    stale = [path.name for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    assert not stale, f"run python -m swift.cli.units: {stale}"
    assert set((ROOT / "etc" / "systemd").iterdir()) == set(wanted)
