"""What rings refuse is one sentence for an operator, and can be told from all else that goes wrong."""

import inspect

import pytest

from swift.base.errors import InvalidValue, SwiftError
from swift.ring import errors

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_whoever_catches_errors_of_rings_catches_every_one(kind):
    assert issubclass(kind, errors.RingError) and issubclass(kind, SwiftError)


@pytest.mark.parametrize("kind", [errors.RingFileError, errors.BuilderFileError])
def test_a_file_that_cannot_be_used_is_named_first(kind):
    error = kind("/etc/a.ring.gz", "is no ring")
    assert (str(error), error.path, error.reason) == (
        "/etc/a.ring.gz: is no ring",
        "/etc/a.ring.gz",
        "is no ring",
    )


def test_an_empty_ring_says_so_by_itself():
    assert "no devices" in str(errors.EmptyRing())


def test_a_bad_device_is_a_bad_value_too():
    assert issubclass(errors.DeviceError, InvalidValue)
