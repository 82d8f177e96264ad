"""The cost of a listing page in a container of a million objects, compared with ten thousand.

    python -m tools.bench.listings --rows 1000000 --small 10000 --json listings.json

Both containers are made directly in their databases below ``--root`` and asked through the broker; what is
measured is the page as JSON text, a server's answer without HTTP. Counted is CPU time, so that a busy machine
changes little, and the best of a few runs. A page must cost the same whatever the container holds: the aim is
no more than three times as much.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from math import gcd
from pathlib import Path

from swift.base.errors import SwiftError
from swift.base.timestamp import Timestamp
from swift.container import objecttable
from swift.container.broker import ContainerBroker
from swift.container.listing import as_json
from swift.container.rows import ObjectRow
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery
from tools.bench.options import bare_parser

#: How many times more a page of the large container may cost.
GOAL = 3.0
PAGE_ROWS = 10_000
#: Objects below one prefix of the container whose prefixes are listed.
OBJECTS_PER_PREFIX = 10
_BATCH = 20_000


@dataclass(frozen=True)
class ListingFigure:
    """A page of both containers: its entries and CPU seconds."""

    page: str
    entries: int
    small_s: float
    large_s: float

    @property
    def ratio(self) -> float:
        """Return the cost of the large container's page divided by the small one's."""
        return self.large_s / self.small_s if self.small_s else float("inf")


def names_of(rows: int) -> Iterator[str]:
    """Yield names in pseudorandom order below ``rows / 10`` prefixes, as many clients would put them."""
    step = 7_368_787
    while gcd(step, rows) != 1:
        # A step without common divisor visits every place once.
        step += 1
    for number in range(rows):
        place = number * step % rows
        yield f"p{place // OBJECTS_PER_PREFIX:07}/object-{place % OBJECTS_PER_PREFIX}"


def make_container(root: Path, name: str, rows: int) -> ContainerBroker:
    """Create a container of ``rows`` objects; raises the errors of ``db.connection`` and OSError."""
    device = root / "sda"
    device.mkdir(exist_ok=True)
    place = DatabasePath(str(device), "containers", "0", f"{rows:032x}")
    broker = ContainerBroker(place, Engine(), "AUTH_bench", name)
    put = Timestamp(1_700_000_000)
    broker.create(put, 0, created_at=put)
    names = names_of(rows)
    while batch := [_row(each) for each in islice(names, _BATCH)]:
        broker.write(partial(_merge, batch))
    broker.refresh()
    return broker


def _merge(batch: list[ObjectRow], connection: sqlite3.Connection) -> None:
    objecttable.merge_rows(connection, batch)


def _row(name: str) -> ObjectRow:
    return ObjectRow(name, "1700000001.00000", 1024, "text/plain", "d41d8cd98f00b204e9800998ecf8427e")


def pages(rows: int, *, small: int) -> dict[str, ListingQuery]:
    """Return the pages to list of a container of ``rows``, with sizes that ``small`` rows allow."""
    prefixes = rows // OBJECTS_PER_PREFIX
    limit = min(PAGE_ROWS, small // 4)
    middle, late = f"p{prefixes // 2:07}/", f"p{prefixes - limit // OBJECTS_PER_PREFIX:07}/"
    few = small // OBJECTS_PER_PREFIX
    return {
        "first page": ListingQuery(limit),
        "middle page": ListingQuery(limit, marker=middle),
        "last page": ListingQuery(limit, marker=late),
        "reverse page": ListingQuery(limit, reverse=True),
        "reverse page from the middle": ListingQuery(limit, reverse=True, marker=middle),
        "page of a prefix": ListingQuery(limit, prefix=middle[: -len("/") - 1]),
        "prefixes, first page": ListingQuery(few, delimiter="/"),
        "prefixes, reverse page": ListingQuery(few, delimiter="/", reverse=True),
        "prefixes from the middle": ListingQuery(few // 4, delimiter="/", marker=middle),
        "path below a prefix": ListingQuery(limit, path=middle[:-1]),
    }


def cpu_s(broker: ContainerBroker, query: ListingQuery, runs: int) -> tuple[float, int]:
    """Return the CPU seconds of the best run, and the entries of the page."""
    best, entries = float("inf"), 0
    for _ in range(runs):
        started = time.process_time()
        rows = broker.listing(query, 0)
        as_json(rows)
        best = min(best, time.process_time() - started)
        entries = len(rows)
    return best, entries


def measure(root: Path, rows: int, small: int, runs: int) -> list[ListingFigure]:
    """Measure both containers, page by page, and all prefixes of each."""
    started = time.process_time()
    brokers = [make_container(root, f"of-{count}", count) for count in (small, rows)]
    print(f"made both in {time.process_time() - started:.0f} CPU seconds", file=sys.stderr)
    figures = []
    queries = [pages(count, small=small) for count in (small, rows)]
    for page in queries[0]:
        (small_s, few), (large_s, entries) = (
            cpu_s(broker, query[page], runs) for broker, query in zip(brokers, queries, strict=True)
        )
        if few != entries:
            raise SwiftError(f"{page}: {few} entries of the small container, {entries} of the large one")
        figures.append(ListingFigure(page, entries, small_s, large_s))
    figures.append(_all_prefixes(brokers, (small, rows), runs))
    return figures


def _all_prefixes(brokers: Sequence[ContainerBroker], counts: Sequence[int], runs: int) -> ListingFigure:
    """List all prefixes in pages, as a client does; return the seconds per the small one's count."""
    costs, found = [], 0
    for broker, count in zip(brokers, counts, strict=True):
        total_s, marker, found = 0.0, "", 0
        while True:
            query = ListingQuery(PAGE_ROWS, delimiter="/", marker=marker)
            rows = broker.listing(query, 0)
            if not rows:
                break
            page_s, entries = cpu_s(broker, query, runs)
            total_s, found, marker = total_s + page_s, found + entries, rows[-1][-1]
        if found != count // OBJECTS_PER_PREFIX:
            raise SwiftError(f"{found} prefixes were listed, not {count // OBJECTS_PER_PREFIX}")
        costs.append(total_s * counts[0] / count)
    return ListingFigure(f"all {found:,} prefixes, per {counts[0] // OBJECTS_PER_PREFIX:,}", found, *costs)


def table(figures: Sequence[ListingFigure], rows: int, small: int) -> str:
    """Return the figures as Markdown."""
    lines = [
        f"| CPU milliseconds of a page | entries | of {small:,} | of {rows:,} | ratio (goal {GOAL:g}) |",
        "|---|---:|---:|---:|---:|",
    ]
    for each in figures:
        lines.append(
            f"| {each.page} | {each.entries:,} | {each.small_s * 1000:.2f} | {each.large_s * 1000:.2f} | "
            f"**{each.ratio:.1f}x** |"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = bare_parser("listings", __doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="objects of the large container")
    parser.add_argument("--small", type=int, default=10_000, help="objects of the small one")
    parser.add_argument("--runs", type=int, default=5, help="how often a page is asked for")
    parser.add_argument("--root", type=Path, help="where databases are put; a temporary directory")
    parser.add_argument("--json", type=Path, help="write the figures here")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 0 when the goal is met, else 1."""
    args = _parser().parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(dir=args.root) as folder:
            figures = measure(Path(folder), args.rows, args.small, args.runs)
    except (SwiftError, OSError) as error:
        print(f"listings: {error}", file=sys.stderr)
        return 1
    print(table(figures, args.rows, args.small))
    if args.json:
        values = [{**asdict(each), "ratio": each.ratio} for each in figures]
        args.json.write_text(json.dumps(values, indent=1) + "\n")
    return 0 if all(each.ratio <= GOAL for each in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
