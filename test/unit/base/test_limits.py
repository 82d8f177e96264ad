"""The size limits of a cluster."""

import dataclasses

import pytest

from swift.base.limits import Limits


def test_a_request_has_room_for_its_metadata_and_some_headers_more():
    assert Limits().max_header_count == 126
    assert Limits(max_meta_count=10, extra_header_count=5).max_header_count == 51


def test_limits_do_not_change_while_they_are_used():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().max_file_size = 1
