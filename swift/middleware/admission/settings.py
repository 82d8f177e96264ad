"""The options of ``[filter:admission]`` and ``[filter:device_admission]``."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, Kind, choice, number
from swift.config.schema import Settings, option
from swift.middleware.admission.amounts import Amounts, parse_amount
from swift.middleware.admission.rules import CLASSES

#: A capacity that is found out while the filter runs.
LEARN_CAPACITY = -1.0


def _parse_rate(text: str) -> float:
    word = text.strip().lower()
    if word == "learn":
        return LEARN_CAPACITY
    if word in ("", "0"):
        return 0.0
    try:
        return parse_amount(word if not word.replace(".", "", 1).isdigit() else float(word))
    except ValueError as error:
        raise ValueError(f"{error}; 0 is no limit and learn finds it out")


def _format_rate(value: float) -> str:
    return "learn" if value == LEARN_CAPACITY else f"{value:g}"


#: A rate, ``learn``, or 0 for none.
RATE = Kind("amount or learn", _parse_rate, _format_rate)
PERCENT = number(0, 100)


@dataclass(frozen=True)
class AdmissionSettings(Settings):
    """``[filter:admission]``."""

    rules_path: str = option(
        "",
        "File (TOML) with the guarantees and limits of classes of requests.",
        sample="/etc/swift/admission.toml",
    )
    capacity_bytes_per_second: float = option(
        0.0,
        "Bytes a second that the whole cluster can carry (like 2 GB); learn: measure it; 0: no limit.",
        kind=RATE,
    )
    capacity_requests_per_second: float = option(
        0.0, "Requests a second that the whole cluster can carry; learn: measure it; 0: no limit.", kind=RATE
    )
    capacity_streams: int = option(
        0, "Simultaneous requests that the whole cluster can carry; 0: no limit.", kind=COUNT
    )
    write_cost: float = option(
        1.0, "Capacity that a written byte uses, relative to a byte that is read.", kind=number(0.01, 100)
    )
    burst_seconds: float = option(
        0.5, "Seconds of a rate that may be caught up after a pause.", kind=number(0.05, 60)
    )
    promisable_percent: float = option(
        80.0, "Percent of the capacity that guarantees and reservations may use together.", kind=PERCENT
    )
    interval: float = option(
        1.0,
        "Seconds between checks of the rules file, and between exchanges with the other proxies.",
        kind=number(0.05, 60),
    )
    request_class: str = option(
        "client",
        "Class of unmarked requests; in the pipelines of daemons replication or audit.",
        kind=choice(*CLASSES),
    )
    ticket_key: str = option(
        "", "Secret that signs tickets, the same for all proxies; empty: no reservations."
    )
    reservation_seconds_max: float = option(86400.0, "The longest reservation.", kind=SECONDS)
    reservation_ahead_max: float = option(
        604800.0, "Longest time between a request for a reservation and its beginning, seconds.", kind=SECONDS
    )

    @property
    def capacity(self) -> Amounts:
        """Configured capacity; None where none is configured or nothing is limited."""
        return Amounts(
            bytes=_positive_or_none(self.capacity_bytes_per_second),
            requests=_positive_or_none(self.capacity_requests_per_second),
            streams=float(self.capacity_streams) or None,
        )

    def promisable(self, capacity: Amounts) -> Amounts:
        """Return the part of a capacity that may be reserved."""
        part = self.promisable_percent / 100
        values = (capacity.bytes, capacity.requests, capacity.streams)
        return Amounts(*(None if value is None else value * part for value in values))


def _positive_or_none(rate: float) -> float | None:
    return rate if rate > 0 else None


@dataclass(frozen=True)
class DeviceAdmissionSettings(Settings):
    """``[filter:device_admission]``."""

    streams_per_device: int = option(
        0, "Simultaneous requests to a device, per worker; 0: no limit.", kind=COUNT
    )
    replication_floor: int = option(
        1, "Number of these requests that are reserved for replication.", kind=COUNT
    )
    replication_ceiling: int = option(
        0, "Simultaneous replication requests to a device; 0: no limit.", kind=COUNT
    )
    queue_seconds: float = option(
        0.0, "Reject client requests that would wait longer for a device; 0: never.", kind=SECONDS
    )
