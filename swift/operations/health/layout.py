"""The layouts that nodes run, by the recon pages of their agents, and how far the controller is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from swift.operations.health.copies import usable_number
from swift.operations.recon.client import Host

#: Agents have so many seconds to come to a new version.
LAG_S = 180.0
#: A node that is so many versions behind lags in any case: the newest may always be a young one.
LAG_VERSIONS = 3
#: An agent whose last pass is older does not run.
SILENT_S = 600.0
#: Clocks differ by so much.
_AHEAD_S = 60.0
#: Bounds of what a page may say.
_TEXT_MAX, _NAME_MAX, _NAMES_MAX = 300, 64, 200


@dataclass(frozen=True)
class LayoutReport:
    """The page of a node; version 0 is that of a node without a layout."""

    version: int
    id: str
    issued_s: float
    checked_s: float
    error: str
    changed: tuple[str, ...]


@dataclass(frozen=True)
class ControllerReport:
    """The page of a layout controller: its last decision, and how far the change under way is."""

    text: str
    #: Unix seconds of the decision, and whether no other controller has the lease.
    checked_s: float
    leads: bool
    version: int
    #: The change under way; empty at rest.
    change: str
    #: Seconds that it still takes; 0: unknown.
    left_s: float
    paused: str
    #: ``ip/device`` of devices that are away.
    away: tuple[str, ...]
    #: Ring → copies that the change moves, that have arrived, and that are moving.
    moves: Mapping[str, tuple[int, int, int]]

    @property
    def percent(self) -> float:
        """The share of the change that has arrived."""
        total = sum(each[0] for each in self.moves.values())
        return 100.0 * sum(each[1] for each in self.moves.values()) / total if total else 0.0


#: Host → its report, None for a host that has no layout agent.
LayoutReports = Mapping[Host, LayoutReport | None]


def parse_report(said: object) -> LayoutReport | None:
    """Return the report of a recon page; None if no agent wrote one."""
    if not isinstance(said, dict):
        return None
    numbers = [said.get(name) for name in ("version", "issued", "last_check")]
    version, issued_s, checked_s = (
        value if isinstance(value, int | float) and abs(value) < 1e18 else 0 for value in numbers
    )
    changed = said.get("changed")
    names = tuple(_text(name, 32) for name in changed[:64]) if isinstance(changed, list) else ()
    return LayoutReport(
        int(version), _text(said.get("id"), 16), issued_s, checked_s, _text(said.get("error") or ""), names
    )


def _text(value: object, length: int = _TEXT_MAX) -> str:
    """Return the beginning of a text, without characters that a terminal would obey."""
    return "".join(each if each.isprintable() else "?" for each in str(value)[:length])


def parse_controller(said: object) -> ControllerReport | None:
    """Return the report of a recon page; None if no controller wrote one."""
    if not isinstance(said, dict) or not usable_number(said.get("last")):
        return None
    rings, away = said.get("rings"), said.get("away")
    moves = {
        _text(name, _NAME_MAX): (int(usable_number(each.get("all"))), *_arrived_and_moving(each))
        for name, each in (list(rings.items())[:_NAMES_MAX] if isinstance(rings, dict) else ())
        if isinstance(each, dict)
    }
    return ControllerReport(
        _text(said.get("said") or ""),
        usable_number(said["last"]),
        said.get("leads") is True,
        int(usable_number(said.get("version"))),
        _text(said.get("change") or ""),
        usable_number(said.get("left_s")),
        _text(said.get("paused") or ""),
        tuple(_text(name, _NAME_MAX) for name in away[:_NAMES_MAX]) if isinstance(away, list) else (),
        moves,
    )


def _arrived_and_moving(moves: Mapping[str, object]) -> tuple[int, int]:
    return int(usable_number(moves.get("arrived"))), int(usable_number(moves.get("moving")))


def leading_controller(reports: Iterable[ControllerReport], now_s: float) -> ControllerReport | None:
    """Return the report of the controller that carries out the layout; without one, the newest.

    A report of the future does not count: it would hide all others.
    """
    told = [report for report in reports if report.checked_s <= now_s + _AHEAD_S]
    return max(told, key=lambda report: (report.leads, report.checked_s), default=None)


def controller_problems(report: ControllerReport | None, now_s: float) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the controller and what heals it."""
    if report is not None and report.change and now_s - report.checked_s > SILENT_S:
        yield (
            "the layout controller does not go on with the change under way",
            "start it: swift-init layout-controller start",
        )


def layout_problems(reports: LayoutReports, now_s: float) -> Iterator[tuple[str, str]]:
    """Yield what is wrong and what heals it."""
    known = {host: report for host, report in reports.items() if report is not None and report.version}
    if not known:
        return
    newest = max(known.values(), key=lambda report: (report.version, report.issued_s, report.id))
    silent = [
        host
        for host, report in reports.items()
        if report is None or now_s - report.checked_s > SILENT_S or not report.version
    ]
    yield from _some(silent, "without a layout agent at work", "start it: swift-init layout-agent start")
    is_due = now_s - newest.issued_s > LAG_S
    late = [
        host
        for host, report in known.items()
        if report.id != newest.id
        and (is_due or newest.version - report.version >= LAG_VERSIONS)
        and host not in silent
        and not report.error
    ]
    yield from _some(
        late,
        f"without version {newest.version} of the layout",
        "their layout agents take it from other nodes within a minute; the log says why not",
    )
    for error in sorted({report.error for report in known.values() if report.error}):
        hosts = [host for host, report in known.items() if report.error == error and host not in silent]
        yield from _some(hosts, f"whose layout agent reports: {error}", "mend it there; it is tried again")
    changed = sorted({name for report in known.values() for name in report.changed})
    yield from _some(
        [host for host, report in known.items() if report.changed],
        f"with layout files that were changed by hand ({', '.join(changed)})",
        "the next version of the layout replaces them; one that is removed there is restored at once",
    )


def _some(hosts: list[Host], what: str, remedy: str) -> Iterator[tuple[str, str]]:
    """Yield a sentence about nodes, each once however many servers it has."""
    names = sorted({host.ip for host in hosts})
    if names:
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        yield f"{len(names)} node{'s' if len(names) > 1 else ''} {what}: {shown}", remedy
