"""Options of a configuration file that nothing reads, named with what was probably meant.

``known.json`` lists the names that each section reads. ``python -m tools.generate`` makes it from the
declarations, so that a daemon knows the options of filters and of other daemons without importing them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Self

from swift.base.nearest import nearest
from swift.config.files import raw_sections, repeated_options
from swift.config.schema import PLUMBING_KEYS, Settings, Writes

KNOWN_FILE = Path(__file__).with_name("known.json")
DEFAULT = "DEFAULT"


@dataclass(frozen=True)
class KnownOptions:
    """The options of one section: names, patterns of names, and names without effect with the reason."""

    names: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    without_effect: Mapping[str, str] | None = None
    #: Options whose paths are written to.
    written: Mapping[str, Writes] = field(default_factory=dict)

    @classmethod
    def of(cls, *settings: type[Settings]) -> Self:
        """Return the options that are declared by some settings."""
        return cls(
            frozenset(name for each in settings for name in each.known_names()),
            tuple(sorted({pattern for each in settings for pattern in each.option_patterns})),
            {name: why for each in settings for name, why in each.without_effect.items()},
            {
                opt.name: opt.writes._replace(default=str(opt.default))
                for each in settings
                for opt in each.options()
                if opt.writes
            },
        )

    @classmethod
    def parse(cls, data: Mapping[str, object]) -> Self:
        """Return the options that ``data`` lists; the inverse of ``data``."""
        names, patterns, without = data["names"], data["patterns"], data["without_effect"]
        assert isinstance(names, list) and isinstance(patterns, list) and isinstance(without, dict)
        written = data.get("written", {})
        assert isinstance(written, dict)
        paths = {name: Writes(**each) for name, each in written.items()}
        return cls(frozenset(names), tuple(patterns), without, paths)

    def data(self) -> dict[str, object]:
        """Return what ``known.json`` holds of a section."""
        found: dict[str, object] = {
            "names": sorted(self.names),
            "patterns": sorted(self.patterns),
            "without_effect": dict(sorted((self.without_effect or {}).items())),
        }
        if self.written:
            found["written"] = {name: writes._asdict() for name, writes in sorted(self.written.items())}
        return found

    def __or__(self, other: KnownOptions) -> KnownOptions:
        """Return the options of both."""
        return KnownOptions(
            self.names | other.names,
            (*self.patterns, *other.patterns),
            {**(other.without_effect or {}), **(self.without_effect or {})},
            {**other.written, **self.written},
        )

    def has_pattern(self, name: str) -> bool:
        """Return True if an option is one whose name the operator makes up."""
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)

    def finding(self, name: str) -> str:
        """Return what is to say about an option; empty if it is read."""
        if name in self.names or name in PLUMBING_KEYS or name.startswith("set "):
            return ""
        reason = (self.without_effect or {}).get(name)
        if reason is not None:
            return f"option {name} has no effect: {reason}"
        if self.has_pattern(name):
            return ""
        return f"unknown option {name}{nearest(name, self.names)}"


@cache
def _known() -> Mapping[str, KnownOptions]:
    """Return section → its options; the section ``shared`` is part of all."""
    return {key: KnownOptions.parse(value) for key, value in json.loads(KNOWN_FILE.read_text()).items()}


def section_key(heading: str, entry_point: str) -> str:
    """Return the key of a section in ``known.json``.

    ``entry_point`` is what ``use`` says; filters and apps may have any name, daemons have their own.
    """
    kind, colon, _name = heading.partition(":")
    if kind in ("app", "filter") and colon:
        return f"{kind} {entry_point.removeprefix('egg:swift#')}"
    if heading.startswith("proxy-server:policy:"):
        return "proxy-server:policy"
    return heading


def options_of(heading: str, own: Mapping[str, str]) -> Mapping[str, Writes]:
    """Return the options of a section whose paths are written to."""
    known = _known()
    section = known.get(section_key(heading, own.get("use", "")), KnownOptions())
    shared = {name: writes._replace(is_shared=True) for name, writes in known["shared"].written.items()}
    return {**shared, **section.written}


def unknown_options(path: str, *, only: str = "") -> Iterator[str]:
    """Yield a sentence for each option of a file that is unknown, has no effect or stands twice.

    Sections of filters and apps of other projects are not looked at. With ``only``, that section and
    ``[DEFAULT]`` are. Raises ``ConfigError`` for a file that cannot be read.
    """
    known = _known()
    for repeated in repeated_options(path):
        if not only or repeated.section in (only, DEFAULT):
            yield repeated.text
    for heading, own in raw_sections(path).items():
        if only and heading not in (only, DEFAULT):
            continue
        if heading == DEFAULT:
            options = reduce(or_, known.values())
        else:
            section = known.get(section_key(heading, own.get("use", "")))
            if section is None or "paste.filter_factory" in own or "paste.app_factory" in own:
                continue
            options = section | known["shared"]
        for name in own:
            if finding := options.finding(name):
                yield f"{path} [{heading}]: {finding}"
