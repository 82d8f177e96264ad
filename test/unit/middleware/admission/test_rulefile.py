"""The file of rules: followed when it changes, and left alone when it cannot be used."""

import os
import stat

import pytest

from swift.base.errors import ConfigError
from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.rulefile import RuleFile
from swift.middleware.admission.rulesexchange import RulesUpdate

ONE = '[[rule]]\nname = "one"\naccount = "AUTH_a"\nweight = 2\n'
TWO = ONE.replace("one", "two")
ALL = Amounts()


@pytest.fixture
def said():
    return []


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(ONE)
    os.utime(path, ns=(10, 10))
    return path


def names(rules):
    return [rule.name for rule in rules.rules]


def test_a_changed_file_is_followed_once(path, said):
    file = RuleFile(str(path), ALL, said.append)
    assert names(file.rules) == ["one"]
    assert not file.reload_if_changed(ALL)
    path.write_text(TWO)
    assert file.reload_if_changed(ALL)
    assert names(file.rules) == ["two"]
    assert not file.reload_if_changed(ALL)
    assert not said


@pytest.mark.parametrize("broken", ["[[rule]\n", '[[rule]]\nname = "x"\nspeed = 1\n', "\0"])
def test_one_that_cannot_be_used_leaves_the_old_rules_and_is_told_of_once(path, said, broken):
    file = RuleFile(str(path), ALL, said.append)
    path.write_text(broken)
    assert not file.reload_if_changed(ALL)
    assert not file.reload_if_changed(ALL)
    assert names(file.rules) == ["one"]
    assert len(said) == 1
    assert str(path) in said[0]


def test_at_a_start_it_is_an_error(path, said):
    path.write_text("[[rule]\n")
    with pytest.raises(ConfigError, match="rules.toml"):
        RuleFile(str(path), ALL, said.append)
    with pytest.raises(ConfigError, match="cannot be read"):
        RuleFile(str(path.with_name("none")), ALL, said.append)


def test_bytes_that_are_no_text_are_said_to_be_none(path, said):
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        RuleFile(str(path), ALL, said.append)


def test_rules_of_another_process_are_written_where_they_are_newer(path, said):
    file = RuleFile(str(path), ALL, said.append)
    path.chmod(0o600)
    assert file.apply_update(RulesUpdate(20, TWO), ALL)
    assert path.read_text() == TWO
    assert path.stat().st_mtime_ns == 20
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "its permissions stay"
    assert not file.reload_if_changed(ALL), "what was written by itself is no news"
    assert not file.apply_update(RulesUpdate(15, ONE), ALL)
    assert not file.apply_update(None, ALL)
    assert names(file.rules) == ["two"]


def test_rules_of_another_process_that_cannot_be_used_change_nothing(path, said):
    file = RuleFile(str(path), ALL, said.append)
    for _ in range(2):
        assert not file.apply_update(RulesUpdate(20, "[[rule]\n"), ALL)
    assert path.read_text() == ONE
    assert len(said) == 1


def test_without_a_file_rules_are_those_that_were_given(said):
    file = RuleFile("", ALL, said.append)
    assert names(file.rules) == []
    assert file.apply_update(RulesUpdate(20, ONE), ALL)
    assert not file.write(RulesUpdate(20, ONE))
    assert names(file.rules) == ["one"]
    assert not file.reload_if_changed(ALL)


def test_a_file_behind_a_link_is_written_and_the_link_stays(path, said, tmp_path):
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    file = RuleFile(str(link), ALL, said.append)
    assert file.apply_update(RulesUpdate(20, TWO), ALL)
    assert link.is_symlink()
    assert path.read_text() == TWO
