"""Log lines: one line an event, with the transaction id."""

import logging
import re
import subprocess
import sys

import pytest

from swift.config.common import LogSettings
from swift.telemetry.log import Log, make_log, silent_log


@pytest.fixture
def written():
    """A log and what it writes."""
    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append((record.levelname, record.getMessage()))

    logger = logging.Logger("x", logging.INFO)
    logger.addHandler(Keep())
    return Log(logger), lines


def test_a_sentence_has_the_transaction_that_it_belongs_to_once(written):
    log, lines = written
    log.error("it failed", txid="tx1")
    log.error("tx2 failed", txid="tx2")
    log.info("nothing to do")
    assert lines == [
        ("ERROR", "it failed (txn: tx1)"),
        ("ERROR", "tx2 failed"),
        ("INFO", "nothing to do"),
    ]


def test_lines_below_the_level_are_not_written(written):
    log, lines = written
    log.debug("for developers")
    assert lines == [] and not log.shows_debug and log.is_enabled(logging.INFO)


def test_signs_of_formatting_in_a_sentence_are_text(written):
    log, lines = written
    log.raw("100%s of %d")
    assert lines == [("INFO", "100%s of %d")]


def test_an_error_brings_its_traceback(written):
    log, lines = written
    try:
        raise ValueError("unforeseen")
    except ValueError as error:
        log.exception("it failed", error)
    assert "ValueError: unforeseen" in lines[0][1] and "Traceback" in lines[0][1]


def test_on_a_console_an_event_is_one_line(capsys):
    make_log(LogSettings(log_level="debug"), console=True, name="daemon").warning("first\nsecond")
    out = capsys.readouterr().err
    assert out.count("\n") == 1 and "first" in out and "second" in out and "daemon" in out


def test_an_event_in_a_log_file_begins_with_its_time():
    command = (
        "from swift.config.common import LogSettings; from swift.telemetry.log import make_log; "
        "make_log(LogSettings(), console=True, name='daemon').error('it failed')"
    )
    done = subprocess.run([sys.executable, "-c", command], stderr=subprocess.PIPE, text=True, check=True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ daemon: it failed\n", done.stderr)


def test_a_silent_log_says_nothing(capsys):
    silent_log().error("unheard")
    assert capsys.readouterr().err == ""
