"""``swift-load``: workloads against any Swift or S3 endpoint (doc/reference/benchmarking.md)."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from swift.base.extras import install_command
from swift.config.commandline import CommandLine, reports_errors

EXAMPLES = """examples:
  swift-load list
  swift-load run SmlRead --auth http://127.0.0.1:8080/auth/v1.0 --user test:tester --key testing
  swift-load run mine.toml --seconds 10 --json before.json --html before.html
  swift-load run LrgRead --s3 http://127.0.0.1:9000 --access-key KEY --secret-key SECRET
  swift-load compare before.json after.json
  swift-load import cosbench.xml > mine.toml
"""
FAIL_EXAMPLES = """examples:
  swift-load fail --share 10,20,30,40 --html nodes.html
  swift-load fail large_upload --unit disks --way shutdown --spread skewed --disks 2 --xfs
  unshare --net sh -c 'ip link set lo up; swift-load fail --way partition --share 25'
"""
#: Packages that only this command needs: module → extra of the distribution that brings it.
EXTRAS = {"rich": "load", "hdrh": "load", "matplotlib": "load", "numpy": "load", "distributed": "distributed"}


def make_parser() -> CommandLine:
    """Return the command line."""
    made = CommandLine(
        prog="swift-load",
        description="Run workloads against any Swift or S3 endpoint and report what was measured.",
        epilog=EXAMPLES,
    )
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="the workloads that come with the program")
    showing = verbs.add_parser("show", help="print a workload file, to begin one of your own with")
    showing.add_argument("workload", help="the name of a built-in one, or a file")
    running = verbs.add_parser("run", help="run a workload", epilog=EXAMPLES)
    running.add_argument("workload", help="the name of a built-in one, or a file: TOML, or XML of COSBench")
    _add_endpoint(running)
    _add_changes(running)
    _add_output(running)
    comparing = verbs.add_parser(
        "compare", help="two runs side by side, and which differences are significant"
    )
    comparing.add_argument("a", type=Path, metavar="A.json", help="what run --json wrote")
    comparing.add_argument("b", type=Path, metavar="B.json", help="the same of another run")
    comparing.add_argument("--seed", type=int, default=1, help="of the draws (1)")
    comparing.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots here")
    _add_fault_options(verbs.add_parser("fail", help="what a cluster does while a share of it has failed"))
    importing = verbs.add_parser("import", help="print a workload of COSBench as TOML")
    importing.add_argument("file", type=Path, help="XML file")
    for one in (listing, running, comparing):
        one.add_format("of standard output (text)")
    return made


def _add_endpoint(parser: argparse.ArgumentParser) -> None:
    known = os.environ
    add = parser.add_argument_group("endpoint (from ST_AUTH, ST_USER, ST_KEY when not given)").add_argument
    add("--auth", default=known.get("ST_AUTH"), help="auth URL: v1, or Keystone's ending in /v3")
    add("--user", default=known.get("ST_USER"), help="account:user, or project:user")
    add("--key", default=known.get("ST_KEY"), help="its key or password")
    add("--storage-url", help="storage URL, with --token, instead of logging in")
    add("--token", help="token for --storage-url")
    add("--s3", help="S3 endpoint")
    add("--access-key", default=known.get("AWS_ACCESS_KEY_ID"), help="of S3")
    add("--secret-key", default=known.get("AWS_SECRET_ACCESS_KEY"), help="of S3")
    add("--region", default="us-east-1", help="of S3 (us-east-1)")
    add("--cacert", default="", metavar="FILE", help="certificates to check an https endpoint's by")


def _add_changes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("instead of what the workload says").add_argument
    add("--clients", type=_parse_integer, help="clients at the same time")
    add("--seconds", type=_parse_number, help="length of each main phase")
    add("--rate", type=_parse_number, help="operations begun a second: an open loop")
    add("--verify", action="store_const", const=True, help="compare every byte that is read")
    add("--processes", type=_parse_integer, default=2, help="that make the load (2)")
    add("--distributed", metavar="SCHEDULER", help="dask scheduler whose workers make the load")


def _add_fault_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = FAIL_EXAMPLES
    parser.add_argument("workload", nargs="?", default="small_upload", help="as of run (small_upload)")
    add = parser.add_argument_group("what fails").add_argument
    add("--unit", default="nodes", help="nodes, disks or proxies (nodes)")
    add(
        "--way",
        default="kill",
        help="nodes: kill, stop, partition; disks: unmount, shutdown (I/O errors), read-only, slow, wipe; "
        "proxies: kill, stop (kill)",
    )
    add(
        "--share",
        type=_parse_shares,
        default=[10.0, 20.0, 30.0, 40.0],
        help="percent, one run each (10,20,30,40)",
    )
    add("--spread", default="uniform", help="disks: uniform over nodes, or skewed (uniform)")
    add("--seed", type=int, default=1, help="of the choice of what fails (1)")
    add = parser.add_argument_group("seconds").add_argument
    add("--before", type=_parse_number, default=20.0, help="of load before the failure (20)")
    add("--during", type=_parse_number, default=30.0, help="with it (30)")
    add("--after", type=_parse_number, default=30.0, help="after its repair (30)")
    add(
        "--whole-within",
        type=_parse_number,
        default=300.0,
        help="until nothing may be missing any more (300)",
    )
    add = parser.add_argument_group("the cluster, made for the run and removed after it").add_argument
    add("--nodes", type=_parse_integer, default=8, help="storage nodes (8)")
    add("--disks", type=_parse_integer, default=1, help="devices of each (1)")
    add("--workers", type=_parse_integer, default=2, help="proxy processes (2)")
    add("--xfs", action="store_true", help="a filesystem per device, which disks need; root")
    add("--root", type=Path, help="directory to make it in (the one for temporary files)")
    add(
        "--clean",
        action="store_true",
        help="only remove what runs that were killed have left in --root, mounts and all; every run does it "
        "when it begins",
    )
    add("--port", type=_parse_integer, help="port of the proxy (8080)")
    add("--base-port", type=_parse_integer, help="first port of the storage servers (6200)")
    add("--cache-port", type=_parse_integer, help="port of the cache (11311)")
    add = parser.add_argument_group("load and results").add_argument
    add("--clients", type=_parse_integer, help="clients at the same time")
    add("--processes", type=_parse_integer, default=1, help="that make the load (1)")
    add("--json", type=Path, metavar="FILE", help="write all figures here")
    add("--html", type=Path, metavar="FILE", help="write a page with plots here")
    add("--format", choices=("text", "json"), default="text", help="of standard output (text)")


def _parse_shares(text: str) -> list[float]:
    return [_parse_number(one) for one in text.split(",")]


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--keep", action="store_true", help="leave in the store what was made")
    add("--json", type=Path, metavar="FILE", help="write all figures here")
    add("--csv", type=Path, metavar="FILE", help="write the table of operations here")
    add("--html", type=Path, metavar="FILE", help="write a page with plots here")
    add("--price", type=Path, metavar="FILE", help="TOML with per_hour, what all servers cost")


def _parse_number(text: str) -> float:
    found = float(text)
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return found


def _parse_integer(text: str) -> int:
    found = int(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return found


@reports_errors("swift-load")
def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    args = make_parser().parse_args(argv)
    try:
        # Late, because it needs packages that help and man pages do without.
        from swift.load.commands import verb_function

        return verb_function(args.verb)(args)
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module not in EXTRAS:
            raise
        print(
            f"swift-load: the package of module {module} is missing; "
            f"install it with: {install_command(EXTRAS[module])}",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("swift-load: ended; what was made is left in the store", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
