"""swift-config: show what a configuration comes to, after defaults and directories were merged.

With ``--units`` it lets the units of systemd write where the configuration says.

spec: cli-and-config.md §8.3
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from swift.base.errors import ConfigError
from swift.base.nearest import nearest
from swift.config.commandline import CommandLine, reports_errors
from swift.config.files import files_of, parser_of
from swift.config.written import written_paths
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.runtime.service.checks import WRITABLE_PATHS, is_below, unit_of
from swift.runtime.service.services import (
    GROUPS,
    SWIFT_DIR,
    Service,
    config_paths,
    is_configured,
    parse_service,
)

UNIT_DIR = "/etc/systemd/system"
#: Directories with the units of packages.
UNIT_DIRS = ("/usr/local/lib/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system")
DROP_IN = "swift-paths.conf"
#: Units that read the configuration of the object server, too.
_UNITS_OF_OBJECTS = ("swift-recon-cron", "swift-cache-verify")

Sections = Mapping[str, Mapping[str, str]]


def plain_view(path: str) -> dict[str, dict[str, str]]:
    """Return every section as daemons read it, with the options of DEFAULT. Raises ``ConfigError``."""
    parser = parser_of(path)
    return {name: dict(parser.items(name)) for name in parser.sections()}


def paste_view(path: str) -> dict[str, dict[str, str]]:
    """Return the pipeline and its parts as PasteDeploy hands them to filters and apps.

    Raises ``ConfigError``.
    """
    parser = parser_of(path)
    if not parser.has_section("pipeline:main"):
        raise ConfigError(f"{path} has no [pipeline:main]")
    where = os.path.abspath(path)
    given = {"here": os.path.dirname(where), "__file__": where, **parser.defaults()}

    def options(section: str, name: str) -> dict[str, str]:
        own = {key: value for key, value in parser.items(section) if key not in parser.defaults()}
        for key in list(own):
            if key.startswith("set "):
                given_here[key.removeprefix("set ").strip()] = own.pop(key)
        own.pop("use", None)
        return {**given_here, "__name__": name, **own}

    names = parser.get("pipeline:main", "pipeline").split()
    found: dict[str, dict[str, str]] = {"pipeline:main": {}}
    used = []
    for position, name in enumerate(names):
        kind, shown = ("app", "application") if position == len(names) - 1 else ("filter", "filter")
        section = next(
            (each for each in (f"{kind}:{name}", f"{shown}:{name}") if parser.has_section(each)), None
        )
        if section is None:
            raise ConfigError(f"{path}: the pipeline names {name}, but there is no [{kind}:{name}]")
        used.append(parser.get(section, "use", fallback=name).rpartition("#")[2])
        given_here = dict(given)
        found[f"{shown}:{name}"] = options(section, name)
    given_here = dict(given)
    found["pipeline:main"] = {**options("pipeline:main", "main"), "pipeline": " ".join(used)}
    return found


def _lines(path: str, sections: Sections, wanted: str, top: Mapping[str, str]) -> Iterator[str]:
    yield f"# {path}"
    for name, options in sections.items():
        if wanted and name != wanted:
            continue
        yield f"[{name}]"
        yield from (f"{key} = {value}" for key, value in options.items())
        yield ""
    if not wanted:
        yield from (f"# {key} = {value}" for key, value in top.items())
    yield ""


def _configs(words: Sequence[str], swift_dir: str, number: int) -> Iterator[str]:
    for word in words:
        if os.path.exists(word):
            files_of(word)
            yield word
            continue
        if "/" in word:
            raise ConfigError(f"{word} does not exist")
        service = parse_service(word)
        if not service.is_known:
            raise ConfigError(f"unknown server {word}{nearest(service.name, GROUPS['all'])}")
        found = config_paths(service, swift_dir, number)
        if not found:
            print(f"Unable to locate config for {service}")
        yield from found


def units_of(swift_dir: str) -> Iterator[tuple[str, str]]:
    """Yield each unit of systemd with the configuration that its command reads."""
    for name in GROUPS["all"]:
        service = Service(name)
        for path in config_paths(service, swift_dir):
            if is_configured(service, path) and (unit := unit_of(name, path, swift_dir)):
                yield unit, path
                if not service.is_server:
                    yield "swift-daemons.service", path
                if unit == "swift-object-server.service":
                    yield from ((f"{other}.service", path) for other in _UNITS_OF_OBJECTS)


def drop_in(directories: Sequence[str]) -> str:
    """Return the text of a drop-in that lets a unit write to directories."""
    paths = " ".join(map(_drop_in_word, directories))
    return f"# Written by swift-config --units.\n[Service]\nReadWritePaths={paths}\n"


def _drop_in_word(directory: str) -> str:
    """Return a directory as systemd reads it: percent signs and blanks have a meaning there."""
    word = f"-{directory}".replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{word}"' if re.search(r"[\s\"'\\]", word) else word


def write_drop_ins(swift_dir: str, unit_dir: str) -> Iterator[str]:
    """Write the drop-ins of all units, and remove those that are not needed; yield each change.

    Raises ``ConfigError`` and OSError.
    """
    wanted: dict[str, dict[str, None]] = {}
    for unit, path in units_of(swift_dir):
        directories = wanted.setdefault(_real_name(unit, unit_dir), {})
        directories.update(
            (each.directory, None)
            for each in written_paths(path)
            if not is_below(each.directory, WRITABLE_PATHS)
        )
    for unit, found in wanted.items():
        file = Path(unit_dir, f"{unit}.d", DROP_IN)
        text = drop_in(tuple(found)) if found else ""
        if text == (file.read_text() if file.exists() else ""):
            continue
        if text:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(Disk(), str(file), text.encode(), mode=0o644)
        else:
            file.unlink()
        yield f"{file}: {', '.join(found) if found else 'removed'}"


def _real_name(unit: str, unit_dir: str) -> str:
    """Return the name under which a unit is installed: Debian's packages leave -server out."""
    other = unit.replace("-server", "", 1)
    for folder in (unit_dir, *UNIT_DIRS):
        for name in (unit, other):
            base, at, _instance = name.partition("@")
            file = Path(folder, f"{base}@.service" if at else name)
            if file.exists() and not file.is_symlink():
                return name
    return unit


def _units(args: argparse.Namespace) -> int:
    changes = list(write_drop_ins(args.swift_dir, args.unit_dir))
    for change in changes:
        print(change)
    if changes:
        units = " ".join(Path(change.partition(": ")[0]).parent.name.removesuffix(".d") for change in changes)
        print(f"Then run: systemctl daemon-reload && systemctl try-restart {units}")
    else:
        print("The units may write to all configured directories; nothing was changed.")
    return 0


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-config",
        description="Show what a configuration comes to, after defaults and directories were merged.",
        epilog="examples:\n  swift-config -s object-auditor object-server.1\n  swift-config --units\n",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="SERVER", help="a server, or the path of a configuration")
    add("-c", "--config-num", type=int, default=0, metavar="N", help="only the Nth configuration")
    add("-s", "--section", default="", help="only this section")
    add("-w", "--wsgi", action="store_true", help="show what PasteDeploy hands to a pipeline")
    add(
        "--units",
        action="store_true",
        help="let the units of systemd write to the configured directories, by drop-ins",
    )
    add("--unit-dir", default=UNIT_DIR, help="directory for the drop-ins of --units (%(default)s)")
    add("--swift-dir", default=SWIFT_DIR, help="directory of the configuration (%(default)s)")
    parser.add_format("how to show it")
    return parser


@reports_errors("swift-config")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    if not args.names and not args.units:
        print("ERROR: specify type of server or conf_path", file=sys.stderr)
        return 1
    if args.units:
        return _units(args)
    shown = {}
    views = {
        path: paste_view(path) if args.wsgi else plain_view(path)
        for path in _configs(args.names, args.swift_dir, args.config_num)
    }
    known = {name for sections in views.values() for name in sections}
    if views and args.section and args.section not in known:
        raise ConfigError(f"no file has a section {args.section}{nearest(args.section, known)}")
    for path, sections in views.items():
        if args.format == "json":
            shown[path] = {k: v for k, v in sections.items() if not args.section or k == args.section}
            continue
        top = {} if args.wsgi else {"log_name": "None", "__file__": path}
        print("\n".join(_lines(path, sections, args.section, top)))
    if args.format == "json":
        print(json.dumps(shown, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
