"""Reflected CRCs of any width: computed byte by byte, and put together from the CRCs of pieces.

Pure Python; for bulk use what ``platform.fastcrc`` finds. ``combine`` gives the CRC of two pieces one after
the other from theirs: appending n bytes multiplies by x^8n in the field of the polynomial.

Apart from its only user, the S3 API, because it is arithmetic without any format.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


class Polynomial:
    """A reflected CRC with all bits set at start and end, like CRC-32 and CRC-64/NVME."""

    def __init__(self, bits: int, reflected: int):
        self.bits = bits
        self._poly = reflected
        self._mask = (1 << bits) - 1
        self._top = 1 << (bits - 1)
        self._table: tuple[int, ...] = ()
        self._power = lru_cache(256)(self._power_of)

    def compute(self, data: Iterable[int], start: int = 0) -> int:
        """Return the CRC of bytes that follow those whose CRC is ``start``."""
        table = self._table or self._make_table()
        value = start ^ self._mask
        for byte in data:
            value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
        return value ^ self._mask

    def combine(self, first: int, second: int, second_bytes: int) -> int:
        """Return the CRC of two pieces from theirs and the size of the second."""
        if not second_bytes:
            return first
        return self._product(self._power(second_bytes), first) ^ second

    def _make_table(self) -> tuple[int, ...]:
        table = []
        for byte in range(256):
            value = byte
            for _ in range(8):
                value = (value >> 1) ^ (self._poly if value & 1 else 0)
            table.append(value)
        self._table = tuple(table)
        return self._table

    def _product(self, a: int, b: int) -> int:
        """Return a·b in the field; bit ``bits - 1`` is the coefficient of x^0."""
        product, bit = 0, self._top
        while a:
            if a & bit:
                product ^= b
                a ^= bit
            bit >>= 1
            b = (b >> 1) ^ (self._poly if b & 1 else 0)
        return product

    def _power_of(self, size: int) -> int:
        """Return x^(8·size) in the field."""
        # x^8 by shifting 1 eight times; then by squares.
        square = self._top
        for _ in range(8):
            square = (square >> 1) ^ (self._poly if square & 1 else 0)
        result = self._top
        while size:
            if size & 1:
                result = self._product(square, result)
            square = self._product(square, square)
            size >>= 1
        return result


CRC32 = Polynomial(32, 0xEDB88320)
CRC32C = Polynomial(32, 0x82F63B78)
CRC64NVME = Polynomial(64, 0x9A6C9329AC4BC9B5)
