"""The options of ``[filter:admission]`` and ``[filter:device_admission]``."""

from __future__ import annotations

from dataclasses import dataclass

from swift.config.kinds import COUNT, SECONDS, Kind, choice, number
from swift.config.schema import Settings, option
from swift.middleware.admission.amounts import Amounts, parse_amount
from swift.middleware.admission.rules import CLASSES

#: A capacity that is found out while the filter runs.
LEARN = -1.0


def _parse_rate(text: str) -> float:
    word = text.strip().lower()
    if word == "learn":
        return LEARN
    if word in ("", "0"):
        return 0.0
    try:
        return parse_amount(word if not word.replace(".", "", 1).isdigit() else float(word))
    except ValueError as error:
        raise ValueError(f"{error}; 0 is no limit and learn finds it out")


def _show_rate(value: float) -> str:
    return "learn" if value == LEARN else f"{value:g}"


#: A rate, ``learn``, or 0 for none.
RATE = Kind("amount or learn", _parse_rate, _show_rate)
PERCENT = number(0, 100)


@dataclass(frozen=True)
class AdmissionSettings(Settings):
    """``[filter:admission]``."""

    rules_path: str = option(
        "",
        "A file (TOML) of who is guaranteed how much and may have how much at most.",
        sample="/etc/swift/admission.toml",
    )
    capacity_bytes_per_second: float = option(
        0.0,
        "Bytes a second that the whole cluster carries (like 2 GB), learn to find it out, 0 for no limit.",
        kind=RATE,
    )
    capacity_requests_per_second: float = option(
        0.0, "Requests a second that the whole cluster carries, learn, or 0 for no limit.", kind=RATE
    )
    capacity_streams: int = option(
        0, "Requests that the whole cluster carries at a time; 0 is no limit.", kind=COUNT
    )
    write_cost: float = option(
        1.0, "What a byte that is written counts, if one that is read counts 1.", kind=number(0.01, 100)
    )
    burst_seconds: float = option(
        0.5, "Seconds of a rate that may be caught up after a pause.", kind=number(0.05, 60)
    )
    promisable_percent: float = option(
        80.0, "How much of the capacity rules and reservations may promise together.", kind=PERCENT
    )
    interval: float = option(
        1.0,
        "Seconds between looks at the rules, and between exchanges with the other proxies.",
        kind=number(0.05, 60),
    )
    request_class: str = option(
        "client",
        "What requests are that nothing marks; in the pipelines of daemons replication or audit.",
        kind=choice(*CLASSES),
    )
    ticket_key: str = option(
        "", "The secret, the same for all proxies, that signs tickets; empty: nothing can be reserved."
    )
    reservation_seconds_max: float = option(86400.0, "The longest reservation.", kind=SECONDS)
    reservation_ahead_max: float = option(
        604800.0, "How long before its beginning something may be reserved, seconds.", kind=SECONDS
    )

    @property
    def capacity(self) -> Amounts:
        """Configured capacity; None where none is configured or nothing is limited."""
        return Amounts(
            bytes=_known(self.capacity_bytes_per_second),
            requests=_known(self.capacity_requests_per_second),
            streams=float(self.capacity_streams) or None,
        )

    def promisable(self, capacity: Amounts) -> Amounts:
        """Return the part of a capacity that may be reserved."""
        part = self.promisable_percent / 100
        values = (capacity.bytes, capacity.requests, capacity.streams)
        return Amounts(*(None if value is None else value * part for value in values))


def _known(rate: float) -> float | None:
    return rate if rate > 0 else None


@dataclass(frozen=True)
class DeviceAdmissionSettings(Settings):
    """``[filter:device_admission]``."""

    streams_per_device: int = option(
        0, "Requests that a device takes at a time, of each worker; 0 is no limit.", kind=COUNT
    )
    replication_floor: int = option(
        1, "Of these so many are kept for replication, whatever clients ask for.", kind=COUNT
    )
    replication_ceiling: int = option(
        0, "Requests of replication that a device takes at a time; 0 is no limit.", kind=COUNT
    )
    queue_seconds: float = option(
        0.0, "Refuse clients whose request would wait longer before a device; 0 never does.", kind=SECONDS
    )
