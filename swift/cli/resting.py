"""A daemon that has nothing to do on this node, as its configuration says."""

from __future__ import annotations

from swift.cli.daemonize import DaemonParts
from swift.compose import internal_client
from swift.config.files import parser_of
from swift.gateway.internal_client import InternalClient
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


def own_client(parts: DaemonParts, name: str, conf_path: str, tries: int) -> InternalClient | None:
    """The client of a daemon whose own file has its pipeline, unless ``conf_path`` names another.

    It answers with no object that its pipeline cannot decrypt. None, with a warning, when the file is that of
    a container server, whose pipeline is none for a client.
    """
    if not conf_path and parser_of(parts.conf_path).has_section("app:container-server"):
        parts.context.telemetry.log.warning(
            f"{parts.conf_path} [{name}]: internal_client_conf_path is not set; nothing is done here"
        )
        return None
    path = conf_path or parts.conf_path
    return internal_client(path, name, tries=tries, use_replication_network=True, must_decrypt=True)
