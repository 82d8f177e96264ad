"""Prints devices and dispersion as tables with upstream's columns.

Facts come in as data (``ring.report``), lines go out. spec: ring.md §11
"""

from __future__ import annotations

from collections.abc import Sequence

from swift.ring.report import DeviceFacts, DispersionReport

_IP_TITLE = "ip address"
_REPLICATION_TITLE = "replication ip"
_PORT_WIDTH_MIN = 4
_WEIGHT_WIDTH_MIN = 6
_TIER_WIDTH_MIN = 30


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _address_width(title: str, ips: Sequence[str]) -> int:
    """Room for the longest address; brackets count for all once there is any IPv6."""
    widest = max(map(len, (title, *ips)))
    return widest + 2 if any(":" in ip for ip in ips) else widest


def device_table(devices: Sequence[DeviceFacts]) -> list[str]:
    """Return the table of the default command."""
    ip_width = _address_width(_IP_TITLE, [dev["ip"] for dev in devices])
    rip_width = _address_width(_REPLICATION_TITLE, [dev["replication_ip"] for dev in devices])
    port_width = max([_PORT_WIDTH_MIN, *(len(str(dev["port"])) for dev in devices)])
    rport_width = max([_PORT_WIDTH_MIN, *(len(str(dev["replication_port"])) for dev in devices)])
    weight_width = max([_WEIGHT_WIDTH_MIN, *(len(f"{dev['weight']:.2f}") for dev in devices)])
    lines = [
        f"Devices:{'id':>5} region zone {_IP_TITLE:>{ip_width}}:{'port':<{port_width}} "
        f"{_REPLICATION_TITLE:>{rip_width}}:{'port':<{rport_width}} {'name':>5} "
        f"{'weight':>{weight_width}} partitions balance flags meta"
    ]
    for dev in devices:
        flags = "DEL" if dev["removing"] else ""
        lines.append(
            f"{dev['id']:13d} {dev['region']:6d} {dev['zone']:4d} "
            f"{_bracketed(dev['ip']):>{ip_width}}:{dev['port']:<{port_width}d} "
            f"{_bracketed(dev['replication_ip']):>{rip_width}}:{dev['replication_port']:<{rport_width}d} "
            f"{dev['device']:>5} {dev['weight']:{weight_width}.2f} {dev['partitions']:10d} "
            f"{dev['balance']:7.2f} {flags:>5} {dev['meta']}"
        )
    return lines


def search_table(devices: Sequence[DeviceFacts]) -> list[str]:
    """Return the table of search: fixed columns."""
    lines = [
        f"Devices:{'id':>6}{'region':>8}{'zone':>6}{_IP_TITLE:>16}{'port':>6}{_REPLICATION_TITLE:>16}"
        f"{'replication port':>18}{'name':>10} weight partitions balance meta"
    ]
    for dev in devices:
        lines.append(
            f"{dev['id']:14d} {dev['region']:7d} {dev['zone']:5d} {dev['ip']:>15} {dev['port']:5d} "
            f"{dev['replication_ip']:>15} {dev['replication_port']:17d} {dev['device']:>9} "
            f"{dev['weight']:6.2f} {dev['partitions']:10d} {dev['balance']:7.2f} {dev['meta']}"
        )
    return lines


def tier_table(report: DispersionReport) -> list[str]:
    """Return the table of ``dispersion --verbose``; empty when no tier matched."""
    if not report.tiers:
        return []
    width = max([_TIER_WIDTH_MIN, *(len(tier.name) for tier in report.tiers)])
    columns = "".join(f" {number:5d}" for number in range(len(report.tiers[0].counts)))
    title = f"{'Tier':<{width}} {'Parts':>5} {'%':>6} {'Max':>6}{columns}"
    rule = "-" * len(title)
    lines = [rule, title, rule]
    for tier in report.tiers:
        counts = "".join(f" {count:5d}" for count in tier.counts)
        lines.append(f"{tier.name:<{width}} {tier.parts:5d} {tier.over_percent:6.02f} {tier.most:6d}{counts}")
    return lines
