"""A daemon that has nothing to do on this node, as its configuration says."""

from __future__ import annotations

from swift.config.files import parser_of
from swift.runtime.daemon import Pass, PassContext, PassReport


class Resting:
    """The task of such a daemon; it needs no pipeline of its own."""

    def __init__(self, name: str):
        self.name = name

    def shares(self) -> list[str]:
        """There is nothing to be done."""
        return []

    def begin(self, share: str, context: PassContext) -> Pass[object]:
        """There is no share to begin with; raises LookupError."""
        raise LookupError(share)

    def report(self, passed: PassReport) -> dict[str, object]:
        """Nothing."""
        return {}

    progress = report


def is_of_server(path: str) -> bool:
    """Whether a configuration file is that of a container server, whose pipeline is none for a client."""
    return parser_of(path).has_section("app:container-server")
