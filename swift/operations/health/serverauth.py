"""Judges the reports of storage servers about the authentication of servers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from swift.operations.recon.client import Host

#: Refused requests are reported for so long, seconds.
REFUSED_S = 3600.0
_SHOWN_MAX = 4
_TEXT_MAX = 200
_NUMBER_MAX = 1e18


@dataclass(frozen=True)
class AuthReport:
    """The page ``/recon/serverauth`` of a host."""

    mode: str
    #: Ids of its secrets, the one that signs first.
    key_ids: tuple[str, ...] = ()
    #: Refused requests, and the last of them: Unix seconds, address of the sender, reason.
    refused: int = 0
    refused_s: float = 0.0
    refused_from: str = ""
    reason: str = ""


def parse_auth_report(said: Mapping[str, object]) -> AuthReport | None:
    """Return the report of a page; None if it is none."""
    mode, key_ids, refused = said.get("mode"), said.get("key_ids"), said.get("refused")
    if not isinstance(mode, str):
        return None
    ids = tuple(map(_plain, key_ids)) if isinstance(key_ids, list) else ()
    counts = refused if isinstance(refused, dict) else {}
    count, last_s = counts.get("count"), counts.get("last")
    if not _is_number(count) or not _is_number(last_s):
        return AuthReport(_plain(mode), ids)
    sender, reason = _plain(counts.get("address", "")), _plain(counts.get("reason", ""))
    return AuthReport(_plain(mode), ids, int(count), float(last_s), sender, reason)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and 0 <= value < _NUMBER_MAX


def _plain(value: object) -> str:
    """Return a short text that a terminal shows as it is."""
    text = str(value)[:_TEXT_MAX]
    return text if text.isprintable() else repr(text)


def auth_problems(reports: Mapping[Host, AuthReport], now_s: float) -> Iterator[tuple[str, str]]:
    """Yield what is wrong and what to do, as sentences."""
    modes = {host: report.mode for host, report in reports.items()}
    if len(set(modes.values())) > 1:
        yield (
            f"servers differ in the mode of server authentication: {_groups(modes)}",
            "give all nodes the same [swift-servers] in swift.conf, and reload the servers",
        )
    ids = {host: " ".join(report.key_ids) or "none" for host, report in reports.items()}
    if any(report.mode != "off" for report in reports.values()) and len(set(ids.values())) > 1:
        yield (
            f"servers have other secrets for server authentication: {_groups(ids)}",
            "give all nodes the same file of secrets; if a rotation broke off, complete it",
        )
    for host, report in sorted(reports.items()):
        if report.refused and now_s - report.refused_s < REFUSED_S:
            yield (
                f"{host} refused {report.refused} requests, the last from {report.refused_from}: "
                f"{report.reason}",
                "give the sender the secret if it belongs to the cluster; else find out what it is",
            )


def _groups(values: Mapping[Host, str]) -> str:
    """Return values with their hosts, the fewest hosts first."""
    groups: dict[str, list[Host]] = {}
    for host, value in sorted(values.items()):
        groups.setdefault(value, []).append(host)
    texts = []
    for value, hosts in sorted(groups.items(), key=lambda item: len(item[1])):
        more = f" and {len(hosts) - _SHOWN_MAX} more" if len(hosts) > _SHOWN_MAX else ""
        texts.append(f"{value} on {', '.join(map(str, hosts[:_SHOWN_MAX]))}{more}")
    return "; ".join(texts)
