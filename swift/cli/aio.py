"""The command line of swift-aio."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import secrets
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from swift.aio.bucket import create_bucket
from swift.aio.make import (
    check_ec,
    create_cluster,
    make_cluster,
    mount_devices,
    move_cluster,
    remove_cluster,
    unmount_devices,
)
from swift.aio.plan import ClusterPlan, default_ec, new_plan, saved_plan
from swift.aio.ports import storage_ip
from swift.aio.supervisor import AlreadyRunning, RunLock, Supervisor, check_ports, processes_of
from swift.aio.users import create_users
from swift.aio.xfs import check_xfs
from swift.base.errors import ConfigError, SwiftError
from swift.config.commandline import CommandLine, ProgressLine, reports_errors
from swift.ec.codec import available_types
from swift.store.lmdbindex import lmdb_version, require_lmdb
from swift.telemetry.console import line_time

#: Choices that may change for a stopped cluster.
MOVABLE = frozenset(("ip", "proxy_port", "base_port", "cache_port"))
#: The exit code of a command that Ctrl-C ended, as in shells.
INTERRUPTED = 128 + signal.SIGINT
EXAMPLES = """examples:
  swift-aio start ~/swift-data                 create (if new) and start a cluster in the background
  swift-aio start ~/swift-data --foreground    the same, until Ctrl-C
  swift-aio start ~/two --port 9080 --base-port 9200 --cache-port 9311    a second one beside it
  sudo swift-aio start /srv/swift --xfs        on loop-mounted XFS images
  sudo swift-aio start /srv/six --xfs --nodes 1 --disks 6    one server with six filesystems
  swift-aio status ~/swift-data --format json
  swift-aio stop ~/swift-data
  swift-aio clean ~/swift-data --yes           remove it with all its data
"""


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-aio",
        description="Run a replicated object store cluster on this machine.",
        epilog=EXAMPLES,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="start|status|stop|clean")
    start = commands.add_parser(
        "start",
        help="create the cluster if it is new, and run it",
        epilog="example: swift-aio start ~/swift-data",
    )
    add = start.add_argument
    add("--foreground", action="store_true", help="stay until Ctrl-C")
    add("--ip", help="address of the proxy (127.0.0.1); all else stays on loopback")
    add("--user", metavar="ACCOUNT:NAME", help="its user (test:tester)")
    add("--key", help="key of the user (generated)")
    add(
        "--from-environment",
        action="store_true",
        help="take the user, its key, an S3 access key and a bucket to create from SWIFT_USER, SWIFT_KEY, "
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and SWIFT_DEFAULT_BUCKET",
    )
    add(
        "--tempauth",
        action="store_true",
        default=None,
        help="users are in the proxy's configuration, not in the cluster",
    )
    add("--public-console", action="store_true", default=None, help="the console on a public --ip, too")
    add("--port", type=_port, help="port of the proxy (8080)")
    add("--base-port", type=_port, help="first port of the storage servers (6200)")
    add("--cache-port", type=_port, help="port of the cache (11311)")
    add("--nodes", type=int, help="storage nodes (4)")
    add("--disks", type=int, help="devices of each node, a filesystem each with --xfs (1)")
    add("--replicas", type=int, help="copies of everything (3)")
    add("--ec", metavar="K+M|none", help="code of the second policy, named ec (2+1; 4+2 from 7 devices on)")
    add("--workers", type=int, help="proxy worker processes (2)")
    add("--xfs", action="store_true", default=None, help="devices are XFS images; needs root")
    add("--packed", action="store_true", default=None, help="small objects are packed into volumes")
    status = commands.add_parser(
        "status", help="show its processes", epilog="example: swift-aio status ~/swift-data --format json"
    )
    status.add_argument("--format", choices=("text", "json"), default="text")
    stop = commands.add_parser(
        "stop", help="end all its processes", epilog="example: swift-aio stop ~/swift-data"
    )
    clean = commands.add_parser(
        "clean",
        help="remove a stopped cluster and its data",
        epilog="example: swift-aio stop ~/swift-data && swift-aio clean ~/swift-data --yes",
    )
    clean.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for command in (start, status, stop, clean):
        command.add_argument("data", type=Path, help="data directory of the cluster")
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 65000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


@reports_errors("swift-aio")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 for success, 1 for an error, 3 when status finds nothing running."""
    args = make_parser().parse_args(argv)
    args.data = args.data.expanduser().absolute()
    return {"start": _start, "status": _status, "stop": _stop, "clean": _clean}[args.command](args)


def _existing(data: Path) -> ClusterPlan:
    plan = saved_plan(data)
    if plan is None:
        raise ConfigError(
            f"there is no cluster in {data}; create one with: swift-aio start {shlex.quote(str(data))}"
        )
    return plan


# --- start ------------------------------------------------------------------------------------------


def plans_from_args(args: argparse.Namespace) -> tuple[ClusterPlan | None, ClusterPlan]:
    """Return the plan of the cluster that is there, if any, and the one to be run."""
    environment = os.environ if args.from_environment else {}
    choices = {
        "ip": args.ip,
        "user": args.user or environment.get("SWIFT_USER") or None,
        "key": args.key or environment.get("SWIFT_KEY") or None,
        "access_key": environment.get("AWS_ACCESS_KEY_ID") or None,
        "secret_key": environment.get("AWS_SECRET_ACCESS_KEY") or None,
        "has_test_users": False if args.from_environment else None,
        "proxy_port": args.port,
        "base_port": args.base_port,
        "cache_port": args.cache_port,
        "nodes": args.nodes,
        "disks": args.disks,
        "replicas": args.replicas,
        "ec": "" if args.ec == "none" else args.ec,
        "proxy_workers": args.workers,
        "xfs": args.xfs,
        "packed": args.packed,
        "tempauth": args.tempauth,
        "public_console": args.public_console,
    }
    if args.from_environment and not choices["key"]:
        raise ConfigError("--from-environment needs a key of the user: set SWIFT_KEY")
    plan = saved_plan(args.data)
    if plan is None:
        if args.data.exists() and any(args.data.iterdir()):
            raise ConfigError(f"{args.data} is not empty and not a cluster; choose another directory")
        made = {"key": choices["key"] or secrets.token_hex(16), "tempauth": bool(args.tempauth)}
        plan = new_plan(args.data, **{**choices, **made})
        plan.check()
        # A cluster that cannot be started here is not made.
        if plan.xfs:
            check_xfs()
        if plan.packed:
            require_lmdb(lmdb_version())
        if args.ec is None and available_types():
            plan = dataclasses.replace(plan, ec=default_ec(plan.disks_in_all))
        check_ec(plan)
        return None, plan
    changed = {n: v for n, v in choices.items() if v is not None and v != getattr(plan, n)}
    fixed = sorted(changed.keys() - MOVABLE)
    if "ip" in changed and storage_ip(changed["ip"]) != plan.storage_ip:
        # The rings name the loopback address of the storage servers.
        fixed = sorted([*fixed, "ip"])
    if fixed:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in fixed)
        raise ConfigError(
            f"the cluster in {args.data} was created with other values of {options}; leave them out, or "
            "create another cluster in another directory"
        )
    wanted = dataclasses.replace(plan, **changed)
    wanted.check()
    return plan, wanted


def _start(args: argparse.Namespace) -> int:
    existing, plan = plans_from_args(args)
    lock = RunLock(plan)
    holder = lock.holder()
    if holder is not None:
        raise AlreadyRunning(holder)
    # Before anything is made or moved: another port can then be chosen and the command repeated.
    check_ports(plan)
    if existing is None:
        create_cluster(plan)
    else:
        if plan != existing:
            move_cluster(existing, plan)
        make_cluster(plan)
    bucket = os.environ.get("SWIFT_DEFAULT_BUCKET", "") if args.from_environment else ""
    if args.foreground:
        return _run(plan, lock, bucket, ready=lambda: print(welcome(plan), flush=True), tell=_print_progress)
    return _start_in_background(plan, lock, bucket)


def _print_progress(text: str) -> None:
    print(f"swift-aio: {text}", flush=True)


def _run(plan: ClusterPlan, lock: RunLock, bucket: str, *, ready, tell) -> int:  # type: ignore[no-untyped-def]
    lock.acquire()
    if plan.xfs:
        mount_devices(plan)
    supervisor = Supervisor(plan, tell)
    supervisor.handle_signals()
    try:
        supervisor.start()
        if not plan.tempauth:
            create_users(plan)
        if bucket:
            create_bucket(plan, bucket)
        ready()
        supervisor.watch()
    finally:
        supervisor.end()
        if plan.xfs:
            unmount_devices(plan)
    return 0


def _start_in_background(plan: ClusterPlan, lock: RunLock, bucket: str) -> int:
    """Fork a supervisor and wait for its word that all is up."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _become_daemon(plan, lock, bucket, read_end, write_end)
    os.close(write_end)
    with os.fdopen(read_end) as words:
        return follow_start(plan, words, lambda: _end_supervisor(pid))


def _end_supervisor(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)


def follow_start(plan: ClusterPlan, words: Iterable[str], end_supervisor: Callable[[], None]) -> int:
    """Show the supervisor's reports until it is ready; return the exit code. Ctrl-C ends the supervisor."""
    failed, progress = False, ProgressLine(sys.stdout)
    try:
        for line in words:
            kind, _, text = line.rstrip("\n").partition(" ")
            if kind == "ready":
                progress.clear()
                print(welcome(plan))
                return 0
            if kind == "error":
                progress.clear()
                print(f"swift-aio: {text}", file=sys.stderr)
                failed = True
            else:
                progress.show(f"starting {text}")
    except KeyboardInterrupt:
        progress.clear()
        end_supervisor()
        print(f"swift-aio: interrupted; {plan.root} is made, and its processes are stopped", file=sys.stderr)
        return INTERRUPTED
    if not failed:
        print(f"swift-aio: the supervisor ended; see {plan.logs}/supervisor.log", file=sys.stderr)
    return 1


def _become_daemon(plan: ClusterPlan, lock: RunLock, bucket: str, read_end: int, write_end: int) -> None:
    status = 1
    try:
        os.setsid()
        os.close(read_end)
        os.set_inheritable(write_end, False)
        log = os.open(plan.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, log), (2, log)):
            os.dup2(source, target)
        open_end = [write_end]

        def say(kind: str, text: str = "") -> None:
            if open_end:
                os.write(open_end[0], f"{kind} {text}\n".encode())

        def ready() -> None:
            say("ready")
            os.close(open_end.pop())

        def tell(text: str) -> None:
            print(f"{line_time(time.time())} {text}", flush=True)
            say("progress", text)

        try:
            status = _run(plan, lock, bucket, ready=ready, tell=tell)
        except (SwiftError, OSError) as error:
            print(f"{line_time(time.time())} {error}", flush=True)
            say("error", str(error).replace("\n", " "))
    finally:
        os._exit(status)


def _start_command(name: str) -> list[str]:
    """Return the words that start a command: its name, or its path beside this Python."""
    beside = Path(sys.executable).with_name(name)
    return [name if shutil.which(name) or not beside.exists() else str(beside)]


def _is_installed(name: str) -> bool:
    return shutil.which(name) is not None or Path(sys.executable).with_name(name).exists()


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _swift_lines(plan: ClusterPlan) -> list[list[str]]:
    """Return the lines by which Swift's own client, or else curl, reaches the cluster."""
    if _is_installed("swift"):
        swift = [*_start_command("swift"), "-A", plan.auth_url, "-U", plan.user, "-K", plan.key]
        return [[*swift, "stat"], [*swift, "upload", "photos", "/etc/hostname"]]
    login = ["-H", f"X-Auth-User: {plan.user}", "-H", f"X-Auth-Key: {plan.key}", plan.auth_url]
    return [["curl", "-i", *login], ["curl", f"{plan.url}/info"]]


def _s3_lines(plan: ClusterPlan) -> list[list[str]]:
    """Return the lines by which an installed S3 client, if any, reaches the cluster."""
    url, user, key = plan.url, plan.access_key or plan.user, plan.secret_key or plan.key
    keys = [f"AWS_ACCESS_KEY_ID={user}", f"AWS_SECRET_ACCESS_KEY={key}"]
    aws = ["env", *keys, "aws", "--endpoint-url", url, "--region", "us-east-1", "s3", "mb", "s3://pictures"]
    remote = f":s3,provider=Other,access_key_id='{user}',secret_access_key='{key}',endpoint='{url}':"
    given = f"endpoint_url='{url}', aws_access_key_id='{user}', aws_secret_access_key='{key}'"
    script = f"import boto3; print(boto3.client('s3', 'us-east-1', {given}).list_buckets()['Buckets'])"
    if _is_installed("aws"):
        return [aws]
    if _is_installed("rclone"):
        return [["rclone", "lsd", remote]]
    return [[sys.executable, "-c", script]] if find_spec("boto3") is not None else []


def _facts(plan: ClusterPlan) -> dict[str, str]:
    """Return the endpoint and the login of clients."""
    return {
        "endpoint": plan.storage_url,
        "auth": plan.auth_url,
        "user": plan.user,
        "key": plan.key,
        "s3": plan.url,
        "access_key": plan.access_key or plan.user,
        "secret_key": plan.secret_key or plan.key,
        "console": plan.console_url,
    }


def _login_lines(plan: ClusterPlan) -> str:
    """Return the same for people."""
    # A container's output is its log: secrets that came from the environment are not repeated there.
    hidden = "" if plan.has_test_users else "(from the environment)"
    console = f"  console   {plan.console_url}\n" if plan.console_url else ""
    return f"""  endpoint  {plan.storage_url}
  auth      {plan.auth_url}
  user      {plan.user}
  key       {hidden or plan.key}
  S3        {plan.url}   region us-east-1
            access key {plan.access_key or plan.user}   secret key {hidden or plan.secret_key or plan.key}
{console}  logs      {plan.logs}
"""


def welcome(plan: ClusterPlan) -> str:
    """Return the description of a running cluster, and the lines to try it."""
    policies = _count_text(plan.replicas, "replica")
    if plan.ec:
        policies += f", or {plan.ec} erasure coded"
    stop = [*_start_command("swift-aio"), "stop", str(plan.root)]
    lines = [*_swift_lines(plan), *_s3_lines(plan), stop] if plan.has_test_users else [stop]
    return f"""The cluster in {plan.root} is up: {_count_text(plan.disks_in_all, "device")}, {policies}.

{_login_lines(plan)}
Try next:
""" + "".join(f"  {shlex.join(line)}\n" for line in lines)


# --- the others -------------------------------------------------------------------------------------


def _status(args: argparse.Namespace) -> int:
    plan = _existing(args.data)
    holder = RunLock(plan).holder()
    rows = processes_of(plan) if holder is not None else []
    if args.format == "json":
        running = {"running": holder is not None, "supervisor": holder, "processes": rows}
        print(json.dumps({**running, "cluster": _facts(plan)}))
    elif holder is None:
        print(f"not running: {plan.root}")
    else:
        print(f"running (supervisor pid {holder}): {plan.root}")
        for row in rows:
            port = f"port {row['port']}" if row["port"] else ""
            print(f"  {row['name']:<20} pid {row['pid']:<8} {port:<11} {row['state']}")
        print(f"\n{_login_lines(plan)}", end="")
    if holder is None:
        return 3
    return 0 if all(row["state"] == "up" for row in rows) else 1


def _stop(args: argparse.Namespace) -> int:
    plan = _existing(args.data)
    lock = RunLock(plan)
    holder = lock.holder()
    if holder is None:
        print("not running")
        return 0
    if not holder:
        raise ConfigError("the supervisor has just been started; try again in a moment")
    os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while lock.holder() is not None:
        if time.monotonic() > deadline:
            raise ConfigError(f"the supervisor (pid {holder}) does not end; see {plan.logs}/supervisor.log")
        time.sleep(0.05)
    print("stopped")
    return 0


def _clean(args: argparse.Namespace) -> int:
    plan = _existing(args.data)
    if RunLock(plan).holder() is not None:
        raise ConfigError(f"the cluster is running; first: swift-aio stop {shlex.quote(str(plan.root))}")
    if not args.yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"cannot ask whether to remove {plan.root} without a terminal; add --yes")
        answer = input(f"Remove {plan.root} and everything stored in it? (y/N) ")
        if answer.strip().lower() != "y":
            print("nothing removed")
            return 1
    if plan.xfs:
        unmount_devices(plan)
    remove_cluster(plan)
    print(f"removed {plan.root}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
