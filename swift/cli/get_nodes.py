"""swift-get-nodes: tell where an account, container, object or partition lies.

spec: cli-and-config.md §9
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from swift.base.entity import EntityPath, quote_path
from swift.base.errors import ConfigError
from swift.compose import Cluster, cluster_of
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.operations.info import Located, holding_nodes, locate
from swift.policy.policy import Policy, with_policy_suffix
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from swift.runtime.service.services import SWIFT_DIR
from swift.store.registry import is_packed

_RING = re.compile(r"(account|container|object)(?:-(\d+))?\Z")


class WrongTarget(Exception):
    """The arguments do not identify an entity; the text has the reason."""


class LookupTarget(NamedTuple):
    """Entity to look up, and its ring."""

    ring: str
    policy: Policy | None
    path: EntityPath | None
    part: int | None


def parse_target(args: argparse.Namespace, cluster: Cluster) -> LookupTarget:
    """Return the entity that the arguments name. Raises ``WrongTarget``."""
    words = list(args.words)
    policy, ring = None, ""
    if args.policy_name:
        policy = cluster.policies.named(args.policy_name)
        if policy is None:
            raise WrongTarget(f"No policy named {args.policy_name!r}")
    if words and words[0].endswith("ring.gz"):
        if not os.path.exists(words[0]):
            raise WrongTarget("Ring file does not exist")
        ring = words.pop(0)
    if policy is None and not ring:
        raise WrongTarget("Need to specify policy_name or <ring.gz>")
    if policy is not None and ring:
        raise WrongTarget("Invalid arguments")
    path = None
    if args.partition is not None and args.partition < 0:
        raise WrongTarget(f"There is no partition {args.partition}")
    if args.partition is None:
        path = _path_of(words, quoted=args.quoted)
    if policy is not None:
        name = policy.ring_name if path is None or path.kind == "object" else path.kind
        ring = os.path.join(args.swift_dir, f"{name}.ring.gz")
        if path is not None and path.kind != "object":
            policy = None
    return LookupTarget(ring, policy, path, args.partition)


def _path_of(words: Sequence[str], *, quoted: bool) -> EntityPath:
    if not words:
        raise WrongTarget("No target specified")
    parts: list[str] = words[0].lstrip("/").split("/", 2) if len(words) == 1 else list(words)
    if len(parts) > 3 or not all(parts):
        raise WrongTarget("Invalid arguments")
    if quoted:
        parts = [unquote(part, errors="surrogateescape") for part in parts]
    return EntityPath(*parts)


def _header_lines(path: EntityPath) -> Iterator[str]:
    names = ("Account  ", "Container", "Object   ")
    yield ""
    for name, value in zip(names, path, strict=True):
        if value is not None:
            yield f"{name}\t{quote_path(value)}"
    if path.kind == "object":
        yield from ("", "")


def find_location(target: LookupTarget, cluster: Cluster, *, all_handoffs: bool) -> tuple[Located, str]:
    """Return the entity's location, and a warning when the ring does not match it."""
    view = RingView(load_table(target.ring, thorough=False))
    name = os.path.basename(target.ring).removesuffix(".ring.gz")
    match = _RING.match(name)
    kind, index = (match[1], int(match[2] or 0)) if match else ("", 0)
    if target.path is None:
        part = target.part or 0
        directory = f"{kind}s" if kind in ("account", "container") else with_policy_suffix("objects", index)
        places = holding_nodes(view, part, all_handoffs=all_handoffs)
        policy = None if target.policy is None else target.policy.index
        return Located(directory, part, None, None, places, policy), ""
    digest = cluster.config.hasher.digest(*target.path)
    found = locate(view, digest, target.path, policy=target.policy, all_handoffs=all_handoffs)
    wanted = target.path.kind
    if target.policy is None and wanted == "object" and index:
        directory = with_policy_suffix("objects", index)
        found = replace(found, directory=directory, policy_index=index)
    if wanted not in ("object", kind):
        what = "account" if wanted == "account" else "account/container"
        return found, f'WARNING: {what} specified but ring not named "{wanted}"'
    return found, ""


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-get-nodes",
        usage="swift-get-nodes [options] (<ring> | -P <policy>) (<account> [<container> [<object>]] | -p N)",
        description="Show where an account, container, object or partition is stored.",
        epilog="example: swift-get-nodes -P gold AUTH_test/photos/cat.jpg",
    )
    add = parser.add_argument
    add("words", nargs="*", metavar="name", help="the ring file, unless -P is used, and the names")
    add("-a", "--all", action="store_true", help="show all handoff nodes")
    add("-p", "--partition", type=int, help="show the nodes of a partition")
    add("-P", "--policy-name", default="", help="the policy of an object")
    add("-d", "--swift-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    add("-Q", "--quoted", action="store_true", help="the names are percent-quoted")
    add(
        "--packed",
        action="store_true",
        help="show commands for nodes with the packed engine, although this machine's policy has another",
    )
    parser.add_format("how to show it")
    return parser


def _is_packed_here(found: Located, cluster: Cluster) -> bool:
    index = found.policy_index
    if index is None and found.directory == "objects":
        # A ring file by its path names no policy.
        index = 0
    policy = None if index is None else cluster.policies.get(index)
    try:
        return policy is not None and is_packed(policy)
    except ConfigError:
        # The engine of another package, which storage nodes have.
        return False


@reports_errors("swift-get-nodes")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = make_parser()
    args = parser.parse_intermixed_args(argv)
    try:
        cluster = cluster_of({"swift_dir": args.swift_dir})
        target = parse_target(args, cluster)
        found, warning = find_location(target, cluster, all_handoffs=args.all)
    except WrongTarget as error:
        parser.print_help()
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    found = replace(found, may_be_packed=args.packed or _is_packed_here(found, cluster))
    head = [] if target.path is None else _header_lines(target.path)
    print_report(args, found.as_json(), [*([warning] if warning else ()), *head, *found.lines()])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
