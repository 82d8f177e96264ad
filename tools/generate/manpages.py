"""Man pages and the table of all commands, from their ``--help``.

A command's module has ``make_parser``, which makes its command line; the page is written from it, so that the
two cannot differ. The pages say no date and no release, which would change them for no reason.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from swift.entry import commands
from swift.runtime.service import daemonize, serve
from swift.runtime.service.services import MAIN_SERVERS

SECTION = "1"
MANUAL = "Object storage"
SERVER_COMMANDS = frozenset(f"swift-{name}" for name in MAIN_SERVERS)
_SEE_ALSO = ("swift-init", "swift-recon", "swift-health")


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the argument parser of a command, with the command's name."""
    if name in SERVER_COMMANDS:
        return serve.make_parser(name.removeprefix("swift-"))
    module, *words = commands()[name]
    if words:
        return daemonize.make_parser(daemonize.find_daemon(words[0]))
    parser: argparse.ArgumentParser = import_module(f"swift.cli.{module}").make_parser()
    parser.prog = name
    return parser


def escaped(text: str) -> str:
    """Return text escaped for troff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in text.split("\n"))


def _paragraphs(text: str) -> Iterator[str]:
    for number, block in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        yield escaped(block)


def _verbatim(text: str) -> Iterator[str]:
    yield from (".nf", escaped(textwrap.dedent(text).strip("\n")), ".fi")


def _words(action: argparse.Action) -> str:
    """Return the usage of an argument; argparse's own text changes with Python releases."""
    name = str(action.metavar or (action.dest if not action.option_strings else action.dest.upper()))
    if action.choices is not None and not action.metavar:
        name = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return name
    value = "" if action.nargs == 0 else f" {name}"
    return ", ".join(action.option_strings) + value


def _usage(parser: argparse.ArgumentParser) -> str:
    if parser.usage:
        return parser.usage
    words = [parser.prog]
    for action in parser._actions:
        if action.option_strings:
            if "[options]" not in words:
                words.append("[options]")
            continue
        name = str(action.metavar or action.dest)
        words.append({"?": f"[{name}]", "*": f"[{name} ...]"}.get(str(action.nargs), name))
    return " ".join(words)


def _option(action: argparse.Action) -> Iterator[str]:
    about = (action.help or "").replace("%(prog)s", "the command")
    values = {**vars(action), "default": action.default}
    yield from (".TP", f".B {escaped(_words(action))}", escaped(about % values if "%(" in about else about))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Return arguments and options; those of subcommands below their names."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    plain = [action for action in actions if not isinstance(action, argparse._SubParsersAction)]
    if plain:
        yield ".SH OPTIONS"
        for action in plain:
            yield from _option(action)
    for group in actions:
        if not isinstance(group, argparse._SubParsersAction):
            continue
        yield ".SH COMMANDS"
        for choice in group._choices_actions:
            yield f".SS {escaped(choice.dest)}"
            yield escaped(choice.help or "")
            for action in group.choices[choice.dest]._actions:
                yield from _option(action)


def page(name: str) -> str:
    """Return the man page of a command."""
    parser = parser_of(name)
    about = (parser.description or "").strip()
    first = _summary(about)
    out = [
        f'.TH {name.upper()} {SECTION} "" "" "{MANUAL}"',
        ".SH NAME",
        f"{escaped(name)} \\- {escaped(first)}",
        ".SH SYNOPSIS",
        *_verbatim(_usage(parser)),
        ".SH DESCRIPTION",
        *_paragraphs(about),
        *_options(parser),
    ]
    epilog = (parser.epilog or "").strip()
    if epilog:
        out += [".SH EXAMPLES", *_verbatim(_without_heading(epilog))]
    others = [other for other in _SEE_ALSO if other != name and other in commands()]
    out += [".SH SEE ALSO", ", ".join(f"{escaped(each)}({SECTION})" for each in others)]
    return "\n".join(line for line in out if line) + "\n"


def _summary(about: str) -> str:
    """Return the first sentence of a description."""
    return about.split(". ")[0].split("\n")[0].rstrip(".")


def commands_text() -> str:
    """Return the table of all commands as one Markdown page."""
    lines = [
        "# Commands",
        "",
        "Generated by `python -m tools.generate` from the command lines. Each command has `--help` and a man",
        "page in `doc/man`: `man -l doc/man/swift-init.1`. Errors are one line on standard error and an exit",
        "code above 0.",
        "",
        "| command | does | usage |",
        "|---|---|---|",
    ]
    for name in sorted(commands()):
        parser = parser_of(name)
        usage = " ".join(_usage(parser).split()).replace("|", "\\|")
        lines.append(f"| `{name}` | {_summary((parser.description or '').strip())}. | `{usage}` |")
    return "\n".join(lines) + "\n"


def _without_heading(epilog: str) -> str:
    """Return the examples without their heading in ``--help``."""
    for heading in ("examples:", "example:", "Example:"):
        if epilog.startswith(heading):
            return epilog.removeprefix(heading)
    return epilog


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every page below ``root`` with its text."""
    for name in commands():
        yield root / "doc" / "man" / f"{name}.{SECTION}", page(name)
    yield root / "doc" / "reference" / "commands.md", commands_text()
