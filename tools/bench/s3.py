"""The S3 API beside the peer's s3api, in one run: small requests, listings, multipart uploads and copies.

    python -m tools.bench.s3 --root /var/tmp/s3 --json s3.json

Two clusters of the same plan with the pipeline of ``swift-aio``. Small requests are counted for each second
of CPU of all servers, every one with the same signature, so that the client costs nothing; what is large is
timed by the clock. wrk cannot measure a HEAD.
The last row is what S3 costs over the same request of Swift's API on our side and on
theirs.
"""

from __future__ import annotations

import argparse
import http.client
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from swift.base.errors import ConfigError
from swift.load.endpoint import LoadEndpoint
from tools.bench.compare import ACCOUNT, say
from tools.bench.contestants import Contestant, make_contestants
from tools.bench.options import parser
from tools.bench.sides import TableRow, medians, print_rows
from tools.bench.wrk import Load, run_wrk

BUCKET, MIB = "bench-bucket", 1 << 20
CLIENTS = 16
#: Before anything is counted each request is sent for so long: workers start, caches fill.
WARM_UP_S = 1.0
KEYS = 1000
_SMALL = b"x" * 1024


def endpoint_of(contestant: Contestant) -> LoadEndpoint:
    """Return the endpoint and the keys of a side."""
    plan = contestant.plan
    return LoadEndpoint(f"http://{contestant.host}", access_key=plan.user, secret_key=plan.key)


def ask(
    contestant: Contestant,
    method: str,
    path: str,
    query: Mapping[str, str] | None = None,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> tuple[bytes, Mapping[str, str]]:
    """Send a signed request; return body and headers; raises ``ConfigError`` when it fails."""
    asked = "&".join(f"{name}={value}" if value else name for name, value in (query or {}).items())
    sent = {
        **endpoint_of(contestant).sign_headers(method, path, query or {}, more=headers),
        **(headers or {}),
    }
    connection = http.client.HTTPConnection(contestant.host, timeout=600)
    try:
        connection.request(method, f"{path}?{asked}" if asked else path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise ConfigError(f"{contestant.name}: {method} {path} answered {answer.status}: {content[:200]!r}")
    return content, {name.lower(): value for name, value in answer.getheaders()}


def per_cpu_second(contestant: Contestant, seconds: float, method: str, path: str, size: int = 0) -> float:
    """Return the requests per CPU second of all servers."""
    where, mark, query = path.partition("?")
    words = dict(pair.split("=") for pair in query.split("&")) if mark else {}
    headers = endpoint_of(contestant).sign_headers(method, where, words)
    headers.pop("host")
    load = Load(method, path, CLIENTS, seconds, size, "fixed", 1, tuple(headers.items()))
    return _requests_per_cpu_second(contestant, load)


def swift_gets(contestant: Contestant, seconds: float) -> float:
    """Return the GETs of Swift's API per CPU second."""
    return _requests_per_cpu_second(
        contestant, Load("GET", f"{ACCOUNT}/{BUCKET}/small", CLIENTS, seconds, order="fixed")
    )


def _requests_per_cpu_second(contestant: Contestant, load: Load) -> float:
    token = contestant.token if load.base.startswith(ACCOUNT) else ""
    run_wrk(contestant.host, token, replace(load, seconds=WARM_UP_S))
    before = sum(cpu for cpu, _peak in contestant.usage().values())
    measured = run_wrk(contestant.host, token, load)
    if measured.bad:
        raise ConfigError(f"{contestant.name}: {measured.bad} answers to {load.method} were bad")
    after = sum(cpu for cpu, _peak in contestant.usage().values())
    return measured.requests / max(0.01, after - before)


# --- what is large ------------------------------------------------------------------------------------


def _begin(contestant: Contestant, path: str) -> str:
    found = re.search(rb"<UploadId>([^<]+)<", ask(contestant, "POST", path, {"uploads": ""})[0])
    if found is None:
        raise ConfigError(f"{contestant.name} began no upload")
    return found[1].decode()


def _finish(contestant: Contestant, path: str, upload: str, etags: Sequence[str]) -> None:
    parts = "".join(
        f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag></Part>" for n, etag in enumerate(etags, 1)
    )
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    ask(contestant, "POST", path, {"uploadId": upload}, body)


def upload_rate(contestant: Contestant, parts: int, part_bytes: int) -> float:
    """Return the MB/s of a multipart upload with sequential parts."""
    path, piece = f"/{BUCKET}/large", b"y" * part_bytes
    started = time.monotonic()
    upload = _begin(contestant, path)
    etags = [
        ask(contestant, "PUT", path, {"partNumber": str(n), "uploadId": upload}, piece)[1]["etag"]
        for n in range(1, parts + 1)
    ]
    _finish(contestant, path, upload, etags)
    return parts * part_bytes / (time.monotonic() - started) / 1e6


def copy_rate(contestant: Contestant, parts: int, part_bytes: int) -> float:
    """Return the MB/s of copying that object part by part."""
    path, etags = f"/{BUCKET}/copy", []
    started = time.monotonic()
    upload = _begin(contestant, path)
    for n in range(1, parts + 1):
        first = (n - 1) * part_bytes
        headers = {
            "x-amz-copy-source": f"/{BUCKET}/large",
            "x-amz-copy-source-range": f"bytes={first}-{first + part_bytes - 1}",
        }
        query = {"partNumber": str(n), "uploadId": upload}
        told, _ = ask(contestant, "PUT", path, query, headers=headers)
        found = re.search(rb"<ETag>([^<]+)<", told)
        etags.append(found[1].decode() if found else "")
    _finish(contestant, path, upload, etags)
    return parts * part_bytes / (time.monotonic() - started) / 1e6


# --- the table ----------------------------------------------------------------------------------------


def stock(contestant: Contestant, keys: int) -> None:
    """Create a bucket with small objects."""
    ask(contestant, "PUT", f"/{BUCKET}")
    ask(contestant, "PUT", f"/{BUCKET}/small", body=_SMALL)
    for number in range(keys):
        ask(contestant, "PUT", f"/{BUCKET}/listed/{number:06d}", body=b"z")


def measure(root: Path, peer: Path, args: argparse.Namespace) -> list[TableRow]:
    """Measure all rows of the table."""
    pair = make_contestants(root, peer, "per-device")
    small, listed = f"/{BUCKET}/small", f"/{BUCKET}?list-type=2&prefix=listed"
    measured = partial(_measured, pair, args)
    try:
        for contestant in pair:
            say(f"starting {contestant.name}")
            contestant.start()
            stock(contestant, args.keys)
        rows = [
            measured("small GET", ">= 8x", lambda c: per_cpu_second(c, args.seconds, "GET", small)),
            # Right after it, with which it is compared.
            measured("the small GET by Swift's API", "", lambda c: swift_gets(c, args.seconds)),
            measured("small PUT", ">= 5x", lambda c: per_cpu_second(c, args.seconds, "PUT", small, 1024)),
            measured(
                f"ListObjectsV2 of {args.keys}",
                ">= 6x",
                lambda c: per_cpu_second(c, args.seconds, "GET", listed),
            ),
        ]
        sizes = args.parts, args.part_mib * MIB
        what = f"{args.parts} parts of {args.part_mib} MiB"
        rows += [
            measured(f"multipart upload, {what}", ">= 1.5x", lambda c: upload_rate(c, *sizes), "MB/s"),
            measured(f"copy by UploadPartCopy, {what}", ">= 2x", lambda c: copy_rate(c, *sizes), "MB/s"),
        ]
        signed_get, plain = rows[:2]
        over = (plain.ours / signed_get.ours, plain.theirs / signed_get.theirs)
        rows.append(TableRow("S3 over Swift, CPU of a GET", "times", *over, "ours <= 1.25"))
    finally:
        for contestant in pair:
            contestant.stop()
    return rows


def _measured(
    pair: Sequence[Contestant],
    args: argparse.Namespace,
    what: str,
    goal: str,
    measure_one: Callable[[Contestant], float],
    unit: str = "per CPU s",
) -> TableRow:
    ours, theirs = medians(pair, args.rounds, measure_one)
    return TableRow(what, unit, ours, theirs, goal)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 0, or 1 after an error message."""
    options = parser("s3", __doc__, seconds=6.0)
    options.add_argument("--keys", type=int, default=KEYS, help="objects of the listing")
    options.add_argument("--parts", type=int, default=16, help="parts of the multipart upload")
    options.add_argument("--part-mib", type=int, default=64, help="MiB of each part; 5 at least")
    return print_rows("s3", options.parse_args(argv), measure)


if __name__ == "__main__":
    raise SystemExit(main())
