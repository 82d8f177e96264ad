"""The pages of replication and sharding: passes of daemons, by server, with what they left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from swift.base.documents import JsonObject
from swift.console.core.cluster import Reports
from swift.console.core.visit import Visit
from swift.console.operators.pages import age_of, mapping_of, number_of, state_route, text_of
from swift.http.response import Response
from swift.operations.health.copies import HostCopies
from swift.operations.health.evaluate import MINUTE_S, STALE_S
from swift.operations.health.reader import ClusterState
from swift.operations.recon.client import Host

#: Rows of a table that one server may add.
_ROWS_MAX = 200


@dataclass(frozen=True)
class PassRow:
    """The last pass of one daemon on one server; None is unknown."""

    host: Host
    daemon: str
    seconds: float | None
    age_s: float | None
    #: Text of ``texts.toml`` → figure, of the pass.
    figures: Mapping[str, float]

    @property
    def is_stale(self) -> bool:
        """True if it ended too long ago."""
        return self.age_s is not None and self.age_s > STALE_S


@dataclass(frozen=True)
class ProgressRow:
    """The pass of a replicator that is under way over one ring."""

    host: Host
    ring: str
    began_s: float
    left: int
    done: int

    @property
    def share(self) -> float:
        """The share of the known work that is done."""
        return self.done / (self.done + self.left) if self.done + self.left else 1.0


def _figures(report: Mapping[str, object], names: Mapping[str, str]) -> dict[str, float]:
    """Return the figures of a report by the names that pages have for them."""
    found = {shown: number_of(report.get(name)) for name, shown in names.items()}
    return {shown: value for shown, value in found.items() if value is not None}


def replication_rows(state: ClusterState) -> list[PassRow]:
    """Return the last passes of replicators and reconstructors."""
    rows = []
    for (kind, host), report in sorted(state.snapshot.replication.items()):
        minutes = number_of(report.get("object_replication_time"))
        seconds = number_of(report.get("replication_time")) if minutes is None else minutes * MINUTE_S
        last = report.get("object_replication_last") or report.get("replication_last")
        failures = {"failures": float(state.snapshot.failures.get((kind, host), 0))}
        rows.append(PassRow(host, f"{kind}-replicator", seconds, age_of(last, state.taken_s), failures))
    for host, report in sorted(state.snapshot.reconstruction.items()):
        minutes = number_of(report.get("object_reconstruction_time"))
        age_s = age_of(report.get("object_reconstruction_last"), state.taken_s)
        if minutes is not None or age_s is not None:
            seconds = None if minutes is None else minutes * MINUTE_S
            rows.append(PassRow(host, "object-reconstructor", seconds, age_s, {}))
    return rows


def progress_rows(reports: Mapping[tuple[str, Host], HostCopies]) -> list[ProgressRow]:
    """Return the passes that are under way."""
    rows = []
    for (_kind, host), report in sorted(reports.items()):
        for ring, now in sorted(report.under_way.items())[:_ROWS_MAX]:
            counts = now.devices.values()
            left, done = sum(each.left for each in counts), sum(each.done for each in counts)
            rows.append(ProgressRow(host, text_of(ring), max(0.0, now.ended_s - now.began_s), left, done))
    return rows


def updater_rows(containers: Reports, objects: Reports, now_s: float) -> Iterable[PassRow]:
    """Yield the last sweeps of the updaters."""
    for host, report in sorted(containers.items()):
        yield PassRow(host, "container-updater", number_of(report.get("container_updater_sweep")), None, {})
    for host, report in sorted(objects.items()):
        stats = mapping_of(report.get("object_updater_stats"))
        names = {
            "failures_account_container_count": "failing_containers",
            "failures_oldest_timestamp_age": "oldest_failure_s",
        }
        seconds, age_s = (
            number_of(report.get("object_updater_sweep")),
            age_of(report.get("object_updater_last"), now_s),
        )
        yield PassRow(host, "object-updater", seconds, age_s, _figures(stats, names))


def auditor_rows(reports: Mapping[str, Reports], now_s: float) -> Iterable[PassRow]:
    """Yield the last passes of the auditors, by type of server."""
    for kind in ("account", "container"):
        for host, report in sorted(reports[kind].items()):
            seconds = number_of(report.get(f"{kind}_auditor_pass_completed"))
            began_ago_s = age_of(report.get(f"{kind}_audits_since"), now_s)
            age_s = None if began_ago_s is None or seconds is None else max(0.0, began_ago_s - seconds)
            names = {f"{kind}_audits_passed": "passed", f"{kind}_audits_failed": "failures"}
            yield PassRow(host, f"{kind}-auditor", seconds, age_s, _figures(report, names))
    names = {
        "passes": "passed",
        "errors": "failures",
        "quarantined": "quarantined",
        "bytes_processed": "bytes",
    }
    for host, report in sorted(reports["object"].items()):
        for mode in ("ALL", "ZBF"):
            stats = mapping_of(report.get(f"object_auditor_stats_{mode}"))
            # OpenStack Swift with several workers reports each device apart.
            parts = [each for each in stats.values() if isinstance(each, dict)] or [stats]
            sums = {
                shown: sum(_figures(part, names).get(shown, 0.0) for part in parts)
                for shown in names.values()
            }
            times = [number_of(part.get("audit_time")) or 0.0 for part in parts]
            if stats:
                yield PassRow(host, f"object-auditor {mode}", max(times), None, sums)


def scrub_rows(reports: Reports) -> list[JsonObject]:
    """Return by device whether every object is read in the promised time."""
    rows = []
    for host, report in sorted(reports.items()):
        for device, facts in list(mapping_of(report.get("object_auditor_scrub")).items())[:_ROWS_MAX]:
            promised, expected = (
                number_of(mapping_of(facts).get(name)) for name in ("promised_days", "expected_days")
            )
            kept = mapping_of(facts).get("kept")
            rows.append(
                {
                    "device": f"{host.ip}/{text_of(device)}",
                    "promised": promised,
                    "expected": expected,
                    "kept": kept if isinstance(kept, bool) else None,
                }
            )
    return rows


_REPLICATION_CHECKS = (
    *("updater/container", "updater/object", "expirer/object", "scrub/object"),
    *("auditor/account", "auditor/container", "auditor/object"),
)


def show_replication(visit: Visit, state: ClusterState) -> Response:
    """Show the passes of replicators, updaters, the expirer and auditors."""
    snapshot, now_s = state.snapshot, state.taken_s
    found = dict(zip(_REPLICATION_CHECKS, visit.parts.cluster.reports(*_REPLICATION_CHECKS), strict=True))
    audits = {kind: found[f"auditor/{kind}"] for kind in ("account", "container", "object")}
    names = {"expired_last_pass": "expired"}
    expirers = [
        PassRow(
            host,
            "object-expirer",
            number_of(report.get("object_expiration_pass")),
            None,
            _figures(report, names),
        )
        for host, report in sorted(found["expirer/object"].items())
        if number_of(report.get("object_expiration_pass")) is not None
    ]
    updaters = updater_rows(found["updater/container"], found["updater/object"], now_s)
    return visit.page(
        "replication.html",
        state=state,
        groups={
            "replicators": replication_rows(state),
            "updaters": [*updaters, *expirers],
            "auditors": list(auditor_rows(audits, now_s)),
        },
        progress=progress_rows(snapshot.copies),
        waiting=[
            (host, count, age_of(snapshot.async_counted.get(host), now_s))
            for host, count in sorted(snapshot.async_pending.items())
        ],
        quarantined=[
            (
                host,
                {
                    kind: int(number_of(report.get(kind)) or 0)
                    for kind in ("objects", "containers", "accounts")
                },
            )
            for host, report in sorted(snapshot.quarantined.items())
        ],
        scrubs=scrub_rows(found["scrub/object"]),
    )


@dataclass(frozen=True)
class ShardedContainer:
    """A container of which a sharder reports that it is being split, or is a candidate."""

    host: Host
    path: str
    state: str
    error: str
    objects: float
    #: Shards by state; of candidates for shrinking, those that could be merged.
    found: float
    created: float
    cleaved: float
    active: float
    compactible: float

    @property
    def share(self) -> float:
        """The share of the found shards that have their rows."""
        total = self.found + self.created + self.cleaved + self.active
        return (self.cleaved + self.active) / total if total else 0.0


def _containers(host: Host, entries: object) -> list[ShardedContainer]:
    found = []
    for entry in entries[:_ROWS_MAX] if isinstance(entries, list) else ():
        said = mapping_of(entry)
        numbers = [
            max(0.0, number_of(said.get(name)) or 0.0)
            for name in ("object_count", "found", "created", "cleaved", "active", "compactible_ranges")
        ]
        path = f"{text_of(said.get('account'))}/{text_of(said.get('container'))}"
        found.append(
            ShardedContainer(host, path, text_of(said.get("state")), text_of(said.get("error")), *numbers)
        )
    return found


def show_sharding(visit: Visit, state: ClusterState) -> Response:
    """Show the containers that are being split, those that should be, and the sharders' last passes."""
    (reports,) = visit.parts.cluster.reports("sharding")
    rows: list[PassRow] = []
    lists: dict[str, list[ShardedContainer]] = {"progress": [], "candidates": [], "shrinking": []}
    for host, report in sorted(reports.items()):
        stats = mapping_of(report.get("sharding_stats"))
        told = mapping_of(stats.get("sharding"))
        if not stats:
            continue
        figures = _figures(stats, {"attempted": "attempted", "failure": "failures"})
        seconds, age_s = (
            number_of(report.get("sharding_time")),
            age_of(report.get("sharding_last"), state.taken_s),
        )
        rows.append(PassRow(host, "container-sharder", seconds, age_s, figures))
        for name, key, inner in (
            ("progress", "sharding_in_progress", "all"),
            ("candidates", "sharding_candidates", "top"),
            ("shrinking", "shrinking_candidates", "top"),
        ):
            lists[name] += _containers(host, mapping_of(told.get(key)).get(inner))
    return visit.page(
        "sharding.html",
        state=state,
        rows=rows,
        progress=lists["progress"],
        candidates=lists["candidates"],
        shrinking=lists["shrinking"],
    )


ROUTES = (state_route("/replication", show_replication), state_route("/sharding", show_sharding))
