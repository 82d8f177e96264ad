"""``swift-load``: workloads against any Swift or S3 endpoint (doc/guides/benchmarking.md)."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from pathlib import Path

from rich.console import Console

from swift.base.errors import SwiftError
from swift.bench.load.crew import Crew, run
from swift.bench.load.endpoint import Endpoint, EndpointRefused, ask, checked_url, log_in
from swift.bench.load.servers import Servers
from swift.bench.load.summary import to_json
from swift.bench.load.terminal import Progress, show
from swift.bench.load.workload import BUILT_IN, BadWorkload, Workload, built_in_names, load, parse

EXAMPLES = """examples:
  swift-load list
  swift-load run SmlRead --auth http://127.0.0.1:8080/auth/v1.0 --user test:tester --key testing
  swift-load run mine.toml --seconds 10 --json result.json
  swift-load run LrgRead --s3 http://127.0.0.1:9000 --access-key KEY --secret-key SECRET
"""


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="swift-load",
        description="Run workloads against any Swift or S3 endpoint and report what was measured.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("list", help="the workloads that come with the program")
    showing = verbs.add_parser("show", help="print a workload file, to begin one of your own with")
    showing.add_argument("workload", help="the name of a built-in one, or a file")
    running = verbs.add_parser("run", help="run a workload", epilog=EXAMPLES)
    running.formatter_class = argparse.RawDescriptionHelpFormatter
    running.add_argument("workload", help="the name of a built-in one, or a file")
    _add_endpoint(running)
    _add_changes(running)
    running.add_argument("--keep", action="store_true", help="leave in the store what was made")
    running.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    running.add_argument(
        "--price", type=Path, metavar="FILE", help="TOML with per_hour, what all servers cost"
    )
    return made


def _add_endpoint(parser: argparse.ArgumentParser) -> None:
    known = os.environ
    group = parser.add_argument_group("endpoint (from ST_AUTH, ST_USER, ST_KEY when not given)")
    group.add_argument(
        "--auth", default=known.get("ST_AUTH"), help="auth URL: v1, or Keystone's ending in /v3"
    )
    group.add_argument("--user", default=known.get("ST_USER"), help="account:user, or project:user")
    group.add_argument("--key", default=known.get("ST_KEY"), help="its key or password")
    group.add_argument("--storage-url", help="storage URL, with --token, instead of logging in")
    group.add_argument("--token", help="token for --storage-url")
    group.add_argument("--s3", help="S3 endpoint")
    group.add_argument("--access-key", default=known.get("AWS_ACCESS_KEY_ID"), help="of S3")
    group.add_argument("--secret-key", default=known.get("AWS_SECRET_ACCESS_KEY"), help="of S3")
    group.add_argument("--region", default="us-east-1", help="of S3 (%(default)s)")


def _add_changes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("instead of what the workload says")
    group.add_argument("--clients", type=_positive(int), help="clients at the same time")
    group.add_argument("--seconds", type=_positive(float), help="length of each main phase")
    group.add_argument("--rate", type=_positive(float), help="operations begun a second: an open loop")
    group.add_argument("--verify", action="store_const", const=True, help="compare every byte that is read")
    group.add_argument("--processes", type=_positive(int), default=2, help="that make the load (%(default)s)")


def _positive(kind: type[int] | type[float]):  # type: ignore[no-untyped-def]
    def parse_number(text: str) -> int | float:
        found = kind(text)
        if not 0 < found < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return found

    parse_number.__name__ = "number"
    return parse_number


def _endpoint(args: argparse.Namespace) -> Endpoint:
    """Where to send requests, tried once; raises ``EndpointRefused``."""
    if args.s3:
        if not args.access_key or not args.secret_key:
            raise EndpointRefused("--s3 needs --access-key and --secret-key")
        found = Endpoint(checked_url(args.s3), "", args.access_key, args.secret_key, args.region)
        ask(found.url, "GET", {})
        return found
    if args.storage_url:
        found = Endpoint(checked_url(args.storage_url), args.token or "")
    elif args.auth and args.user and args.key:
        found = log_in(args.auth, args.user, args.key)
    else:
        raise EndpointRefused("say where: --auth with --user and --key, --storage-url, or --s3")
    status, _headers, _body = ask(found.url, "HEAD", {"X-Auth-Token": found.token})
    if status // 100 != 2:
        raise EndpointRefused(f"{found.url} answered {status}")
    return found


def _text_of(name: str) -> tuple[str, str]:
    """The text of a workload and where it is from; raises ``BadWorkload``."""
    path = next((path for path in BUILT_IN.glob("*.toml") if path.stem.lower() == name.lower()), Path(name))
    try:
        return path.read_text(), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadWorkload(f"{name}: no built-in workload, and no file that can be read: {error}")


def _price(path: Path | None) -> float | None:
    if path is None:
        return None
    try:
        found = tomllib.loads(path.read_text())["per_hour"]
        if isinstance(found, int | float) and found > 0:
            return float(found)
    except (OSError, ValueError, KeyError) as error:
        raise BadWorkload(f"{path}: {error}")
    raise BadWorkload(f"{path}: per_hour must be a number above 0")


def _run(args: argparse.Namespace) -> int:
    # Tables of a report are wide; where no terminal tells its own width they are not folded.
    console = Console(width=None if sys.stdout.isatty() else 200)
    text, source = _text_of(args.workload)
    options = {name: getattr(args, name) for name in ("clients", "seconds", "rate", "verify")}
    workload = parse(text, source).changed(**options)
    price = _price(args.price)
    endpoint = _endpoint(args)
    servers = Servers(endpoint)
    crew = Crew(args.processes)
    try:
        with Progress(console, workload) as progress:
            done = run(workload, text, options, endpoint, crew, servers, progress, keep=args.keep)
    finally:
        crew.close()
    show(console, done, price)
    if args.json is not None:
        args.json.write_text(json.dumps(to_json(done, price), indent=1))
    return 130 if done.is_interrupted else 0


def _list() -> int:
    table = [(name, _described(name)) for name in built_in_names()]
    for name, description in table:
        print(f"{name:16} {description}")
    return 0


def _described(name: str) -> str:
    found: Workload = load(BUILT_IN / f"{name}.toml")
    return found.description


def main(argv: list[str] | None = None) -> int:
    """Run the command; its exit code."""
    args = _parser().parse_args(argv)
    try:
        if args.verb == "list":
            return _list()
        if args.verb == "show":
            print(_text_of(args.workload)[0], end="")
            return 0
        return _run(args)
    except (SwiftError, OSError) as error:
        print(f"swift-load: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("swift-load: ended; what was made is left in the store", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
