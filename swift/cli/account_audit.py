"""swift-account-audit: compare listings and copies of accounts, containers and objects on all their nodes.

spec: cli-and-config.md §12
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial

from swift import green
from swift.base.entity import EntityPath
from swift.cluster.direct import DirectClient, NodeTimeouts
from swift.cluster.rings import Rings
from swift.compose import cluster_of, connections_to_nodes
from swift.config.commandline import CommandLine, reports_errors
from swift.operations.auditing import Auditor
from swift.runtime.service.services import SWIFT_DIR
from swift.telemetry.telemetry import Telemetry

TIMEOUTS = NodeTimeouts(5.0, 60.0)


def parse_url(text: str) -> EntityPath | None:
    """Return the entity of ``account[/container[/object]]``; None when it names nothing."""
    parts = [part for part in text.strip().lstrip("/").split("/", 2) if part]
    return EntityPath(*parts) if parts else None


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-account-audit",
        description="Compare listings and copies of accounts, containers and objects on all their nodes. "
        "Without arguments the paths are read from standard input.",
        epilog="example: swift-account-audit -e errors.txt AUTH_test/photos",
    )
    add = parser.add_argument
    add("urls", nargs="*", metavar="url", help="account[/container[/object]]")
    add("-c", "--concurrency", type=int, default=50, help="requests at the same time (default: %(default)s)")
    add("-r", "--ring-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    add("-e", "--errors", default="", help="file for the paths of what is not as it should be")
    add("-d", "--deep", action="store_true", help="also read the objects and compare their MD5")
    parser.add_format()
    return parser


@reports_errors("swift-account-audit")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when everything was looked at, whatever was found, 2 for wrong usage."""
    parser = make_parser()
    args = parser.parse_intermixed_args(argv)
    words = args.urls or ([] if sys.stdin.isatty() else sys.stdin.read().splitlines())
    paths = [path for path in map(parse_url, words) if path is not None]
    if not paths or args.concurrency < 1:
        parser.print_help()
        return 2
    bad: dict[EntityPath, None] = {}
    is_text = args.format == "text"
    conf = {"swift_dir": args.ring_dir}
    cluster = cluster_of(conf)
    auditor = Auditor(
        cluster,
        Rings(args.ring_dir, cluster.policies),
        DirectClient(connections_to_nodes(conf, Telemetry()), "account-audit", TIMEOUTS),
        deep=args.deep,
        say=lambda text: print(text, flush=True) if is_text else None,
        tell_bad=lambda path: bad.update({path: None}),
        at_once=args.concurrency,
    )
    green.gather([partial(auditor.audit, path) for path in paths])
    if args.errors:
        with open(args.errors, "w") as file:
            file.writelines(f"{path}\n" for path in bad)
    counts = auditor.counts
    print("\n".join(counts.lines()) if is_text else json.dumps(counts.as_json(), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
