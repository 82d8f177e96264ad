"""Count the modules and function calls that a request passes through.

    python -m tools.paths [--format markdown|json] [--trace OPERATION] [--write]

``sys.setprofile`` records the calls of functions of ``swift/`` while one operation runs in the simulated
cluster: the proxy and the servers of all replicas, without sockets. Each operation ran before, so that
modules are imported and caches filled. The columns:

modules
    files of ``swift/`` in which a function is called
calls
    calls of these functions; resuming a generator is a call
changes
    how often a reader changes the file who reads each function once, in the order of their first calls
returns
    the changes to a file that he read before

``--trace`` prints the files of one operation in order. ``--write`` replaces the table of
``doc/explanation/testing.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import swift
from swift.base.timestamp import Timestamp
from test.support.daemons import Sharders, settle
from test.support.object_cluster import DAEMONS, ObjectCluster
from test.support.s3_fixtures import Multipart, S3Cluster
from test.support.sim import SimCluster, node_port, write_rings

_ROOT = Path(swift.__file__).parent
_PREFIX = f"{_ROOT}/"
_PAGE = _ROOT.parent / "doc/explanation/testing.md"
_BEGIN, _END = "<!-- paths: begin -->\n", "<!-- paths: end -->\n"
#: Prefixes of files below ``swift/``.
Packages = tuple[str, ...]
_SMALL = b"x" * 100
_SHARDED_NAMES = 30
_PROXY = ("proxy/",)
_OBJECT_SERVER = ("obj/", "store/")


@dataclass(frozen=True)
class Counts:
    """The path of one operation, or of its part in some packages."""

    modules: int
    calls: int
    changes: int
    returns: int


class Recording:
    """The calls of functions of ``swift/`` while something runs, in order."""

    def __init__(self, do: Callable[[], object]):
        """Run ``do`` and record it."""
        self._calls: list[CodeType] = []
        sys.setprofile(self._event)
        try:
            do()
        finally:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PREFIX):
            self._calls.append(frame.f_code)

    def order(self, packages: Packages = ()) -> list[tuple[str, list[str]]]:
        """Return the files in the order of reading, each with the functions that are read there."""
        functions = dict.fromkeys(code for code in self._calls if _file_of(code).startswith(packages or ""))
        groups = itertools.groupby(functions, _file_of)
        return [(name, [code.co_qualname for code in codes]) for name, codes in groups]

    def counts(self, packages: Packages = ()) -> Counts:
        """Return the counts of the calls below some packages, of all without."""
        calls = sum(_file_of(code).startswith(packages or "") for code in self._calls)
        order = self.order(packages)
        modules = len({name for name, _functions in order})
        return Counts(modules, calls, len(order) - 1, len(order) - modules)


def _file_of(code: CodeType) -> str:
    return code.co_filename[len(_PREFIX) :]


def _shortest(do: Callable[[], object]) -> Recording:
    """Return the recording with the fewest calls of three: cached info may expire in the midst of one."""
    return min((Recording(do) for _ in range(3)), key=lambda recording: recording.counts().calls)


class _Operations:
    """Prepares each operation and records it."""

    def __init__(self, folder: Path):
        rings = folder / "rings"
        rings.mkdir()
        write_rings(rings)
        self._folder = folder
        self._sim = SimCluster(folder / "nodes", rings, packed=lambda _number: False)

    def close(self) -> None:
        self._sim.close()

    def record(self) -> Iterator[tuple[str, Packages, Recording]]:
        """Yield the name of each operation, the packages to count in (none: all), and the recording."""
        yield from self._objects()
        yield from self._listings()
        yield from self._s3()
        yield "idle replication pass, 32 objects", (), self._replication()

    def _send(self, method: str, path: str, body: bytes = b"") -> None:
        answer = self._sim(method, path, {"content-type": "text/plain"}, body)
        if not 200 <= answer.status < 300:
            raise RuntimeError(f"{method} {path}: {answer}")

    def _objects(self) -> Iterator[tuple[str, Packages, Recording]]:
        send = self._send
        send("PUT", "/a/c")
        for method in ("PUT", "GET", "HEAD", "DELETE", "PUT"):
            send(method, "/a/c/o", _SMALL if method == "PUT" else b"")
        put = _shortest(partial(send, "PUT", "/a/c/o", _SMALL))
        yield "PUT of 100 bytes", (), put
        yield "… its part in the proxy", _PROXY, put
        yield "… its part in one object server", _OBJECT_SERVER, self._object_server_put()
        for method in ("GET", "HEAD"):
            yield method, (), _shortest(partial(send, method, "/a/c/o"))
        yield "DELETE", (), Recording(partial(send, "DELETE", "/a/c/o"))

    def _object_server_put(self) -> Recording:
        """Record the last PUT's request to an object server, with a later timestamp."""
        _kind, number, method, path, headers = next(
            each for each in self._sim.transport.requests if each[0] == "object"
        )
        later = {**headers, "x-timestamp": Timestamp(time.time()).internal}
        port = node_port("object", number)
        return Recording(partial(self._sim.transport.request_of, port, method, path, later, _SMALL))

    def _listings(self) -> Iterator[tuple[str, Packages, Recording]]:
        list_names = partial(self._send, "GET", "/a/c?format=json")
        for number in range(_SHARDED_NAMES):
            self._send("PUT", f"/a/c/o{number:02d}", _SMALL)
        list_names()
        listing = _shortest(list_names)
        yield "listing", (), listing
        yield "… its part in the proxy", _PROXY, listing
        self._sim("POST", "/a/c", {"x-container-sysmeta-sharding": "True"})
        settle(self._sim, Sharders(self._sim, self._folder))
        list_names()
        sharded = _shortest(list_names)
        yield "sharded listing", (), sharded
        yield "… its part in the proxy", _PROXY, sharded

    def _s3(self) -> Iterator[tuple[str, Packages, Recording]]:
        s3 = S3Cluster(self._sim)
        s3("PUT", "/bucket")
        bodies = {"PUT": _SMALL}
        send = {
            method: partial(s3, method, "/bucket/o", {}, bodies.get(method, b""))
            for method in ("PUT", "GET", "HEAD", "DELETE")
        }
        for method in (*send, "PUT"):
            send[method]()
        yield "S3 PUT of 100 bytes", (), _shortest(send["PUT"])
        for method in ("GET", "HEAD"):
            yield f"S3 {method}", (), _shortest(send[method])
        yield "S3 DELETE", (), Recording(send["DELETE"])
        upload = self._multipart(s3, [])
        upload.complete((1, _SMALL))
        recordings: list[Recording] = []
        upload = self._multipart(s3, recordings)
        yield "S3 CreateMultipartUpload", (), recordings[0]
        yield "S3 UploadPart", (), recordings[1]
        yield "S3 CompleteMultipartUpload", (), Recording(lambda: upload.complete((1, _SMALL)))

    @staticmethod
    def _multipart(s3: S3Cluster, recordings: list[Recording]) -> Multipart:
        uploads: list[Multipart] = []
        recordings.append(Recording(lambda: uploads.append(Multipart(s3))))
        recordings.append(Recording(lambda: uploads[0].part(1, _SMALL)))
        return uploads[0]

    def _replication(self) -> Recording:
        """Record a pass of one node's object replicator that finds nothing to do."""
        cluster = ObjectCluster(self._folder / "replication", seed=0, packed=())
        try:
            for _ in range(32):
                cluster.put()
            cluster.heal()
            runner = cluster.nodes.runner(0, *DAEMONS["replicator"])
            runner.run_once()
            return Recording(runner.run_once)
        finally:
            cluster.stop()


def measure() -> list[tuple[str, Packages, Recording]]:
    """Return the name of each operation, the packages to count in, and its recording."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(_Operations(Path(folder))) as operations:
        return list(operations.record())


def as_markdown(rows: list[tuple[str, Counts]]) -> str:
    """Return the rows as a table."""
    lines = ["| operation | modules | calls | changes | returns |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {name} | {c.modules} | {c.calls:,} | {c.changes:,} | {c.returns:,} |" for name, c in rows]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Print the table, or the order of files of one operation; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.paths",
        description="Count the modules and function calls that a request passes through.",
        epilog="example: python -m tools.paths --trace 'sharded listing'",
    )
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    parser.add_argument(
        "--trace", metavar="OPERATION", help="print the files of one operation and their functions in order"
    )
    parser.add_argument("--write", action="store_true", help=f"replace the table of {_PAGE.name}")
    options = parser.parse_args(argv)
    measured = measure()
    if options.trace:
        found = next((each for each in measured if each[0] == options.trace), None)
        if found is None:
            parser.error(f"operations are {', '.join(name for name, _packages, _recording in measured)}")
        for name, functions in found[2].order(found[1]):
            print(f"{name}: {', '.join(functions)}")
        return 0
    rows = [(name, recording.counts(package)) for name, package, recording in measured]
    if options.write:
        before, _, rest = _PAGE.read_text().partition(_BEGIN)
        _PAGE.write_text(f"{before}{_BEGIN}\n{as_markdown(rows)}\n{_END}{rest.partition(_END)[2]}")
    elif options.format == "json":
        print(json.dumps([{"operation": name, **asdict(counts)} for name, counts in rows], indent=2))
    else:
        print(as_markdown(rows), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
