"""The lines of a check: statistics, completions, comparisons; the same facts are kept for JSON.

spec: cli-and-config.md §10
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from swift.base.documents import JsonObject
from swift.operations.recon.client import ReconReply

RULE = "=" * 79
_UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")

Number = int | float


def clock_text(seconds: float) -> str:
    """Return a moment as recon prints it; in seconds, when it is in no year that there is."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s"


def age_text(seconds: float) -> str:
    """Return an age in the largest unit that fits."""
    for size, name in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return f"{int(seconds)} seconds ago"


def size_text(count: float) -> str:
    """Return bytes in units of 1000."""
    step = 0
    while count >= 1000 and step < len(_PREFIXES) - 1:
        count /= 1000
        step += 1
    return f"{int(count)} {_PREFIXES[step]}B" if step else f"{int(count)} B"


def statistics(values: Sequence[Number | None]) -> JsonObject | None:
    """Return the figures of a check; None when no host reported any."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    missing = len(values) - len(known)
    return {
        "low": min(known),
        "high": max(known),
        "average": sum(known) / len(known),
        "total": sum(known),
        "perc_none": 100.0 * missing / len(values),
        "number_none": missing,
        "reported": len(known),
    }


class ReconReport:
    """Prints lines, or collects everything in ``facts`` for JSON."""

    def __init__(self, *, prints: bool, verbose: bool = False, suppress: bool = False):
        self.facts: JsonObject = {}
        self._prints = prints
        self._verbose = verbose
        self._suppress = suppress
        #: Servers that gave no answer to the present check.
        self.unanswered = 0

    def print_line(self, text: str) -> None:
        """Print one line."""
        if self._prints:
            print(text, flush=True)

    def print_heading(self, text: str) -> None:
        """Print the heading of a check."""
        self.unanswered = 0
        self.print_line(f"[{clock_text(time.time())}] {text}")

    def print_rule(self) -> None:
        """Print the line below a check."""
        self.print_line(RULE)

    def record(self, replies: Sequence[ReconReply]) -> list[ReconReply]:
        """Return the replies that have content; print errors, and with ``verbose`` everything."""
        good = []
        for reply in replies:
            if reply.error:
                self.facts.setdefault("errors", {})[reply.url] = reply.error
                if not self._suppress or self._verbose:
                    self.print_line(f"-> {reply.url}: {reply.error}")
                continue
            if self._verbose:
                self.print_line(f"-> {reply.url}: {reply.content}")
            good.append(reply)
        return good

    def print_verbose(self, text: str) -> None:
        """Print a line in verbose mode."""
        if self._verbose:
            self.print_line(text)

    def stats(self, name: str, values: Sequence[Number | None], *, key: str = "") -> None:
        """Print the line of figures."""
        figures = statistics([*values, *[None] * self.unanswered])
        self.facts[key or name] = figures
        if figures is None:
            self.print_line(f"[{name}] - No hosts returned valid data.")
            return
        self.print_line(
            "[{name}] low: {low:d}, high: {high:d}, avg: {average:.1f}, total: {total:d}, "
            "Failed: {perc_none:.1f}%, no_result: {number_none}, reported: {reported}".format(
                name=name,
                **{
                    **figures,
                    "low": int(figures["low"]),
                    "high": int(figures["high"]),
                    "total": int(figures["total"]),
                },
            )
        )

    def completions(self, last: Mapping[str, float]) -> None:
        """Print the hosts with the oldest and the newest completion; ``last`` is by host, 0 for never."""
        if not last:
            return
        oldest = min(last, key=lambda host: last[host])
        newest = max(last, key=lambda host: last[host])
        self.facts["completions"] = dict(last)
        for replies, host in (("Oldest completion was", oldest), ("Most recent completion was", newest)):
            when = last[host]
            if not when:
                self.print_line(f"{replies} NEVER by {host}.")
                continue
            self.print_line(f"{replies} {clock_text(when)} ({age_text(time.time() - when)}) by {host}.")

    def matched(self, good: int, of: int, errors: int, noun: str = "matched") -> None:
        """Print the number of hosts that match."""
        self.facts["hosts"] = {noun: good, "of": of, "errors": errors}
        self.print_line(f"{good}/{of} hosts {noun}, {errors} error[s] while checking hosts.")
