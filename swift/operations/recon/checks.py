"""The checks of swift-recon: their requests and the evaluation of the responses.

spec: cli-and-config.md §10
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from typing import cast

from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.operations.recon.client import Host, ReconClient, ReconReply
from swift.operations.recon.report import ReconReport, clock_text, size_text
from swift.platform.regularfiles import read_through_links

GRAPH_WIDTH = 69
#: No server has greater figures; larger values are dropped.
NUMBER_MAX = 1 << 63


@dataclass(frozen=True)
class CheckContext:
    """The servers of one type to be checked."""

    client: ReconClient
    hosts: Sequence[Host]
    server_type: str
    swift_dir: str
    #: The ring files with which the servers' are compared.
    rings: Sequence[str]
    jitter_s: float = 0.0
    human_readable: bool = False
    top: int = 0
    lowest: int = 0

    def recon(self, check: str, report: ReconReport, kind: type = dict) -> list[ReconReply]:
        """Return the replies of the hosts that answered.

        Errors are reported, and answers of another ``kind``.
        """
        replies = self.client.recon(self.hosts, check)
        good = report.record([_checked_reply(reply, kind) for reply in replies])
        report.unanswered = len(replies) - len(good)
        return good


def _checked_reply(reply: ReconReply, kind: type) -> ReconReply:
    """Return the reply, or that it is not one as it should be."""
    return (
        reply
        if reply.error or isinstance(reply.content, kind)
        else replace(reply, error="an unexpected answer")
    )


def _entries(reply: ReconReply) -> list[JsonObject]:
    """Return the device entries of a server's reply."""
    return [entry for entry in reply.content if isinstance(entry, dict) and "device" in entry]


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int | float | None:
    """Return a figure; None if it is unknown or not a finite number."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= NUMBER_MAX
    return cast("int | float", value) if is_one else None


def _values(replies: Sequence[ReconReply], key: str) -> list[int | float | None]:
    return [_number(reply.content.get(key)) for reply in replies]


def _inner_values(replies: Sequence[ReconReply], outer: str, key: str) -> list[int | float]:
    """Return figures of a dictionary; a server without them has not begun, which is no failure."""
    found = (_number(_mapping(reply.content.get(outer)).get(key)) for reply in replies)
    return [value for value in found if value is not None]


def _last_completions(replies: Sequence[ReconReply], *keys: str) -> dict[str, float]:
    found = {}
    for reply in replies:
        value = next((reply.content[key] for key in keys if reply.content.get(key) is not None), None)
        if _number(value) is not None:
            found[str(reply.host)] = float(value or 0)
    return found


@dataclass(frozen=True)
class FiguresCheck:
    """A check whose report is figures of the servers, and perhaps the last completions."""

    heading: str
    endpoint: str
    keys: tuple[str, ...]
    #: The name of a figure from its key.
    name: str = "{}"
    completed: str = ""

    def __call__(self, context: CheckContext, report: ReconReport) -> None:
        """Make the check."""
        report.print_heading(self.heading)
        replies = context.recon(self.endpoint, report)
        for key in self.keys:
            report.stats(self.name.format(key), _values(replies, key))
        if self.completed:
            report.completions(_last_completions(replies, self.completed))


check_expirer = FiguresCheck(
    "Checking on expirers", "expirer/object", ("object_expiration_pass", "expired_last_pass")
)
check_reconstruction = FiguresCheck(
    "Checking on reconstructors",
    "reconstruction/object",
    ("object_reconstruction_time",),
    completed="object_reconstruction_last",
)
check_load = FiguresCheck("Checking load averages", "load", ("1m", "5m", "15m"), "{}_load_avg")
_SOCKETS = ("tcp_in_use", "tcp_mem_allocated_bytes", "tcp6_in_use", "time_wait", "orphan")
check_sockets = FiguresCheck("Checking socket usage", "sockstat", _SOCKETS)
check_drive_audit = FiguresCheck("Checking drive-audit errors", "driveaudit", ("drive_audit_errors",))


def check_async(context: CheckContext, report: ReconReport) -> None:
    """Report the container updates that wait to be delivered."""
    report.print_heading("Checking async pendings")
    replies = context.recon("async", report)
    values = _values(replies, "async_pending")
    report.stats("async_pending", values)
    uncounted = [str(reply.host) for reply, value in zip(replies, values, strict=True) if value is None]
    if uncounted:
        report.print_line(
            f"-> not counted on {', '.join(uncounted)}: run swift-recon-cron there every five minutes"
        )


def check_unmounted(context: CheckContext, report: ReconReport) -> None:
    """Report devices that are not mounted, or cannot be read."""
    report.print_heading(f"Getting unmounted drives from {len(context.hosts)} hosts...")
    found = []
    for reply in context.recon("unmounted", report, list):
        for entry in _entries(reply):
            if isinstance(entry.get("mounted"), bool):
                report.print_line(f"Not mounted: {entry['device']} on {reply.host}")
            else:
                report.print_line(f"Device errors: {entry['device']} on {reply.host}")
            found.append({"device": str(entry["device"]), "host": str(reply.host)})
    report.facts["unmounted"] = found


def check_replication(context: CheckContext, report: ReconReport) -> None:
    """Report the last passes of the replicators."""
    report.print_heading("Checking on replication")
    replies = context.recon(f"replication/{context.server_type}", report)
    report.stats("replication_time", _values(replies, "replication_time"))
    for key in ("failure", "success", "attempted"):
        values = _inner_values(replies, "replication_stats", key)
        report.stats(f"replication_{key}" if values else key, values, key=f"replication_{key}")
        if key == "failure":
            _name_failures(replies, report)
    report.completions(_last_completions(replies, "replication_last", "object_replication_last"))


def _name_failures(replies: Sequence[ReconReply], report: ReconReport) -> None:
    """Name the servers whose last pass failed somewhere: "Failed" above counts servers without a figure."""
    for reply in replies:
        stats = _mapping(reply.content.get("replication_stats"))
        failures = _number(stats.get("failure"))
        if failures:
            of = _number(stats.get("attempted")) or 0
            report.print_line(
                f"-> {reply.host}: {failures:g} failures in its last pass, of {of:g} attempts; see its log"
            )


def check_auditor(context: CheckContext, report: ReconReport) -> None:
    """Report the findings of the auditors."""
    if context.server_type == "object":
        _check_object_auditor(context, report)
        return
    report.print_heading("Checking auditor stats")
    kind = context.server_type
    replies = context.recon(f"auditor/{kind}", report)
    for key in (f"{kind}_auditor_pass_completed", f"{kind}_audits_failed", f"{kind}_audits_passed"):
        report.stats(key, _values(replies, key))
    since = [float(v) for v in _values(replies, f"{kind}_audits_since") if v is not None]
    if not since:
        report.print_line("[last_pass] - No hosts returned valid data.")
        return
    oldest, newest, average = min(since), max(since), sum(since) / len(since)
    report.facts["last_pass"] = {"oldest": oldest, "newest": newest, "average": average}
    report.print_line(
        f"[last_pass] oldest: {clock_text(oldest)}, newest: {clock_text(newest)}, avg: {clock_text(average)}"
    )


def _check_object_auditor(context: CheckContext, report: ReconReport) -> None:
    report.print_heading("Checking auditor stats ")
    replies = context.recon("auditor/object", report)
    for kind, keys in (
        ("ALL", ("audit_time", "bytes_processed", "passes", "errors", "quarantined")),
        ("ZBF", ("audit_time", "bytes_processed", "errors", "quarantined")),
    ):
        told = (_sum_by_device(reply.content.get(f"object_auditor_stats_{kind}")) for reply in replies)
        stats = [each for each in told if each]
        if not stats:
            report.facts[f"{kind}_auditor"] = None
            report.print_line(f"[{kind}_auditor] - No hosts returned valid data.")
            continue
        for key in keys:
            report.stats(f"{kind}_{key}_last_path", [_number(each.get(key)) for each in stats])


def _sum_by_device(stats: object) -> dict[str, object]:
    """Sum the figures of auditors with several workers, which report them by device."""
    if not isinstance(stats, Mapping):
        return {}
    if not all(isinstance(each, Mapping) for each in stats.values()):
        return dict(stats)
    total: Counter[str] = Counter()
    for each in stats.values():
        total.update({key: value for key, value in each.items() if _number(value) is not None})
    return dict(total)


def check_updater(context: CheckContext, report: ReconReport) -> None:
    """Report the duration of the last sweeps of the updaters."""
    report.print_heading("Checking updater times")
    kind = context.server_type
    replies = context.recon(f"updater/{kind}", report)
    sweeps = [value for value in _values(replies, f"{kind}_updater_sweep") if value is not None]
    report.stats("updater_last_sweep", sweeps)


def check_packed(context: CheckContext, report: ReconReport) -> None:
    """Report the volumes of packed devices. Nodes without such devices have no figures."""
    report.print_heading("Checking volumes of packed devices")
    replies = context.recon("compactor/object", report)
    devices = [
        facts
        for reply in replies
        if isinstance(found := reply.content.get("object_packed_devices"), Mapping)
        for facts in found.values()
        if isinstance(facts, Mapping)
    ]
    if not devices:
        report.print_line(
            "No server reports packed devices: its policies have the file engine, or "
            "swift-object-compactor has not completed a pass."
        )
    for key in ("volumes", "live_bytes", "dead_bytes", "index_bytes", "lost_bytes"):
        report.stats(f"packed_{key}", [_number(facts.get(key)) for facts in devices])


def check_sharding(context: CheckContext, report: ReconReport) -> None:
    """Report the last passes of the sharders."""
    report.print_heading("Checking on sharders")
    replies = context.recon("sharding", report)
    report.stats("sharding_time", _values(replies, "sharding_time"))
    for key in ("attempted", "failure", "success"):
        report.stats(key, _inner_values(replies, "sharding_stats", key), key=f"sharding_{key}")
    report.completions(_last_completions(replies, "sharding_last"))


def check_servers(context: CheckContext, report: ReconReport) -> None:
    """Compare the servers with the addresses in the ring."""
    report.print_heading(f"Validating server type '{context.server_type}' on {len(context.hosts)} hosts...")
    errors = wrong = 0
    for reply in context.client.request_all(context.hosts, "", "OPTIONS"):
        server = (reply.headers or {}).get("server", "")
        if reply.error:
            errors += 1
            report.record([reply])
        elif server.partition("/")[0] != f"{context.server_type}-server":
            wrong += 1
            report.print_line(f"Invalid: {reply.url} is {server or 'without a name'}")
    report.matched(len(context.hosts) - errors - wrong, len(context.hosts), errors, "ok")


def check_quarantined(context: CheckContext, report: ReconReport) -> None:
    """Report the quarantined entries."""
    report.print_heading("Checking quarantine")
    replies = context.recon("quarantined", report)
    policies = [_mapping(reply.content.get("policies")) for reply in replies]
    for index in sorted({index for each in policies for index in each if is_digits(index)}, key=int):
        values = [_number(_mapping(each.get(index)).get("objects")) for each in policies]
        report.stats(f"quarantined_objects_{index}", values)
    for kind in ("objects", "containers", "accounts"):
        report.stats(f"quarantined_{kind}", _values(replies, kind))


def check_time(context: CheckContext, report: ReconReport) -> None:
    """Compare the servers' clocks with the local one."""
    report.print_heading("Checking time-sync")
    good = errors = 0
    for host in context.hosts:
        before = time.time()
        (reply,) = context.client.recon([host], "time")
        after = time.time()
        if not report.record([reply]) or _number(reply.content) is None:
            errors += 1
            continue
        if before - context.jitter_s <= reply.content <= after + context.jitter_s:
            good += 1
            continue
        report.print_line(
            f"!! {reply.url} current time is {clock_text(after)}, but remote is "
            f"{clock_text(reply.content)}, differs by {reply.content - after:.4f} sec"
        )
    report.matched(good, len(context.hosts), errors)


def check_versions(context: CheckContext, report: ReconReport) -> None:
    """Compare the releases of the servers."""
    report.print_heading("Checking versions")
    replies = context.client.recon(context.hosts, "version")
    good = report.record([_checked_reply(reply, dict) for reply in replies])
    versions = sorted({str(reply.content.get("version")) for reply in good})
    errors = len(replies) - len(good)
    report.facts["versions"] = {str(reply.host): reply.content.get("version") for reply in good}
    text = "Versions matched" if len(versions) <= 1 else "Versions not matched"
    report.print_line(f"{text} ({', '.join(versions)}), {errors} error[s] while checking hosts.")


def check_digests(context: CheckContext, report: ReconReport) -> None:
    """Compare the checksums of the servers' rings and swift.conf with the local ones."""
    report.print_heading("Checking ring md5sums")
    own = {name: _digest(os.path.join(context.swift_dir, name)) for name in context.rings}
    for name, digest in own.items():
        report.print_verbose(f"-> On disk {name} md5sum: {digest}")
    _compare(context, report, "ringmd5", own)
    report.print_rule()
    report.print_heading("Checking swift.conf md5sum")
    conf = _digest(os.path.join(context.swift_dir, "swift.conf"))
    report.print_verbose(f"-> On disk swift.conf md5sum: {conf}")
    _compare(context, report, "swiftconfmd5", {"swift.conf": conf})


def _digest(path: str) -> str:
    try:
        return md5(read_through_links(path), usedforsecurity=False).hexdigest()
    except OSError:
        return "missing"


def _compare(context: CheckContext, report: ReconReport, check: str, own: Mapping[str, str]) -> None:
    """Compare files by their names, wherever the servers keep them."""
    replies = context.client.recon(context.hosts, check)
    good = report.record([_checked_reply(reply, dict) for reply in replies])
    matched = 0
    for reply in good:
        theirs = {os.path.basename(path): (path, digest) for path, digest in reply.content.items()}
        wrong = [
            (theirs[name][0], theirs[name][1])
            for name, digest in own.items()
            if name in theirs and theirs[name][1] != digest
        ]
        for path, digest in wrong:
            report.print_line(f"!! {reply.url} ({path} => {digest}) doesn't match on disk md5sum")
        if not wrong:
            matched += 1
            report.print_verbose(f"-> {reply.url} matches.")
    report.matched(matched, len(context.hosts), len(replies) - len(good))
    report.facts[check] = report.facts.pop("hosts")


def check_disk_usage(context: CheckContext, report: ReconReport) -> None:
    """Report the fill level of the devices."""
    report.print_heading("Checking disk usage now")
    usage: list[tuple[float, Host, str]] = []
    used = size = free = 0
    for reply in context.recon("diskusage", report, list):
        known = [entry for entry in _entries(reply) if entry.get("mounted") is True and _is_usage(entry)]
        if not known:
            report.print_line(f"-> {reply.url}: Error. No drive info available.")
        for entry in known:
            usage.append((100.0 * entry["used"] / entry["size"], reply.host, str(entry["device"])))
            used, size, free = used + entry["used"], size + entry["size"], free + entry["avail"]
    if not usage:
        report.facts["disk_usage"] = None
        report.print_line("No hosts returned valid data.")
        return
    percents = [percent for percent, _host, _device in usage]
    average = 100.0 * used / size
    report.facts["disk_usage"] = {
        "used": used,
        "free": free,
        "size": size,
        "lowest": min(percents),
        "highest": max(percents),
        "average": average,
        "devices": [{"host": str(h), "device": d, "percent": p} for p, h, d in sorted(usage, reverse=True)],
    }
    report.print_line("Distribution Graph:")
    counts = Counter(int(percent) for percent in percents)
    for percent in sorted(counts):
        report.print_line(
            f"{percent:3}% {counts[percent]:4} "
            + "*" * (GRAPH_WIDTH * counts[percent] // max(counts.values()))
        )
    show: Callable[[int], str] = size_text if context.human_readable else str
    report.print_line(f"Disk usage: space used: {show(used)} of {show(size)}")
    report.print_line(f"Disk usage: space free: {show(free)} of {show(size)}")
    report.print_line(
        f"Disk usage: lowest: {min(percents):.2f}%, highest: {max(percents):.2f}%, avg: {average}%"
    )
    _print_ranked(context, report, usage)


def _is_usage(entry: JsonObject) -> bool:
    """Return True if it has the usage of a device."""
    figures = [_number(entry.get(name)) for name in ("size", "used", "avail")]
    return None not in figures and figures[0] != 0


def _print_ranked(
    context: CheckContext, report: ReconReport, usage: Sequence[tuple[float, Host, str]]
) -> None:
    if context.top or context.lowest:
        report.print_rule()
    for title, count, is_reversed in (("TOP", context.top, True), ("LOWEST", context.lowest, False)):
        if count:
            report.print_line(f"{title} {count}")
            for percent, host, device in sorted(usage, reverse=is_reversed)[:count]:
                report.print_line(f"{percent:.02f}%  {host.ip:<15} {device}")


@dataclass(frozen=True)
class Check:
    """A check: its option, its function, and the server types that support it."""

    switch: str
    run: Callable[[CheckContext, ReconReport], None]
    types: tuple[str, ...] = ("account", "container", "object")
    #: Checks that only this type of server has.
    noun: str = ""
    #: True if ``--all`` has it: servers of OpenStack Swift answer it as well.
    in_all: bool = True

    def noun_on(self, server_type: str) -> str:
        """Return the same with the types, for an error."""
        if len(self.types) > 1:
            return f"{self.noun} on {server_type}"
        return f"{self.noun} on non {self.types[0]}"


_OBJECT = ("object",)
CHECKS = (
    Check("async_", check_async, _OBJECT, "asyncs"),
    Check("unmounted", check_unmounted),
    Check("replication", check_replication),
    Check("auditor", check_auditor),
    Check("updater", check_updater, ("container", "object"), "updaters"),
    Check("expirer", check_expirer, _OBJECT, "expirer"),
    Check("packed", check_packed, _OBJECT, "volumes", in_all=False),
    Check("sharding", check_sharding, ("container",), "sharding"),
    Check("reconstruction", check_reconstruction, _OBJECT, "reconstruction stats"),
    Check("validate_servers", check_servers),
    Check("loadstats", check_load),
    Check("diskusage", check_disk_usage),
    Check("md5", check_digests),
    Check("quarantined", check_quarantined),
    Check("sockstat", check_sockets),
    Check("driveaudit", check_drive_audit),
    Check("time", check_time),
    Check("swift_versions", check_versions),
)
