"""Reading configuration files the way operators expect (spec: cli-and-config.md §1).

INI files and ``.conf.d`` directories, case-sensitive names, a bare ``%`` allowed. Only text is read
here; ``config.schema`` gives it meaning.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from swift.base.errors import ConfigError

_HEADER = re.compile(r"\[(.+)\]")
_OPTION = re.compile(r"([^\s#;\[=:][^=:]*?)\s*[=:]")
_NAMED = re.compile(r"%\(([^()]+)\)s")


class _LenientInterpolation(configparser.BasicInterpolation):
    """``%(name)s`` is replaced when ``name`` exists; every other ``%`` stands for itself."""

    def before_get(self, parser, section, option, value, defaults):  # type: ignore[no-untyped-def]
        """Interpolate, or give the text as it is."""
        if not isinstance(value, str) or "%(" not in value:
            return value
        try:
            return super().before_get(parser, section, option, value, defaults)
        except configparser.InterpolationError:
            # A bare % stands beside names to replace, or a name does not exist.
            return _NAMED.sub(lambda match: defaults.get(match[1], match[0]), value)

    def before_set(self, parser, section, option, value):  # type: ignore[no-untyped-def]
        """Anything may be stored."""
        return value


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a configuration path stands for: itself, or the sorted ``*.conf`` of a directory.

    Raises ``ConfigError`` when there is none.
    """
    where = Path(path)
    if where.is_dir():
        found = sorted(p for p in where.glob("*.conf") if not p.name.startswith("."))
        if not found:
            raise ConfigError(f"no *.conf file in {where}")
        return found
    if not where.exists() and where.with_name(where.name + ".d").is_dir():
        return files_of(where.with_name(where.name + ".d"))
    if not where.is_file():
        raise ConfigError(
            f"unable to locate {where}; name another path, or run this on a node of the cluster"
        )
    return [where]


def parser_of(
    path: str | os.PathLike[str],
    defaults: Mapping[str, str] | None = None,
    *,
    default_section: str = configparser.DEFAULTSECT,
) -> configparser.ConfigParser:
    """Return a parser filled from ``path``; raises ``ConfigError`` with file and line for bad syntax.

    The options of ``default_section`` stand in all others.
    """
    parser = _new_parser(defaults or {}, default_section)
    for file in files_of(path):
        try:
            _read_text(parser, file.read_text("utf-8"), str(file))
        except UnicodeDecodeError as error:
            raise ConfigError(f"cannot read {file}: {error}")
        except OSError as error:
            raise ConfigError(f"cannot read {file}: {error.strerror}")
    return parser


def _new_parser(defaults: Mapping[str, str], default_section: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(
        defaults=dict(defaults),
        interpolation=_LenientInterpolation(),
        strict=False,
        default_section=default_section,
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    return parser


def _read_text(parser: configparser.ConfigParser, text: str, source: str) -> None:
    try:
        parser.read_string(text, source=source)
    except configparser.Error as error:
        raise ConfigError(f"cannot read {source}: {_flaw(error)}")


def _flaw(error: configparser.Error) -> str:
    """Return the place of a syntax error; the line itself may hold a secret."""
    if isinstance(error, configparser.MissingSectionHeaderError):
        return f"line {error.lineno} stands in no section"
    if isinstance(error, configparser.ParsingError) and error.errors:
        return f"line {error.errors[0][0]} is neither a section nor an option"
    return str(error).splitlines()[0]


def read_sections(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Every section with the values of ``[DEFAULT]`` merged under its own."""
    parser = parser_of(path)
    return {name: dict(parser.items(name)) for name in parser.sections()}


def raw_sections(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Return every section with its own options only, as they are written; ``[DEFAULT]`` is one of them."""
    return _raw(parser_of(path, default_section=""))


def parse_raw(text: str, source: str) -> dict[str, dict[str, str]]:
    """Return what ``raw_sections`` does, of a text; ``source`` names it in errors."""
    parser = _new_parser({}, "")
    _read_text(parser, text, source)
    return _raw(parser)


def _raw(parser: configparser.ConfigParser) -> dict[str, dict[str, str]]:
    return {name: dict(parser.items(name, raw=True)) for name in parser.sections()}


class RepeatedOption(NamedTuple):
    """An option that stands twice in one section of one file; the last one counts."""

    section: str
    option: str
    text: str


def repeated_options(path: str | os.PathLike[str]) -> Iterator[RepeatedOption]:
    """Yield the options that stand twice in a file.

    The files of a directory may repeat each other's options. Raises ``ConfigError``.
    """
    for file in files_of(path):
        lines: dict[tuple[str, str], int] = {}
        section = ""
        for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), 1):
            if header := _HEADER.match(line):
                section = header[1]
            elif match := _OPTION.match(line):
                former = lines.setdefault((section, match[1]), number)
                if former != number:
                    places = f"in lines {former} and {number}; the last one counts"
                    text = f"{file} [{section}]: option {match[1]} stands {places}"
                    yield RepeatedOption(section, match[1], text)


def read_section(path: str | os.PathLike[str], section: str) -> dict[str, str]:
    """One section as a plain INI reader sees it; only DEFAULT when the section is absent."""
    parser = parser_of(path)
    return dict(parser.items(section if parser.has_section(section) else parser.default_section))
