"""The command line that every command has: what ``argparse`` reads, and ``--version``."""

from __future__ import annotations

import argparse

from swift import DISTRIBUTION, __version__

#: The text of ``--version`` after the name of the command.
VERSION = f"{DISTRIBUTION} {__version__}"


class HelpText(argparse.HelpFormatter):
    """Wraps descriptions; examples and texts that have lines already stay as they are, to be pasted."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text or text.lower().startswith("example"):
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


class CommandLine(argparse.ArgumentParser):
    """A parser with ``--version``, which its subcommands have as well."""

    def __init__(
        self,
        prog: str | None = None,
        usage: str | None = None,
        description: str | None = None,
        epilog: str | None = None,
        formatter_class: type[argparse.HelpFormatter] = HelpText,
        add_help: bool = True,
        **later: bool,
    ):
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=formatter_class,
            add_help=add_help,
        )
        # Newer interpreters hand more on to the parsers of sub-commands: Python 3.14 ``color``.
        vars(self).update(later)
        if add_help:
            text = f"%(prog)s ({VERSION})"
            self.add_argument("--version", action="version", version=text, help="print the version and exit")
