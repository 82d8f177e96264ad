"""Try clients of others against a cluster of ours, and count what holds.

    python -m test.clients                            all clients, each installed from its registry
    python -m test.clients --only rclone restic
    python -m test.clients --markdown doc/reference/clients.md  and write the table
    python -m test.clients --auth http://127.0.0.1:8080/auth/v1.0    against a cluster that runs

What cannot be installed here is skipped and says so. Exits with 1 when a check failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from test.clients import archives, duplicity, gophercloud, libcloud, rclone, restic, s3, swiftclient, tables
from test.clients.site import Missing, Outcome, Site
from test.support.cluster import LiveCluster

CLIENTS: dict[str, Callable[[Site], Outcome]] = {
    "swift": swiftclient.command,
    "swiftclient-tests": swiftclient.own_tests,
    "rclone": rclone.sync,
    "rclone-tests": rclone.own_tests,
    "rclone-s3-tests": rclone.own_s3_tests,
    "restic": restic.backup,
    "duplicity": duplicity.backup,
    "libcloud": libcloud.driver,
    "gophercloud": gophercloud.example,
    "boto3": s3.boto3,
    "awscli": s3.awscli,
    "rclone-s3": s3.rclone,
    "restic-s3": s3.restic,
    "s3cmd": s3.s3cmd,
    "minio": s3.minio,
    "parquet": s3.parquet,
    "s5cmd": s3.s5cmd,
    "aws-sdk-js": s3.aws_sdk_js,
    "deltalake": tables.deltalake,
    "polars": tables.polars,
    "lancedb": tables.lancedb,
    "pyiceberg": tables.pyiceberg,
    "zarr": tables.zarr,
    "opendal": tables.opendal,
    "git-annex": archives.git_annex,
    "registry-s3": archives.registry_s3,
    "registry-swift": archives.registry_swift,
    "zarr-swift": archives.zarr_swift,
    "barman": archives.barman,
}


def attempt(name: str, site: Site) -> Outcome:
    """One client; what goes wrong in it is its failure."""
    started = time.monotonic()
    try:
        outcome = CLIENTS[name](site)
    except Missing as reason:
        outcome = Outcome(name, skipped=str(reason))
    except subprocess.TimeoutExpired as error:
        outcome = Outcome(name, failed=[f"{error.cmd[0]} took longer than {error.timeout:g} s"])
    seconds = time.monotonic() - started
    state = "skipped" if outcome.skipped and not outcome.passed else "failed" if outcome.failed else "ok"
    print(
        f"{name}: {state}, {outcome.passed} held, {len(outcome.failed)} failed, {seconds:.0f} s", flush=True
    )
    for text in (*outcome.failed, outcome.skipped):
        if text:
            print(f"    {text.strip()}", flush=True)
    return outcome


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as Markdown."""
    lines = ["| client | version | checks that held | failed | left out |", "|---|---|---:|---:|---|"]
    for outcome in outcomes:
        cells = (outcome.client, outcome.version, outcome.passed, len(outcome.failed), outcome.skipped)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def write_table(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Replace the table in a page, between its first row and the next empty line."""
    head, _, rest = path.read_text().partition("| client |")
    path.write_text(head + table(outcomes) + "\n\n" + rest.partition("\n\n")[2])


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m test.clients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=CLIENTS, default=list(CLIENTS), metavar="CLIENT")
    parser.add_argument("--auth", help="where tokens are given out; a cluster of its own if absent")
    parser.add_argument("--markdown", type=Path, help="a page whose table of outcomes is replaced")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = None
        if args.auth is None:
            cluster = LiveCluster(Path(folder) / "cluster")
            cluster.start()
        try:
            auth = args.auth or cluster.plan.auth_url
            outcomes = [attempt(name, Site(auth, Path(folder) / "clients")) for name in args.only]
        finally:
            if cluster is not None:
                cluster.stop()
    print(table(outcomes))
    if args.markdown:
        write_table(args.markdown, outcomes)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
