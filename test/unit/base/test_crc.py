"""CRCs by table, by library, and from the CRCs of pieces (swift/base/crc.py, swift/platform/fastcrc.py)."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.crc import CRC32, CRC32C, CRC64NVME
from swift.platform import fastcrc

#: The check values of the catalogue of CRCs.
CHECKS = {CRC32: 0xCBF43926, CRC32C: 0xE3069283, CRC64NVME: 0xAE8B14860A799888}


@pytest.mark.parametrize("polynomial", CHECKS, ids=["CRC32", "CRC32C", "CRC64NVME"])
def test_the_check_values(polynomial):
    assert polynomial.compute(b"123456789") == CHECKS[polynomial]


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_two_pieces_give_the_crc_of_both(first, second):
    for polynomial in CHECKS:
        ends = polynomial.compute(first), polynomial.compute(second)
        assert polynomial.combine(*ends, len(second)) == polynomial.compute(first + second)
        assert polynomial.compute(second, ends[0]) == polynomial.compute(first + second)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_the_library_gives_the_same_in_any_pieces(data, cut):
    assert zlib.crc32(data) == CRC32.compute(data)
    for fast, slow in ((fastcrc.crc32c(), CRC32C), (fastcrc.crc64nvme(), CRC64NVME)):
        if fast is not None:
            pieces = (data[:cut], memoryview(bytearray(data[cut:])))
            value = 0
            for piece in pieces:
                value = fast(piece, value) if len(piece) else value
            assert value == slow.compute(data)
