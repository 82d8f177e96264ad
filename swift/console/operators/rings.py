"""The pages of rings: how each is balanced, which servers run another file, and what a change would move.

A preview is made by ``swift-plan``, in a process of its own: it takes long for large rings, and changes a
builder in memory only.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from swift.base.errors import SwiftError
from swift.console.core.visit import Visit
from swift.console.core.web import BadForm
from swift.console.operators.charts import Columns, deviation_columns
from swift.console.operators.pages import mapping_of, number_of, state_route, text_of
from swift.http.response import Response
from swift.operations.health.copies import HostCopies
from swift.operations.health.evaluate import ClusterSnapshot
from swift.operations.health.reader import ClusterState
from swift.operations.health.snapshot import WatchedRing
from swift.operations.recon.client import Host
from swift.ring.builder import BALANCE_OF_WEIGHTLESS, RingBuilder
from swift.ring.device import Device
from swift.runtime.childprocess import ProcessTimeout, run

#: Seconds for a preview, of which a worker makes one at a time.
PREVIEW_S = 120.0
WEIGHT_MAX = 1e9
_ROWS_MAX = 500
_VALUE_CHARACTERS_MAX = 200
ACTIONS = ("weight", "remove", "add")


@dataclass(frozen=True)
class Balance:
    """A device of a ring: partitions that it has, and by its weight should have."""

    device: Device
    partitions: int
    wanted: float

    @property
    def percent(self) -> float:
        """The deviation."""
        if self.wanted:
            return 100.0 * self.partitions / self.wanted - 100.0
        return BALANCE_OF_WEIGHTLESS if self.partitions else 0.0


@dataclass(frozen=True)
class RingFacts:
    """A ring, its builder if there is one here, and its balance."""

    ring: WatchedRing
    balances: Sequence[Balance]
    columns: Columns
    #: None without a builder file.
    min_part_hours: float | None
    overload: float | None
    #: True if the builder has changes that are not in the ring.
    is_pending: bool

    @property
    def balance(self) -> float:
        """The largest deviation of any device, in percent."""
        return max((abs(each.percent) for each in self.balances), default=0.0)

    @property
    def written_s(self) -> float:
        """Unix seconds at which the ring file was written."""
        return self.ring.version[2] / 1e9


def builder_path(swift_dir: str, ring: str) -> str:
    """Return the builder file of a ring, or the ring file where that is not."""
    path = f"{swift_dir}/{ring}.builder"
    return path if os.path.exists(path) else f"{swift_dir}/{ring}.ring.gz"


def ring_facts(swift_dir: str, ring: WatchedRing) -> RingFacts:
    """Return what is known of a ring; a builder that cannot be read is none."""
    weight = sum(device.weight for device in ring.devices)
    total = sum(ring.assigned.values())
    balances = [
        Balance(device, ring.assigned[device.id], total * device.weight / weight if weight else 0.0)
        for device in ring.devices
    ]
    balances.sort(key=lambda each: -each.percent)
    columns = deviation_columns([min(each.percent, 100.0) for each in balances])
    try:
        builder = RingBuilder.load(f"{swift_dir}/{ring.name}.builder")
    except (SwiftError, OSError):
        return RingFacts(ring, balances, columns, None, None, is_pending=False)
    is_pending = builder.devs_changed or builder.version != (ring.view.build_version or builder.version)
    return RingFacts(ring, balances, columns, builder.min_part_hours, builder.overload, is_pending=is_pending)


def show_rings(visit: Visit, state: ClusterState) -> Response:
    """Show all rings, or one with its devices and the form of a preview."""
    watch, asked = visit.parts.cluster, visit.query.text("ring")
    facts = [watch.threads.call(ring_facts, watch.swift_dir, ring) for ring in state.rings]
    chosen = next((each for each in facts if each.ring.name == asked), None)
    return visit.page(
        "rings.html",
        state=state,
        facts=facts,
        chosen=chosen,
        rows_max=_ROWS_MAX,
        layout=state.snapshot.controller,
        others=[
            (host, ", ".join(map(text_of, names)))
            for host, names in sorted(state.snapshot.other_rings.items())
        ],
    )


# previews


class PreviewFailed(SwiftError):
    """``swift-plan`` refused a change, or took too long."""


@dataclass(frozen=True)
class Preview:
    """Effect of a change, as ``swift-plan`` tells; seconds are those of waiting for min_part_hours."""

    moved: int
    copies: int
    rounds: int
    moved_bytes: float
    busiest_device: str
    busiest_bytes: float
    wait_s: float
    balance: float
    dispersion: float


def make_preview(path: str, change: str, stored_bytes: float) -> Preview:
    """Return the effect of a change, an option of ``swift-plan rings``. Raises ``PreviewFailed``, OSError."""
    stored = f"--stored-tb={max(stored_bytes, 1e6) / 1e12:.9f}"
    command = [
        sys.executable,
        "-P",
        "-m",
        "swift.cli.plan",
        "rings",
        "--format=json",
        stored,
        change,
        "--",
        path,
    ]
    try:
        done = run(command, timeout_s=PREVIEW_S)
    except ProcessTimeout:
        raise PreviewFailed(f"it takes more than {PREVIEW_S:g} s")
    if done.status and "No module named" in done.output:
        raise PreviewFailed("swift-plan is not installed here; Debian has it in the package swift-tools")
    if done.status:
        raise PreviewFailed(done.output.strip().rpartition("\n")[2])
    facts = mapping_of(json.loads(done.output[done.output.index("{") :]))
    numbers = {
        name: number_of(facts.get(name)) or 0.0
        for name in (
            "moved",
            "copies",
            "rounds",
            "moved_bytes",
            "busiest_bytes",
            "wait_s",
            "balance",
            "dispersion",
        )
    }
    return Preview(
        int(numbers["moved"]),
        int(numbers["copies"]),
        int(numbers["rounds"]),
        numbers["moved_bytes"],
        text_of(facts.get("busiest_device")),
        numbers["busiest_bytes"],
        numbers["wait_s"],
        numbers["balance"],
        numbers["dispersion"],
    )


def stored_bytes(ring: WatchedRing, snapshot: ClusterSnapshot) -> float:
    """Return the bytes used on the devices of a ring, as far as servers report them."""
    used = 0.0
    for device in ring.devices:
        for entry in snapshot.usage.get(Host(device.ip, device.port), ()):
            if entry.get("device") == device.device:
                used += number_of(entry.get("used")) or 0.0
    return used


def copies_per_second(ring: str, reports: Sequence[HostCopies]) -> float | None:
    """Return how many copies all replicators make and move, by their passes; None without any rate."""
    rate = 0.0
    for report in reports:
        for each in (report.under_way.get(ring), report.completed.get(ring)):
            done = sum(counts.done for counts in each.devices.values()) if each is not None else 0
            if each is not None and done > 0 and each.ended_s > each.began_s:
                rate += done / (each.ended_s - each.began_s)
                break
    return rate or None


def _change(visit: Visit, ring: WatchedRing) -> tuple[str, str]:
    """Return the option of ``swift-plan`` for a change, and its device; raises ``BadForm``."""
    query = visit.query
    action = query.text("action")
    if action not in ACTIONS:
        raise BadForm("rings.bad_action")
    weight = _weight(visit) if action != "remove" else ""
    if action == "add":
        value = query.text("value").strip()
        is_plain = value.isascii() and value.isprintable() and value[:1].isalnum() and " " not in value
        if not is_plain or len(value) > _VALUE_CHARACTERS_MAX:
            raise BadForm("rings.bad_device")
        return f"--add-device={value}={weight}", value
    number = query.number("device", -1, 0, 1 << 32)
    device = next((each for each in ring.devices if each.id == number), None)
    if device is None:
        raise BadForm("rings.bad_device")
    return (f"--lose-device={number}" if action == "remove" else f"--weight={number}={weight}"), device.key


def _weight(visit: Visit) -> str:
    try:
        weight = float(visit.query.text("weight"))
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= WEIGHT_MAX:
        raise BadForm("rings.bad_weight")
    return f"{weight:g}"


def show_preview(visit: Visit, state: ClusterState) -> Response:
    """Show what a change of a ring would move; nothing is changed."""
    watch, asked = visit.parts.cluster, visit.query.text("ring")
    ring = next((each for each in state.rings if each.name == asked), None)
    if ring is None:
        return visit.refusal(visit.text("rings.no_ring"), 404)
    change, device = _change(visit, ring)
    if watch.is_previewing:
        return visit.refusal(visit.text("rings.busy"), 503)
    path = builder_path(watch.swift_dir, ring.name)
    watch.is_previewing = True
    try:
        found = make_preview(path, change, stored_bytes(ring, state.snapshot))
    except (PreviewFailed, OSError) as error:
        return visit.refusal(visit.text("rings.failed", reason=str(error)), 409)
    finally:
        watch.is_previewing = False
    rate = copies_per_second(ring.name, list(state.snapshot.copies_of(ring.server_type).values()))
    return visit.page(
        "preview.html",
        ring=ring,
        device=device,
        action=visit.query.text("action"),
        weight=visit.query.text("weight"),
        found=found,
        share=found.moved / found.copies if found.copies else 0.0,
        copy_s=None if rate is None else found.moved / rate,
        has_bytes=ring.server_type == "object",
        is_builder=path.endswith(".builder"),
    )


ROUTES = (state_route("/rings", show_rings), state_route("/rings/preview", show_preview))
