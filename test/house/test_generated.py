"""Generated files are what the declarations say; every option has a sentence."""

from pathlib import Path

from swift.cli.samples import SAMPLES, files
from swift.config.render import default_text

ROOT = Path(__file__).parents[2]


def test_samples_and_reference_are_up_to_date():
    stale = [str(path.relative_to(ROOT)) for path, text in files(ROOT) if path.read_text() != text]
    assert not stale, f"run python -m swift.cli.samples: {stale}"


def test_every_option_says_what_it_means_and_reads_back_its_own_default():
    for sample in SAMPLES:
        for section in sample.sections:
            for settings in section.settings:
                for option in settings.options():
                    assert option.doc.endswith("."), f"{settings.__name__}.{option.name} needs a sentence"
                    if option.sample is None:
                        assert option.kind.parse(default_text(option)) == option.default, option.name
