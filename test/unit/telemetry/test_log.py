"""Log lines: one line an event, with the transaction id."""

import logging
import re
import subprocess
import sys

import pytest

from swift.base.errors import ConfigError
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
    assert lines == [] and not log.is_debug_enabled and log.is_enabled(logging.INFO)


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


@pytest.mark.process
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


def test_functions_of_the_operator_get_the_logger_and_see_every_line(tmp_path, monkeypatch):
    (tmp_path / "ours_handlers.py").write_text(
        "import logging\n"
        "calls, lines = [], []\n"
        "class Keep(logging.Handler):\n"
        "    def emit(self, record):\n"
        "        lines.append(record.getMessage())\n"
        "def add(conf, name, log_to_console, log_route, fmt, logger, adapted_logger):\n"
        "    calls.append((conf, name, log_to_console, log_route, fmt))\n"
        "    logger.addHandler(Keep())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings = LogSettings(log_custom_handlers=("ours_handlers.add",))
    log = make_log(settings, name="object-server", conf={"devices": "/srv/node"})
    log.error("it failed", txid="tx1")
    log.raw("GET /")
    import ours_handlers

    fmt = "%(server)s: %(message)s"
    assert ours_handlers.calls == [({"devices": "/srv/node"}, "object-server", False, "object-server", fmt)]
    assert ours_handlers.lines == ["it failed (txn: tx1)", "GET /"]


@pytest.mark.parametrize("path", ["os.nothing", "no_such_module.add", "add", ""])
def test_a_function_that_is_not_there_stops_the_start(path):
    with pytest.raises(ConfigError, match="log_custom_handlers"):
        make_log(LogSettings(log_custom_handlers=(path,)))
