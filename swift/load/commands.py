"""Implements the verbs of ``swift-load`` after the command line is parsed."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from swift.base.errors import SwiftError
from swift.load import cosbench
from swift.load.endpoint import EndpointRefused, LoadEndpoint, log_in, request_once, validate_url
from swift.load.failures.command import clean, fail
from swift.load.runs import LoadRun, LoadRunner, RunPlan
from swift.load.savedruns import parse_saved_run, read_saved_run
from swift.load.servers import LocalServers
from swift.load.summary import operation_rows, to_csv, to_json
from swift.load.terminal import RunProgress, print_tables, show_differences
from swift.load.workerpool import LoadWorkers, WorkerPool
from swift.load.workload import BUILT_IN, BadWorkload, built_in_names, load, parse

#: Tables of a report are wide; without a terminal they are not folded.
WIDTH = 220

#: S3's error codes for unknown access keys.
_UNKNOWN_KEYS = (b"InvalidAccessKeyId", b"SignatureDoesNotMatch")


def verb_function(name: str) -> Callable[[argparse.Namespace], int]:
    """Return the function of a verb; it returns an exit code."""
    return {
        "list": _list,
        "show": _show,
        "run": _run,
        "fail": _fail,
        "compare": _compare,
        "import": _import,
    }[name]


def _console(is_for_people: bool) -> Console:
    """Return the console for tables: standard error when standard output is for programs."""
    stream = sys.stdout if is_for_people else sys.stderr
    # Names, descriptions and errors are printed as they are, whatever is in brackets.
    return Console(file=stream, width=None if stream.isatty() else WIDTH, markup=False)


def _print_json(what: object) -> None:
    json.dump(what, sys.stdout, indent=1)
    print()


# run


def _run(args: argparse.Namespace) -> int:
    console = _console(args.format == "text")
    text, source = _text_of(args.workload)
    options = {name: getattr(args, name) for name in ("clients", "seconds", "rate", "verify")}
    workload = parse(text, source).with_options(**options)
    price = _price(args.price)
    for path in (args.json, args.csv, args.html):
        _check_writable(path)
    endpoint = _endpoint(args)
    plan = RunPlan(workload, text, options, endpoint, args.keep)
    workers = _workers(args)
    try:
        with RunProgress(console, workload) as progress:
            done = LoadRunner(plan, workers, LocalServers(endpoint), progress).run()
    finally:
        workers.close()
    _report(console, done, price, args)
    return 130 if done.is_interrupted else 0


def _fail(args: argparse.Namespace) -> int:
    console = _console(args.format == "text")
    if args.clean:
        if not clean(args, console):
            console.print("nothing was left behind")
        return 0
    text, source = _text_of(args.workload)
    for path in (args.json, args.html):
        _check_writable(path)
    return fail(args, text, source, console)


def _workers(args: argparse.Namespace) -> LoadWorkers:
    if args.distributed is None:
        return WorkerPool(args.processes)
    from swift.load.distributed import DistributedWorkers

    return DistributedWorkers(args.distributed)


def _report(console: Console, done: LoadRun, price: float | None, args: argparse.Namespace) -> None:
    found = to_json(done, price)
    if args.format == "json":
        _print_json(found)
    print_tables(console, done, price)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    if args.csv is not None:
        args.csv.write_text(to_csv(operation_rows(done)))
    if args.html is not None:
        from swift.load.report import run_page

        args.html.write_text(run_page(parse_saved_run(found)))


def _check_writable(path: Path | None) -> None:
    """Check a report's path before a long run, not after it."""
    if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
        raise BadWorkload(f"{path}: cannot be written")


def _endpoint(args: argparse.Namespace) -> LoadEndpoint:
    """Return the endpoint for requests, after one trial; raises ``EndpointRefused``."""
    if args.s3:
        if not args.access_key or not args.secret_key:
            raise EndpointRefused("--s3 needs --access-key and --secret-key")
        found = LoadEndpoint(
            validate_url(args.s3), "", args.access_key, args.secret_key, args.region, args.cacert
        )
        url = f"{found.url.rstrip('/')}/"
        status, _headers, said = request_once(
            url, "GET", found.sign_headers("GET", f"{found.root}/", {}), cacert=args.cacert
        )
        # A user who may not list all buckets may do so to their own.
        if any(code in said for code in _UNKNOWN_KEYS):
            raise EndpointRefused(f"{found.url} answered {status}; are both keys right?")
        return found
    if args.storage_url:
        found = LoadEndpoint(validate_url(args.storage_url), args.token or "", cacert=args.cacert)
    elif args.auth and args.user and args.key:
        found = log_in(args.auth, args.user, args.key, args.cacert)
    else:
        raise EndpointRefused("name the cluster: --auth with --user and --key, --storage-url, or --s3")
    status, _headers, _body = request_once(
        found.url, "HEAD", {"X-Auth-Token": found.token}, cacert=args.cacert
    )
    if status // 100 != 2:
        raise EndpointRefused(f"{found.url} answered {status}")
    return found


def _price(path: Path | None) -> float | None:
    if path is None:
        return None
    try:
        found = tomllib.loads(path.read_text())["per_hour"]
    except KeyError:
        raise BadWorkload(f"{path}: per_hour is missing: what all servers cost in an hour")
    except (OSError, ValueError) as error:
        raise BadWorkload(f"{path}: {error}")
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < float("inf"):
        raise BadWorkload(f"{path}: per_hour must be a number above 0, not {found!r}")
    return float(found)


def _text_of(name: str) -> tuple[str, str]:
    """Return the text of a workload and where it is from.

    Raises ``BadWorkload``. COSBench's XML becomes TOML.
    """
    path = next((path for path in BUILT_IN.glob("*.toml") if path.stem.lower() == name.lower()), Path(name))
    if path.suffix.lower() == ".xml":
        return cosbench.load(path), str(path)
    try:
        return path.read_text(), str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadWorkload(f"{name}: no built-in workload, and no file that can be read: {error}")


# the others


def _list(args: argparse.Namespace) -> int:
    found = [(name, load(BUILT_IN / f"{name}.toml").description) for name in built_in_names()]
    if args.format == "json":
        _print_json([{"name": name, "description": text} for name, text in found])
    else:
        for name, text in found:
            print(f"{name:16} {text}")
    return 0


def _show(args: argparse.Namespace) -> int:
    print(_text_of(args.workload)[0], end="")
    return 0


def _import(args: argparse.Namespace) -> int:
    text = cosbench.load(args.file)
    parse(text, str(args.file))
    print(text, end="")
    return 0


def _compare(args: argparse.Namespace) -> int:
    from swift.load import compare

    a, b = read_saved_run(args.a), read_saved_run(args.b)
    found = compare.differences(a, b, args.seed)
    if not found:
        raise SwiftError(f"{args.a} and {args.b} have no operation of a phase in common")
    _check_writable(args.html)
    if args.html is not None:
        from swift.load.report import comparison_page

        args.html.write_text(comparison_page(a, b, (str(args.a), str(args.b)), found))
    if args.format == "json":
        _print_json(compare.to_json(a, b, found))
    else:
        show_differences(_console(True), (str(args.a), str(args.b)), found)
    return 0
