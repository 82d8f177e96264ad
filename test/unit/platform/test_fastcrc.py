"""CRCs of a library equal those computed here."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.crc import Polynomial
from swift.platform import fastcrc

KINDS = [("crc32", 0xCBF43926), ("crc32c", 0xE3069283), ("crc64nvme", 0xAE8B14860A799888)]


def function(name):
    found = getattr(fastcrc, name)()
    if found is None:
        pytest.skip("there is no ISA-L with this function on the machine")
    return found


@pytest.mark.parametrize(("name", "check"), KINDS)
def test_the_check_value_of_the_standard(name, check):
    assert function(name)(b"123456789", 0) == check


@pytest.mark.parametrize(("name", "check"), KINDS)
def test_parts_one_after_the_other_give_the_whole(name, check):
    compute = function(name)
    assert compute(b"6789", compute(b"12345", 0)) == check


@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: memoryview(bytearray(data)), memoryview])
@pytest.mark.parametrize(("name", "check"), KINDS)
def test_any_buffer_will_do(name, check, kind):
    data = kind(b"123456789")
    assert function(name)(memoryview(data) if isinstance(data, bytearray) else data, 0) == check


@pytest.mark.parametrize("size", [0, 1, 3071, 3072, 3073, 1 << 20])
def test_crc32_is_that_of_zlib_for_small_and_large_data(size):
    data = bytes(range(256)) * (size // 256 + 1)
    assert fastcrc.crc32()(data[:size], 7) == zlib.crc32(data[:size], 7)


@given(st.binary())
def test_nothing_changes_nothing(data):
    for name, _check in KINDS:
        compute = function(name)
        assert compute(b"", compute(data, 0)) == compute(data, 0)


def test_the_slow_way_gives_the_same():
    data = bytes(range(256)) * 3
    assert function("crc32c")(data, 0) == Polynomial(32, 0x82F63B78).compute(data)
    assert function("crc64nvme")(data, 0) == Polynomial(64, 0x9A6C9329AC4BC9B5).compute(data)
