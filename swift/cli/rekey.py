"""swift-rekey: which root secrets of encryption are in use, and another one for stored objects.

The exit status is 0 when all is done, 1 when something is left or failed, 3 when a signal stopped it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import FrameType

from swift.base.errors import ConfigError, SwiftError
from swift.cli.usage import make_reader
from swift.config.commandline import CommandLine, ProgressLine, print_report, reports_errors
from swift.config.files import read_section
from swift.middleware.encryption.rewrap import NO_ID
from swift.middleware.keymaster.vault import SOURCE, read_vault_section, wrapped_option
from swift.middleware.keymaster.vaultclient import VaultClient, make_tls
from swift.operations.rekey.rawcluster import AGENT, RawCluster
from swift.operations.rekey.runs import (
    FAILED,
    PAGE_ROWS,
    ContainerUsage,
    RekeyRun,
    RunState,
    Verifier,
    secret_usage,
)
from swift.operations.usage import UsageQuery
from swift.runtime.service.services import SWIFT_DIR

EXIT_LEFT, EXIT_STOPPED = 1, 3
PROGRESS_S = 0.5
STATE = "/var/cache/swift/rekey.json"


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=AGENT,
        description="Show which root secrets of encryption stored objects use, and give objects another one: "
        "first make the new secret active at all proxies, then run, then verify. "
        "The exit status is 0 when all is done, 1 when something is left or failed, "
        "and 3 when a signal stopped it; run it again to go on.",
        epilog=f"the root secret without an id is named {NO_ID}\n\n"
        "examples:\n  swift-rekey status\n  swift-rekey run --from 2026 --rate 50000000\n"
        f"  swift-rekey verify --from {NO_ID} --account AUTH_test\n  swift-rekey new-secret --id 2027",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    status = commands.add_parser("status", help="count objects and bytes by root secret, from listings")
    run = commands.add_parser("run", help="give the objects of a root secret the active one")
    verify = commands.add_parser("verify", help="look for a root secret in all copies of all objects")
    new = commands.add_parser("new-secret", help="make a wrapped root secret for vault_keymaster")
    _add_conf(new, "configuration with the section of vault_keymaster")
    for each in (status, run, verify):
        _add_conf(each, "configuration of a proxy, whose keymaster and storage are used")
        each.add_argument(
            "--account",
            action="append",
            default=[],
            metavar="NAME",
            help="only this account; may be repeated. Without it: the accounts whose first primary device "
            "this node has, so that all account servers together do each account once",
        )
        each.add_argument(
            "--account-conf",
            default=f"{SWIFT_DIR}/account-server.conf",
            metavar="FILE",
            help="configuration of this node's account server (%(default)s)",
        )
        each.add_format()
    for each in (run, verify):
        each.add_argument("--from", dest="old", required=True, metavar="ID", help="id of the root secret")
        each.add_argument(
            "--concurrency",
            type=int,
            default=4,
            metavar="NUMBER",
            help="objects at once (%(default)s)",
        )
    run.add_argument(
        "--rate", type=float, default=0.0, metavar="BYTES/S", help="bytes of bodies a second; 0: no limit"
    )
    run.add_argument("--state", default=STATE, metavar="FILE", help="keeps how far the run is (%(default)s)")
    new.add_argument(
        "--id",
        default=time.strftime("%Y%m%d", time.gmtime()),
        help="id of the secret, unused so far (today's date)",
    )
    return parser


def _add_conf(parser: argparse.ArgumentParser, text: str) -> None:
    default = f"{SWIFT_DIR}/proxy-server.conf"
    parser.add_argument("--conf", default=default, metavar="FILE", help=f"{text} (%(default)s)")


@reports_errors(AGENT)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.command == "new-secret":
        return new_secret(args)
    # Not a number is neither.
    if args.command == "run" and not args.rate >= 0:
        parser.error(f"--rate must not be negative, but is {args.rate:g}")
    if args.command != "status" and args.concurrency < 1:
        parser.error(f"--concurrency must be at least 1, but is {args.concurrency}")
    line = ProgressLine(sys.stderr, every_s=PROGRESS_S)
    try:
        return {"status": show_status, "run": run_rekey, "verify": verify_unused}[args.command](args, line)
    finally:
        line.clear()


def _accounts(args: argparse.Namespace, line: ProgressLine) -> list[str]:
    """Return the named accounts, or those that this node is to do; raises ``SwiftError`` and OSError."""
    if args.account:
        return list(dict.fromkeys(args.account))
    try:
        reader = make_reader(args.account_conf, UsageQuery(), line, command=AGENT)
        found = sorted({row.account for row in reader.rows()})
    except (SwiftError, OSError) as error:
        raise ConfigError(f"no accounts to look at: {error}; name them with --account")
    if reader.problems:
        raise ConfigError(f"{reader.problems} problems: accounts may be missing; name them with --account")
    return found


def show_status(args: argparse.Namespace, line: ProgressLine) -> int:
    """Print the use of root secrets; return the exit code."""
    accounts = _accounts(args, line)
    cluster = RawCluster(args.conf)
    active = cluster.active_secret()
    found = list(secret_usage(cluster.pages(accounts, PAGE_ROWS), line.show))
    line.clear()
    print_report(args, {"active": active, "usage": [row._asdict() for row in found]}, _table(found, active))
    return 0


def _table(found: Sequence[ContainerUsage], active: str) -> Iterator[str]:
    """Yield the rows of the use by container, and the sum of each secret."""
    sums: Counter[tuple[str, str]] = Counter()
    rows = [("policy", "account", "container", "secret", "objects", "bytes")]
    for row in found:
        secret = row.secret or "(not encrypted)"
        sums[secret, "objects"] += row.objects
        sums[secret, "bytes"] += row.bytes
        name = row.container.replace("\x00", "\\0")
        rows.append((row.policy, row.account, name, secret, str(row.objects), str(row.bytes)))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for cells in rows if found else ():
        yield "  ".join(map(str.ljust, cells, widths)).rstrip()
    for secret in sorted({secret for secret, _ in sums}):
        mark = " (active)" if secret == active else ""
        yield f"{secret}{mark}: {sums[secret, 'objects']} objects, {sums[secret, 'bytes']} bytes"


def run_rekey(args: argparse.Namespace, line: ProgressLine) -> int:
    """Rewrite the objects of a root secret; return the exit code."""
    accounts = _accounts(args, line)
    cluster = RawCluster(args.conf)
    active = cluster.active_secret()
    if args.old == active:
        raise ConfigError(f"root secret {args.old} is the active one: make another one active first")
    state = RunState.read(args.state, args.old, active)
    stop = _StopRequest()
    left = _Reports(args, line)
    run = RekeyRun(
        cluster,
        state,
        args.state,
        concurrency=args.concurrency,
        rate=args.rate,
        stopped=stop,
        report=left,
        tell=line.show,
    )
    with stop:
        is_done = run.run(accounts)
    line.clear()
    facts = {"from": args.old, "to": active, "is_done": is_done, "counts": state.counts, "left": left.rows}
    counts = ", ".join(f"{number} {name}" for name, number in sorted(state.counts.items())) or "no objects"
    ending = "done; verify next" if is_done else "stopped; run it again to go on"
    print_report(args, facts, [f"{counts}; {ending}"])
    if not is_done:
        return EXIT_STOPPED
    return EXIT_LEFT if state.counts[FAILED] or state.counts["locked"] else 0


def verify_unused(args: argparse.Namespace, line: ProgressLine) -> int:
    """Look for a root secret; return 0 if nothing uses it."""
    accounts = _accounts(args, line)
    cluster = RawCluster(args.conf)
    left = _Reports(args, line)
    pages = cluster.pages(accounts, PAGE_ROWS)
    found = Verifier(cluster, args.old, left).verify(pages, args.concurrency, line.show)
    line.clear()
    facts = {"secret": args.old, "is_unused": found.is_unused, **found._asdict(), "left": left.rows}
    text = (
        f"of {found.objects} objects {found.using} use root secret {args.old}, as do {found.rows} rows of "
        f"listings; {found.unchecked} objects are unchecked"
    )
    print_report(args, facts, [text])
    return 0 if found.is_unused else EXIT_LEFT


class _Reports:
    """Objects that use the old secret still: a line for each at once, or rows of the JSON report."""

    def __init__(self, args: argparse.Namespace, line: ProgressLine):
        self._is_text = args.format == "text"
        self._line = line
        self.rows: list[dict[str, str]] = []

    def __call__(self, kind: str, path: str, reason: str) -> None:
        """Report one object."""
        if self._is_text:
            self._line.clear()
            shown = "".join(c if c.isprintable() else f"\\{ord(c):o}" for c in path)
            print(f"{kind} {shown}: {reason}", flush=True)
        else:
            self.rows.append({"kind": kind, "path": path, "reason": reason})


class _StopRequest:
    """True once a signal asked to stop; a context manager that handles signals."""

    def __init__(self) -> None:
        self._is_requested = False
        self._before: dict[int, object] = {}

    def __call__(self) -> bool:
        return self._is_requested

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self._is_requested = True

    def __enter__(self) -> None:
        self._before = {n: signal.signal(n, self._request) for n in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what ``signal.signal`` returned


def new_secret(args: argparse.Namespace) -> int:
    """Print the option of a new wrapped root secret; it is never known unwrapped here."""
    conf = read_section(args.conf, "filter:vault_keymaster")
    settings, wrapped = read_vault_section({**conf, "__file__": args.conf})
    if args.id in wrapped:
        raise ConfigError(f"there is a root secret with the id {args.id}; name another with --id")
    client = VaultClient(settings, make_tls(settings, SOURCE))
    print(f"{wrapped_option(args.id)} = {client.make_wrapped_secret()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
