"""swift-config: show what a configuration comes to, after defaults and directories were merged.

spec: cli-and-config.md §8.3
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from swift.base.errors import ConfigError, SwiftError
from swift.config.commandline import CommandLine
from swift.config.files import files_of, parser_of
from swift.runtime.service.services import SWIFT_DIR, config_paths, parse_service

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
        found = config_paths(service, swift_dir, number)
        if not found:
            print(f"Unable to locate config for {service}")
        yield from found


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-config",
        description="Show what a configuration comes to, after defaults and directories were merged.",
        epilog="example: swift-config -s object-auditor object-server.1",
    )
    parser.add_argument("names", nargs="*", metavar="SERVER", help="a server, or the path of a configuration")
    parser.add_argument(
        "-c", "--config-num", type=int, default=0, metavar="N", help="only the Nth configuration"
    )
    parser.add_argument("-s", "--section", default="", help="only this section")
    parser.add_argument("-w", "--wsgi", action="store_true", help="show what PasteDeploy hands to a pipeline")
    parser.add_argument("--swift-dir", default=SWIFT_DIR, help="directory of the configuration (%(default)s)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to show it")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    if not args.names:
        print("ERROR: specify type of server or conf_path", file=sys.stderr)
        return 1
    try:
        shown = {}
        for path in _configs(args.names, args.swift_dir, args.config_num):
            sections = paste_view(path) if args.wsgi else plain_view(path)
            if args.format == "json":
                shown[path] = {k: v for k, v in sections.items() if not args.section or k == args.section}
                continue
            top = {} if args.wsgi else {"log_name": "None", "__file__": path}
            print("\n".join(_lines(path, sections, args.section, top)))
        if args.format == "json":
            print(json.dumps(shown, indent=2))
    except (SwiftError, OSError) as error:
        print(f"swift-config: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
