"""Configuration is read the way operators write it, and what cannot be read is told with its place."""

import pytest

from swift.base.errors import ConfigError
from swift.config.files import files_of, parser_of, read_section, read_sections


@pytest.fixture
def write(tmp_path):
    def made(text, name="a.conf"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return made


def option(write, value, more=""):
    return read_section(write(f"[DEFAULT]\nroot = /srv\n[app]\n{more}x = {value}\n"), "app")["x"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("%(root)s/a", "/srv/a"),
        ("%(root)s/%(root)s", "/srv//srv"),
        ("50%", "50%"),
        ("%", "%"),
        ("%%", "%%"),
        ("%s %d %(", "%s %d %("),
        ("%(unknown)s", "%(unknown)s"),
        ("%(root)s 50% %(unknown)s", "/srv 50% %(unknown)s"),
        ("%()s", "%()s"),
        ("", ""),
        ("a = b ; c # d", "a = b ; c # d"),
        ("é", "é"),
    ],
)
def test_a_name_is_replaced_and_every_other_percent_sign_stands_for_itself(write, text, value):
    assert option(write, text) == value


def test_a_name_that_means_itself_is_no_endless_loop(write):
    assert option(write, "%(x)s") == "%(x)s"
    assert option(write, "%(y)s", "y = %(x)s\n") in ("%(x)s", "%(y)s")


def test_names_keep_their_letters_and_a_section_has_what_is_default(write):
    path = write("[DEFAULT]\nA = 1\nb = 2\n[app]\na = 3\nb = 4\n[app]\nc = 5\n[DEFAULT]\nd = 6\n")
    assert read_sections(path) == {"app": {"A": "1", "a": "3", "b": "4", "c": "5", "d": "6"}}
    assert parser_of(path, {"here": "/etc"}).get("app", "here") == "/etc"


def test_a_section_that_is_not_there_has_what_is_default_with_its_names_replaced(write):
    path = write("[DEFAULT]\nroot = /srv\nx = %(root)s/a\n")
    assert read_section(path, "absent") == {"root": "/srv", "x": "/srv/a"}


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("x = 1\n", "line 1 stands in no section"),
        ("# a\n\n[app\nx = 1\n", "line 3 stands in no section"),
        ("[app]\nx = 1\nkey = s\nsecret\n", "line 4 is neither a section nor an option"),
        ("[app]\n= secret\n", "line 2 is neither a section nor an option"),
        (b"[app]\nx = \xff\n", "can't decode byte 0xff"),
    ],
)
def test_bad_syntax_is_told_with_file_and_line_and_without_what_stands_there(write, text, flaw):
    path = write(text)
    with pytest.raises(ConfigError) as told:
        read_sections(path)
    assert str(told.value).startswith(f"cannot read {path}: ") and flaw in str(told.value)
    assert "secret" not in str(told.value) and "\n" not in str(told.value)


def test_a_folder_is_its_files_in_order_and_later_ones_win(write, tmp_path):
    write("[app]\nx = 2\ny = 2\n", "a.conf.d/20.conf")
    write("[app]\nx = 1\n[other]\nz = 1\n", "a.conf.d/10.conf")
    for ignored in (".hidden.conf", "a.conf~", "readme"):
        write("nonsense", f"a.conf.d/{ignored}")
    for path in (tmp_path / "a.conf.d", tmp_path / "a.conf"):
        assert read_sections(path) == {"app": {"x": "2", "y": "2"}, "other": {"z": "1"}}


def test_a_file_comes_before_a_folder_of_its_name(write, tmp_path):
    write("[app]\nx = 1\n", "a.conf.d/1.conf")
    assert files_of(write("[app]\n")) == [tmp_path / "a.conf"]


@pytest.mark.parametrize("name", ["none.conf", "none/none.conf", "a.conf/below"])
def test_what_is_not_there_is_told(write, tmp_path, name):
    write("[app]\n")
    with pytest.raises(ConfigError, match="unable to locate .*; name another path"):
        files_of(tmp_path / name)


def test_a_folder_without_files_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"no \*\.conf file"):
        files_of(tmp_path)


def test_what_is_no_file_is_told_in_one_sentence(tmp_path):
    (tmp_path / "d.conf").mkdir()
    with pytest.raises(ConfigError, match="cannot read .*d.conf: Is a directory"):
        parser_of(tmp_path)
