"""Directories that servers and daemons write to, as their configuration names them.

``known.json`` lists the options, so that no module of a filter or an engine is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from swift.base.truth import is_true
from swift.config.files import raw_sections
from swift.config.schema import DEVICES, FILE, Writes
from swift.config.unknown import DEFAULT, options_of


@dataclass(frozen=True)
class WrittenPath:
    """A directory in which processes write, and the option that names it."""

    directory: str
    #: File, section and option, for messages.
    option: str
    #: True if only its subdirectories, the devices, are written to.
    has_devices: bool = False


def written_paths(path: str) -> Iterator[WrittenPath]:
    """Yield the directories that a configuration names, and defaults of sections that it has.

    Raises ``ConfigError`` for a file that cannot be read.
    """
    sections = raw_sections(path)
    shared = sections.get(DEFAULT, {})
    pipeline = " ".join(options.get("pipeline", "") for options in sections.values()).split()
    for heading, own in sections.items():
        if heading.startswith("filter:") and heading.removeprefix("filter:") not in pipeline:
            continue
        options = {**shared, **own}
        for name, writes in options_of(heading, own).items():
            is_default = name not in own
            if (is_default and writes.is_shared) or not _applies(writes, options):
                continue
            value = options.get(name, writes.default).strip()
            if value:
                directory = os.path.dirname(value) if writes.kind == FILE else value
                yield WrittenPath(directory, f"{path} [{heading}] {name}", writes.kind == DEVICES)


def _applies(writes: Writes, options: Mapping[str, str]) -> bool:
    return (not writes.when or is_true(options.get(writes.when))) and not is_true(options.get(writes.unless))
