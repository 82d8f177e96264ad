"""The root of the error tree."""

import pytest

from swift.base.errors import ConfigError, DeviceUnavailable, InvalidValue, LockTimeout, NoSpace, SwiftError


@pytest.mark.parametrize("kind", [InvalidValue, ConfigError, DeviceUnavailable, NoSpace, LockTimeout])
def test_what_is_raised_on_purpose_has_one_root(kind):
    assert issubclass(kind, SwiftError)


def test_a_value_that_does_not_parse_is_a_value_error_too():
    with pytest.raises(ValueError, match="not a number"):
        raise InvalidValue("not a number")


def test_errors_carry_fields_and_read_as_sentences():
    device = DeviceUnavailable("sdb1")
    assert (device.device, str(device)) == ("sdb1", "device sdb1 is not available")
    lock = LockTimeout("/srv/.lock", 2.50)
    assert (lock.path, lock.seconds, str(lock)) == ("/srv/.lock", 2.5, "no lock on /srv/.lock within 2.5 s")
