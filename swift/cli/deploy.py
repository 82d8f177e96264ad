"""swift-deploy: make and change a cluster of several hosts from one inventory.

``init`` writes a sample inventory, ``adopt`` that of a cluster that was made by hand. ``plan`` shows what
would change, ``apply`` changes it, and ``check`` reports what differs. The exit code is 0 for success, 1 for
differences or failed hosts, 2 for other errors. ``rotate-secret`` replaces the secret of the servers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import resources

from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.operations.deploy.adopt import adopt
from swift.operations.deploy.deployment import Deployment, drift, select_lines
from swift.operations.deploy.hosts import HostAccess, RemoteHosts
from swift.operations.deploy.inventory import load_inventory
from swift.operations.deploy.state import State
from swift.runtime.service.services import SWIFT_DIR

NAME = "swift-deploy"
EXIT_OK, EXIT_DIFFERENT, EXIT_ERROR = 0, 1, 2
_EXAMPLES = """\
examples:
  swift-deploy init cluster.toml
  swift-deploy plan cluster.toml
  swift-deploy apply cluster.toml
  swift-deploy apply cluster.toml --drop object-server.conf/object-replicator/concurrency
  swift-deploy check cluster.toml --format json
  swift-deploy rotate-secret cluster.toml
  swift-deploy adopt cluster.toml --swift-dir /etc/swift --proxy 10.0.0.1 --proxy 10.0.0.2
"""


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=NAME,
        description="Make and change a cluster of several hosts from one inventory: rings, configuration "
        "and units, over ssh. The exit status of check is 1 when something differs from the inventory.",
        epilog=_EXAMPLES,
    )
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="init|adopt|plan|apply|check|rotate-secret"
    )
    init = verbs.add_parser("init", help="write a commented sample inventory")
    init.add_argument("inventory", nargs="?", default="cluster.toml", help="file to write (%(default)s)")
    existing = verbs.add_parser(
        "adopt", help="write the inventory and the state directory of an existing cluster"
    )
    existing.add_argument("inventory", nargs="?", default="cluster.toml", help="file to write (%(default)s)")
    existing.add_argument(
        "--swift-dir",
        default=SWIFT_DIR,
        help="directory with the builders and configuration files of the cluster (%(default)s)",
    )
    existing.add_argument(
        "--proxy", action="append", default=[], metavar="ADDRESS", help="address of a proxy; once for each"
    )
    plan = verbs.add_parser("plan", help="show what apply would change; nothing is changed")
    apply = verbs.add_parser("apply", help="change rings, files and units to match the inventory")
    check = verbs.add_parser("check", help="report what differs from the inventory; nothing is changed")
    rotate = verbs.add_parser(
        "rotate-secret", help="replace the secret that signs requests between servers, without a stop"
    )
    for verb in (plan, apply, check, rotate):
        verb.add_argument("inventory", help="inventory of the cluster")
    for verb in (plan, apply, check):
        verb.add_argument("--host", default="", metavar="NAME", help="only this host")
        verb.add_format()
    for verb in (plan, apply):
        verb.add_argument(
            "--remove",
            action="store_true",
            help="remove devices that left the inventory from the rings, once they are empty",
        )
    apply.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="ITEM",
        help="remove this from files of hosts, as plan names it, with all below it; once for each",
    )
    for verb in (apply, rotate):
        verb.add_argument("--yes", action="store_true", help="do not ask")
    return parser


@reports_errors(NAME, code=EXIT_ERROR)
def main(argv: Sequence[str] | None = None, access: HostAccess | None = None) -> int:
    """Run the command; return the exit code. ``access`` replaces ssh."""
    args = make_parser().parse_args(argv)
    if args.verb == "init":
        return _init(args.inventory)
    if args.verb == "adopt":
        return _adopt(args)
    inventory = load_inventory(args.inventory)
    deployment = Deployment(inventory, access or RemoteHosts(inventory.cluster))
    if args.verb == "plan":
        return _plan(deployment, args)
    if args.verb == "check":
        return _check(deployment, args)
    with deployment.state.lock():
        return _rotate(deployment, args) if args.verb == "rotate-secret" else _apply(deployment, args)


def _init(path: str) -> int:
    sample = resources.files("swift.operations.deploy").joinpath("sample.toml").read_text(encoding="utf-8")
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(sample)
    except FileExistsError:
        print(f"{NAME}: {path} exists; name another file", file=sys.stderr)
        return EXIT_ERROR
    print(f"{path} is written. Edit it, then run: {NAME} plan {path}")
    return EXIT_OK


def _adopt(args: argparse.Namespace) -> int:
    adopted = adopt(args.swift_dir, args.proxy, args.inventory)
    state = State(adopted.inventory.cluster.state)
    if os.path.lexists(state.path) or os.path.lexists(args.inventory):
        print(f"{NAME}: {args.inventory} or {state.path} exists; name another file", file=sys.stderr)
        return EXIT_ERROR
    state.save_secrets(adopted.secrets)
    state.save_rings(adopted.rings)
    with open(args.inventory, "x", encoding="utf-8") as file:
        file.write(f"{adopted.text}\n")
    for note in adopted.notes:
        print(f"note: {note}")
    print(f"{args.inventory} and {state.path} are written. Read them, then run: {NAME} plan {args.inventory}")
    return EXIT_OK


def _plan(deployment: Deployment, args: argparse.Namespace) -> int:
    plan = deployment.prepare(host=args.host, remove=args.remove).plan
    print_report(args, plan.as_json(), select_lines(plan))
    return EXIT_DIFFERENT if plan.errors() else EXIT_OK


def _check(deployment: Deployment, args: argparse.Namespace) -> int:
    plan = deployment.prepare(host=args.host, go_on=False).plan
    found = drift(plan)
    print_report(args, {"drift": found, **plan.as_json()}, found or ["all hosts match the inventory"])
    return EXIT_DIFFERENT if found else EXIT_OK


def _apply(deployment: Deployment, args: argparse.Namespace) -> int:
    prepared = deployment.prepare(host=args.host, remove=args.remove)
    plan, as_json = prepared.plan, args.format == "json"
    out = sys.stderr if as_json else sys.stdout
    print("\n".join(select_lines(plan)), file=out)
    if plan.errors():
        print(f"{NAME}: nothing is changed: correct the errors of hosts, or give --host", file=sys.stderr)
        return EXIT_DIFFERENT
    if unnamed := plan.unnamed(args.drop):
        print(
            f"{NAME}: nothing is changed: hosts have what the inventory does not know: {', '.join(unnamed)}; "
            "add it to the inventory, or name it with --drop",
            file=sys.stderr,
        )
        return EXIT_ERROR
    if not plan.is_empty and not args.yes and not _is_confirmed("Apply these changes?"):
        print(f"{NAME}: nothing is changed", file=sys.stderr)
        return EXIT_ERROR
    errors = [] if plan.is_empty else deployment.apply(prepared, lambda line: print(line, file=out))
    for error in errors:
        print(f"{NAME}: {error}; apply again once it is corrected", file=sys.stderr)
    if as_json:
        print(json.dumps({**plan.as_json(), "errors": errors}, indent=2))
    return EXIT_DIFFERENT if errors else EXIT_OK


def _rotate(deployment: Deployment, args: argparse.Namespace) -> int:
    if not args.yes and not _is_confirmed("Replace the secret of the servers?"):
        print(f"{NAME}: nothing is changed", file=sys.stderr)
        return EXIT_ERROR
    errors = deployment.rotate_secret(print)
    for error in errors:
        print(f"{NAME}: {error}; run the command again once it is corrected", file=sys.stderr)
    return EXIT_DIFFERENT if errors else EXIT_OK


def _is_confirmed(question: str) -> bool:
    """Ask the operator; without a terminal the answer is no."""
    if not sys.stdin.isatty():
        print(f"{NAME}: there is no terminal to ask at: give --yes", file=sys.stderr)
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


if __name__ == "__main__":
    raise SystemExit(main())
