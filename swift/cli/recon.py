"""swift-recon: what the servers of a cluster tell about themselves.

The servers are those of the rings; each answers ``/recon/...``. spec: cli-and-config.md §10
"""

from __future__ import annotations

import argparse
import glob
import os
import sys
from collections.abc import Sequence

from swift.base.digits import is_digits
from swift.base.nearest import nearest
from swift.compose import cluster_of
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.operations.recon.checks import CHECKS, CheckContext
from swift.operations.recon.client import Host, ReconClient, unique_hosts
from swift.operations.recon.report import RULE, ReconReport
from swift.policy.policy import Policies
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from swift.runtime.service.services import SWIFT_DIR

TYPES = ("account", "container", "object")


class WrongArguments(Exception):
    """Invalid arguments; the text has the reason."""


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-recon",
        description="Ask the servers of a cluster about themselves: object servers, unless others are named.",
        epilog='"Failed" in a line of figures is the share of servers that gave no figure.\n\n'
        "example: swift-recon container -l --auditor",
    )
    parser.add_argument("types", nargs="*", metavar="server_type", help="account, container or object")
    add = parser.add_argument
    add("-v", "--verbose", action="store_true", help="print every response")
    add("--suppress", action="store_true", help="do not print connection errors")
    add("-a", "--async", dest="async_", action="store_true", help="container updates that wait")
    add("-r", "--replication", action="store_true", help="replication")
    add("-R", "--reconstruction", action="store_true", help="reconstruction")
    add("--auditor", action="store_true", help="auditors")
    add("--updater", action="store_true", help="updaters")
    add("--expirer", action="store_true", help="expirers")
    add("--packed", action="store_true", help="volumes of packed devices; not in --all")
    add("--sharding", action="store_true", help="sharding")
    add("-u", "--unmounted", action="store_true", help="devices that are not mounted")
    add("-d", "--diskusage", action="store_true", help="how full the devices are")
    add("--human-readable", action="store_true", help="sizes in units for people")
    add("-l", "--loadstats", action="store_true", help="load averages")
    add("-q", "--quarantined", action="store_true", help="what was quarantined")
    add("--validate-servers", action="store_true", help="check the servers' types against the ring")
    add("--md5", action="store_true", help="compare rings and swift.conf with those of this machine")
    add("--sockstat", action="store_true", help="sockets in use")
    add("--driveaudit", action="store_true", help="errors found by swift-drive-audit")
    add("-T", "--time", action="store_true", help="whether the clocks agree")
    add("--jitter", type=float, default=0.0, metavar="SECONDS", help="difference of clocks that is allowed")
    add("--swift-versions", action="store_true", help="releases")
    add("--top", type=int, default=0, metavar="COUNT", help="with -d: the COUNT fullest devices")
    add("--lowest", type=int, default=0, metavar="COUNT", help="with -d: the COUNT emptiest devices")
    add("--all", action="store_true", help="all checks of the server type")
    add("--region", type=int, help="only servers of this region")
    add("-z", "--zone", type=int, help="only servers of this zone")
    add(
        "-t",
        "--timeout",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="how long to wait (default: %(default)g)",
    )
    add("--swiftdir", default=SWIFT_DIR, help="directory of the rings (default: %(default)s)")
    add("-p", "--policy", default="", help="only object servers of this policy, by name or index")
    parser.add_format()
    return parser


def _ring_names(server_type: str, policy: str, policies: Policies, swift_dir: str) -> list[str]:
    """Return the rings whose servers are checked. Raises ``WrongArguments``."""
    if server_type != "object":
        return [server_type]
    if policy:
        found = policies.named(policy) or (policies.get(int(policy)) if is_digits(policy) else None)
        if found is None:
            names = [each.name for each in policies]
            raise WrongArguments(f"Invalid Storage Policy: {policy}{nearest(policy, names)}")
        return [found.ring_name]
    return [p.ring_name for p in policies if os.path.exists(f"{swift_dir}/{p.ring_name}.ring.gz")]


def _hosts(names: Sequence[str], args: argparse.Namespace) -> list[Host]:
    found: set[Host] = set()
    for name in names:
        view = RingView(load_table(f"{args.swiftdir}/{name}.ring.gz", thorough=False))
        found.update(unique_hosts(view.devices, region=args.region, zone=args.zone))
    return sorted(found)


def _rings_of(server_type: str, swift_dir: str) -> list[str]:
    paths = [
        f"{swift_dir}/{server_type}.ring.gz",
        *sorted(glob.glob(f"{swift_dir}/{server_type}-[0-9]*.ring.gz")),
    ]
    return [os.path.basename(path) for path in paths if os.path.exists(path)]


def check_server_type(
    server_type: str, args: argparse.Namespace, report: ReconReport, policies: Policies
) -> None:
    """Make all checks of one server type. Raises ``WrongArguments``, ``RingError`` and OSError."""
    hosts = _hosts(_ring_names(server_type, args.policy, policies, args.swiftdir), args)
    context = CheckContext(
        ReconClient(args.timeout),
        hosts,
        server_type,
        args.swiftdir,
        _rings_of(server_type, args.swiftdir),
        args.jitter,
        args.human_readable,
        args.top,
        args.lowest,
    )
    report.print_line(f"--> Starting reconnaissance on {len(hosts)} hosts ({server_type})")
    report.print_rule()
    for check in CHECKS:
        is_wanted = getattr(args, check.switch)
        if server_type in check.types and (is_wanted or (args.all and check.in_all)):
            check.run(context, report)
        elif is_wanted:
            report.print_line(f"Error: Can't check {check.noun_on(server_type)} servers.")
        else:
            continue
        report.print_rule()


@reports_errors("swift-recon")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when the servers were asked, whatever they said."""
    parser = make_parser()
    arguments = sys.argv[1:] if argv is None else list(argv)
    if not arguments:
        parser.print_help()
        return 0
    args = parser.parse_intermixed_args(arguments)
    types = list(dict.fromkeys(args.types)) or ["object"]
    is_text = args.format == "text"
    facts = {}
    if is_text:
        print(RULE)
    try:
        if unknown := [each for each in types if each not in TYPES]:
            # The peer's words, and the reason: its -d is not the directory that other commands mean by it.
            raise WrongArguments(
                f"Invalid Server Type\n{unknown[0]!r} is none of {', '.join(TYPES)}; "
                f"the directory of the rings is --swiftdir DIRECTORY{nearest(unknown[0], TYPES)}"
            )
        policies = cluster_of({"swift_dir": args.swiftdir}).policies
        for server_type in types:
            report = ReconReport(prints=is_text, verbose=args.verbose, suppress=args.suppress)
            check_server_type(server_type, args, report, policies)
            facts[server_type] = report.facts
    except WrongArguments as error:
        print(error)
        parser.print_help()
        return 1
    print_report(args, facts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
