"""Errors of rings and builders; every text is one sentence for an operator.

Nothing here decides an exit code: the commands in ``cli`` do.
"""

from __future__ import annotations

from swift.base.errors import InvalidValue, SwiftError


class RingError(SwiftError):
    """The root of everything that rings, builders and their files refuse."""


class _FileError(RingError):
    """``path`` and ``reason`` make up the sentence."""

    def __init__(self, path: str, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class RingFileError(_FileError):
    """A ring file cannot be used."""


class RingFormatError(RingError):
    """Bytes that are not a ring; the loader adds the file's name and raises ``RingFileError``."""


class BuilderFileError(_FileError):
    """A builder or composite file cannot be used."""


class DeviceError(RingError, InvalidValue):
    """A device record lacks a field or holds one of a wrong type or range."""


class DuplicateDevice(RingError):
    """A device with this id already exists in the builder."""


class NoSuchDevice(RingError):
    """The builder has no device with this id."""


class EmptyRing(RingError):
    """There is nothing to place partitions on."""

    def __init__(self) -> None:
        super().__init__("There are no devices in this ring, or all devices have been deleted")


class RingValidationError(RingError):
    """The assignment breaks a promise: a hole, a wrong length, two replicas on one device (spec: §10.15)."""


class PartPowerError(RingError):
    """A step of the partition power increase was asked for out of order (spec: §8)."""


class CompositeError(RingError):
    """These components cannot be composed (spec: §12)."""


class LayoutError(RingError):
    """A layout manifest, one of its files or one of its keys cannot be used."""
