"""swift-ring-composer: make one ring out of the builders of several regions.

What may be composed is decided in ``ring.composite``; this file reads the arguments, loads the builders and
writes the composite file and the ring, in that order only after both are ready. spec: ring.md §12
"""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

from swift.config.commandline import CommandLine
from swift.ring.builder import RingBuilder
from swift.ring.composite import Composition, compose, load_composition, save_composition
from swift.ring.errors import BuilderFileError, RingError
from swift.ring.ringfile import save_table

_EXIT_ERROR = 2
_NOTE = """
NOTE: This tool is for experimental use and may be
      removed in future versions of Swift.
"""


class _Parser(CommandLine):
    def error(self, message: str) -> NoReturn:
        self.exit(_EXIT_ERROR, f"{self.prog}: error: {message}\n")


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = _Parser(
        prog="swift-ring-composer",
        description="Makes a composite ring out of builders with the same part power and disjoint regions.",
        epilog="Example: swift-ring-composer object.composite compose r1.builder r2.builder "
        "--output object.ring.gz",
    )
    parser.add_argument("composite_builder_file", help="remembers what the ring was made of")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    show = commands.add_parser(
        "show",
        help="show what the ring was made of",
        epilog="Example: swift-ring-composer object.composite show",
    )
    show.add_format("both are JSON")
    make = commands.add_parser(
        "compose",
        help="make the ring",
        epilog="Example: swift-ring-composer object.composite compose --output object.ring.gz",
    )
    make.add_argument("builder_file", nargs="*", help="component builders; default: those of last time")
    make.add_argument("--output", required=True, metavar="ring_file", help="the ring to write")
    make.add_argument("--force", action="store_true", help="accept other or unchanged components")
    make.add_argument("--dry-run", action="store_true", help="check everything, write nothing")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run ``show`` or ``compose``; 0 or 2."""
    options = make_parser().parse_args(argv)
    print(_NOTE, file=sys.stderr)
    path = options.composite_builder_file
    composition = Composition()
    if options.command == "show" or os.path.exists(path):
        try:
            composition = load_composition(path)
        except (BuilderFileError, OSError) as error:
            return _fail("loading the composite builder file", error)
    if options.command == "show":
        print(json.dumps(composition.metadata(), indent=4, sort_keys=True))
        return 0
    paths = options.builder_file or [
        composition.files.get(part.id, f"(no file known for builder {part.id})")
        for part in composition.components
    ]
    try:
        builders = [(place, _load(place)) for place in paths]
        composed, table = compose(composition, builders, force=options.force)
        if not options.dry_run:
            save_table(table, options.output, format_version=1)
            save_composition(composed, path)
    except (RingError, OSError) as error:
        return _fail("composing the ring", error)
    return 0


def _load(path: str) -> RingBuilder:
    try:
        return RingBuilder.load(path)
    except FileNotFoundError:
        raise BuilderFileError(path, "Ring Builder file does not exist")


def _fail(action: str, error: Exception) -> int:
    print(f"An error occurred while {action}.\nOriginal exception message:\n{error}", file=sys.stderr)
    return _EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
