"""Options declared once: a frozen dataclass per configuration section.

    @dataclass(frozen=True)
    class ObjectSettings(Settings):
        conn_timeout: float = option(0.5, "Seconds to wait for a connection.", kind=SECONDS)

From the class come the parsed, frozen value (``parse``), the commented sample (``config.render``), the
reference pages and the error text of a bad value. The kind defaults to the one of the default's type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from swift.base.errors import ConfigError
from swift.config.kinds import INTEGER, LIST, NUMBER, TEXT_KIND, TRUTH, Kind

#: The options of a section as PasteDeploy and the INI reader give them.
Conf = Mapping[str, str]

#: Keys that PasteDeploy or the INI reader put beside a section's own options.
PLUMBING_KEYS = frozenset(("here", "__file__", "use", "paste.app_factory", "paste.filter_factory", "next"))


#: Kinds of paths that are written to: a directory, a file, or the directory of the devices.
DIRECTORY, FILE, DEVICES = "directory", "file", "devices"


class Writes(NamedTuple):
    """The value of an option is a path that its process writes to."""

    kind: str = DIRECTORY
    #: A true or false option of the section: only if it is true.
    when: str = ""
    #: Only if that one is not true.
    unless: str = ""
    default: str = ""
    #: True if all sections have the option; then its default stands for no section.
    is_shared: bool = False


class Option(NamedTuple):
    """One declared option: its name in the file, kind, default, one-line doc and other names."""

    name: str
    kind: Kind
    default: Any
    doc: str
    aliases: tuple[str, ...]
    sample: str | None
    writes: Writes | None


def _kind_of(default: Any) -> Kind:
    if isinstance(default, bool):
        return TRUTH
    if isinstance(default, int):
        return INTEGER
    if isinstance(default, float):
        return NUMBER
    if isinstance(default, tuple):
        return LIST
    return TEXT_KIND


def option(
    default: Any,
    doc: str,
    *,
    kind: Kind | None = None,
    aliases: Iterable[str] = (),
    sample: str | None = None,
    writes: Writes | None = None,
) -> Any:
    """Return a dataclass field that is an option; ``writes`` tells that its path is written to.

    ``sample`` replaces the printed default in conf samples where the default depends on the machine.
    A ``default`` given as text for a kind with parsed values is parsed like file content.
    """
    kind = kind or _kind_of(default)
    shown = sample
    if isinstance(default, str) and kind is not TEXT_KIND and kind.name != "choice":
        shown = default if sample is None else sample
        default = kind.parse(default)
    return dataclasses.field(
        default=default,
        metadata={"doc": doc, "kind": kind, "aliases": tuple(aliases), "sample": shown, "writes": writes},
    )


@dataclasses.dataclass(frozen=True)
class Settings:
    """Base of all sections; subclasses only declare ``option`` fields."""

    #: Names that other releases read and this one does not need, each with the reason.
    without_effect: ClassVar[Mapping[str, str]] = {}
    #: Shell patterns of options whose names operators make up.
    option_patterns: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def options(cls) -> Iterator[Option]:
        """Yield the declared options in order."""
        for field in dataclasses.fields(cls):
            meta = field.metadata
            yield Option(field.name, default=field.default, **meta)

    @classmethod
    def parse(cls, values: Mapping[str, str], *, source: str = "") -> Self:
        """Return the section's values from text; missing ones get their defaults.

        ``source`` names file and section in errors. Raises ``ConfigError`` naming the option for a bad value.
        Options that are not declared are left to ``config.unknown``.
        """
        parsed: dict[str, Any] = {}
        for opt in cls.options():
            for name in (opt.name, *opt.aliases):
                if name in values:
                    parsed[opt.name] = _parse_one(opt, str(values[name]), source)
                    break
        return cls(**parsed)

    @classmethod
    def known_names(cls) -> frozenset[str]:
        """Every name that ``parse`` reads."""
        return frozenset(name for opt in cls.options() for name in (opt.name, *opt.aliases))


def _parse_one(opt: Option, text: str, source: str) -> Any:
    try:
        return opt.kind.parse(text)
    except ValueError as error:
        where = f"{source}: " if source else ""
        raise ConfigError(f"{where}option {opt.name} {error}")
