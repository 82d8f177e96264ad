"""The proxy from its configuration: what cannot be computed here is said once, and the rest works."""

import sys

import pytest

from swift.proxy.factory import app_factory
from test.support.nodes import with_ec
from test.support.sim import write_rings


@pytest.fixture
def conf(tmp_path):
    write_rings(tmp_path)
    (tmp_path / "swift.conf").write_text(with_ec(3, 2, "ec32"))
    return {"swift_dir": str(tmp_path), "log_to_console": "true"}


def test_a_missing_library_is_one_line_at_the_start(conf, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "pyeclib", None)
    assert app_factory(conf).context.policies.get(1).is_ec
    lines = [line for line in capfd.readouterr().err.splitlines() if "ec32" in line]
    assert len(lines) == 1 and "out of order on this proxy: erasure coding needs PyECLib" in lines[0]


def test_with_the_library_nothing_is_said(conf, capfd):
    app_factory(conf)
    assert "out of order" not in capfd.readouterr().err


@pytest.mark.parametrize(("text", "value"), [("true", "1"), ("false", "")])
def test_fragments_can_be_written_for_old_libraries(conf, monkeypatch, text, value):
    monkeypatch.setenv("LIBERASURECODE_WRITE_LEGACY_CRC", "before")
    app_factory(conf)
    assert __import__("os").environ["LIBERASURECODE_WRITE_LEGACY_CRC"] == "before"
    app_factory(conf, write_legacy_ec_crc=text)
    assert __import__("os").environ["LIBERASURECODE_WRITE_LEGACY_CRC"] == value
