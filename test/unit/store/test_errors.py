"""What can be wrong with an object, as whoever answers for it has to tell it apart."""

from __future__ import annotations

from swift.base.errors import SwiftError
from swift.base.timestamp import ZERO, Timestamp
from swift.store import errors
from swift.store.errors import AlreadyReserved, StoreError


def test_every_one_of_them_is_an_error_of_engines_and_none_of_another():
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and kind.__module__ == errors.__name__
    ]
    others = [kind for kind in kinds if kind is not StoreError]
    assert len(others) > 4 and all(issubclass(kind, StoreError) for kind in others)
    assert not any(a is not b and issubclass(a, b) for a in others for b in others)
    assert issubclass(StoreError, SwiftError)


def test_whoever_comes_second_hears_who_has_the_object_and_whether_that_one_is_still_there():
    error = AlreadyReserved(Timestamp("5.00000_3"))
    assert (error.writer, error.is_over) == (Timestamp("5.00000_3"), False)
    assert str(error) == "reserved by 0000000005.00000_0000000000000003"
    assert AlreadyReserved(ZERO, is_over=True).is_over
