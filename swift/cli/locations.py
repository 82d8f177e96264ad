"""Where an entity lies: the block of nodes, curl and ssh lines that several tools print.

spec: cli-and-config.md §9
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.policy.policy import Policy, with_policy_suffix
from swift.ring.device import Node, address
from swift.ring.view import RingView

_CURL = 'curl -g -I -XHEAD "http://{server}/{device}/{part}/{target}"{policy} --path-as-is{mark}'
_SSH = 'ssh {ip} "ls -lah ${{DEVICE:-/srv/node*}}/{device}/{below}"{mark}'
_NOTE = (
    "note: `/srv/node*` is used as default value of `devices`, "
    "the real value is set in the config file on each storage node."
)


class HoldingNode(NamedTuple):
    """A node that holds, or may hold, what is looked for."""

    node: Node
    is_handoff: bool


@dataclass(frozen=True)
class Located:
    """A partition with its nodes; ``hash`` and ``path`` are None when only the partition is known."""

    #: ``accounts``, ``containers`` or ``objects[-N]``.
    directory: str
    part: int
    hash: str | None
    path: EntityPath | None
    places: tuple[HoldingNode, ...]
    #: The policy that requests must name.
    policy_index: int | None = None

    def lines(self) -> Iterator[str]:
        """The block as it is printed."""
        yield f"Partition\t{self.part}"
        yield f"Hash     \t{self.hash}"
        yield ""
        for node, is_handoff in self.places:
            yield f"Server:Port Device\t{node.ip}:{node.port} {node.device}" + (
                "\t [Handoff]" if is_handoff else ""
            )
        yield from ("", "")
        yield from (self._curl(*place) for place in self.places)
        yield from ("", "", "Use your own device location of servers:")
        yield 'such as "export DEVICE=/srv/node"'
        yield from (self._ssh(*place) for place in self.places)
        yield from ("", _NOTE)

    def _curl(self, node: Node, is_handoff: bool) -> str:
        index = self.policy_index
        return _CURL.format(
            server=address(node.ip, node.port),
            device=node.device,
            part=self.part,
            target="None" if self.path is None else self.path.quoted[1:],
            policy="" if index is None else f' -H "X-Backend-Storage-Policy-Index: {index}"',
            mark=" # [Handoff]" if is_handoff else "",
        )

    def _ssh(self, node: Node, is_handoff: bool) -> str:
        below = f"{self.directory}/{self.part}"
        if self.hash is not None:
            below += f"/{self.hash[-3:]}/{self.hash}"
        return _SSH.format(
            ip=node.ip, device=node.device, below=below, mark=" # [Handoff]" if is_handoff else ""
        )

    def as_json(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "partition": self.part,
            "hash": self.hash,
            "path": None if self.path is None else str(self.path),
            "directory": self.directory,
            "policy_index": self.policy_index,
            "nodes": [{**node.record(), "handoff": is_handoff} for node, is_handoff in self.places],
        }


def directory_of(path: EntityPath, policy_index: int = 0) -> str:
    """The directory of a device in which an entity's kind is kept."""
    return with_policy_suffix("objects", policy_index) if path.kind == "object" else f"{path.kind}s"


def locate(
    view: RingView,
    digest: bytes,
    path: EntityPath,
    *,
    policy: Policy | None = None,
    all_handoffs: bool = False,
) -> Located:
    """Where an entity lies; as many handoffs as primaries unless all are wanted."""
    index = None if policy is None else policy.index
    part = view.partition_of(digest)
    return Located(
        directory_of(path, index or 0),
        part,
        digest.hex(),
        path,
        places_of(view, part, all_handoffs=all_handoffs),
        index,
    )


def places_of(view: RingView, part: int, *, all_handoffs: bool) -> tuple[HoldingNode, ...]:
    """The nodes of a partition; none of one beyond the ring."""
    if part >= view.partition_count:
        return ()
    primaries = view.primaries(part)
    handoffs = islice(view.handoffs(part), None if all_handoffs else len(primaries))
    return (
        *(HoldingNode(node, False) for node in primaries),
        *(HoldingNode(node, True) for node in handoffs),
    )
