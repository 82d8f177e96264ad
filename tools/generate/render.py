"""Configuration samples and reference pages from the declared options, so that none is missing."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from swift.config.schema import Option, Settings


@dataclass(frozen=True)
class Section:
    """One section of a sample: its heading, its options and fixed lines such as ``use = …``."""

    heading: str
    settings: tuple[type[Settings], ...] = ()
    lines: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Sample:
    """One ``*.conf-sample`` file."""

    name: str
    about: str
    sections: tuple[Section, ...]


def default_text(option: Option) -> str:
    """Return the default as it would be written in a file."""
    return option.sample if option.sample is not None else option.kind.show(option.default)


def sample_text(sample: Sample) -> str:
    """Return the sample file: every option commented out with its default."""
    out = [f"# {line}" for line in textwrap.wrap(sample.about, 96)]
    out += ["# Generated from the option declarations; every value shown is the default.", ""]
    for section in sample.sections:
        out.append(f"[{section.heading}]")
        out += [f"# {line}" for line in textwrap.wrap(section.note, 96)]
        out += section.lines
        for option in _options(section.settings):
            out.append("#")
            out += [f"# {line}" for line in textwrap.wrap(option.doc, 96)]
            out.append(f"# {option.name} = {default_text(option)}".rstrip())
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def reference_text(samples: Sequence[Sample]) -> str:
    """Return all options of all samples as one Markdown page."""
    out = ["# Configuration reference", "", "Generated from the option declarations.", ""]
    for sample in samples:
        out += [f"## {sample.name}", "", sample.about, ""]
        for section in sample.sections:
            options = list(_options(section.settings))
            if not options:
                continue
            out += [f"### `[{section.heading}]`", ""]
            if section.note:
                out += [section.note, ""]
            out += ["| option | kind | default | meaning |", "|---|---|---|---|"]
            for option in options:
                default = default_text(option).replace("|", "\\|")
                names = ", ".join(f"`{name}`" for name in (option.name, *option.aliases))
                shown = f"`{default}`" if default else "(empty)"
                out.append(f"| {names} | {option.kind.name} | {shown} | {option.doc} |")
            out.append("")
    return "\n".join(out).rstrip() + "\n"


def _options(settings: Sequence[type[Settings]]) -> list[Option]:
    seen: dict[str, Option] = {}
    for cls in settings:
        for option in cls.options():
            seen.setdefault(option.name, option)
    return list(seen.values())
