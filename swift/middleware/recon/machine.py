"""Kernel statistics: contents of /proc as JSON values. Parsing is pure.

Every function takes the text of its file, so that tests need no such machine.
"""

from __future__ import annotations

import resource

MEMINFO = "/proc/meminfo"
LOADAVG = "/proc/loadavg"
MOUNTS = "/proc/mounts"
SOCKSTAT = "/proc/net/sockstat"
SOCKSTAT6 = "/proc/net/sockstat6"


def parse_meminfo(text: str) -> dict[str, str]:
    """Return the names of /proc/meminfo with their values as printed, e.g. ``"123 kB"``."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def parse_loadavg(text: str) -> dict[str, object]:
    """Return load averages, running/existing tasks, and the newest process id."""
    one, five, fifteen, tasks, newest = text.split()[:5]
    return {
        "1m": float(one),
        "5m": float(five),
        "15m": float(fifteen),
        "tasks": tasks,
        "processes": int(newest),
    }


def parse_mounts(text: str) -> list[dict[str, str]]:
    """Return every mount as device and path."""
    fields = (line.split() for line in text.splitlines())
    return [{"device": parts[0], "path": parts[1]} for parts in fields if len(parts) > 1]


def parse_sockstat(text: str, text6: str, page_bytes: int | None = None) -> dict[str, int]:
    """Return counters of TCP sockets; ``text6`` is empty on machines without IPv6."""
    tcp = _parse_counters(text, "TCP")
    return {
        "tcp_in_use": tcp.get("inuse", 0),
        "orphan": tcp.get("orphan", 0),
        "time_wait": tcp.get("tw", 0),
        "tcp_mem_allocated_bytes": tcp.get("mem", 0) * (page_bytes or resource.getpagesize()),
        "tcp6_in_use": _parse_counters(text6, "TCP6").get("inuse", 0),
    }


def _parse_counters(text: str, protocol: str) -> dict[str, int]:
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name == protocol:
            tokens = rest.split()
            return {key: int(value) for key, value in zip(tokens[::2], tokens[1::2], strict=False)}
    return {}
