"""Metadata and name rules with the exact texts of the spec (public-api.md §11)."""

import pytest

from swift.base.entity import EntityPath
from swift.base.limits import Limits
from swift.base.timestamp import Timestamp
from swift.http.response import HTTPError
from swift.http.validate import (
    check_metadata,
    check_names,
    request_timestamp,
    validate_stored_metadata,
)

LIMITS = Limits()


def refusal(call, *args, **kwargs):
    with pytest.raises(HTTPError) as caught:
        call(*args, **kwargs)
    return caught.value.response.status, caught.value.response.body.decode()


@pytest.mark.parametrize(
    "kind, headers, text",
    [
        ("object", {"x-any-header": "v" * 8193}, "Header value too long: X-Any-Header"),
        ("object", {"x-object-meta-": "v"}, "Metadata name cannot be empty"),
        ("container", {"x-container-meta-a": "\xff"}, "Metadata must be valid UTF-8"),
        ("account", {"x-account-meta-\xff": "v"}, "Metadata must be valid UTF-8"),
        ("container", {"x-container-meta-a": "v\x00"}, "Metadata must be valid UTF-8"),
        (
            "object",
            {"x-object-meta-" + "n" * 129: "v"},
            "Metadata name too long: x-object-meta-N" + "n" * 128,
        ),
        ("object", {"x-object-meta-a": "v" * 257}, "Metadata value longer than 256: x-object-meta-A"),
        (
            "object",
            {"x-object-meta-\xc3\xa9": "v" * 257},
            "Metadata value longer than 256: x-object-meta-\u00e9",
        ),
        (
            "object",
            {f"x-object-meta-{n}": "v" for n in range(91)},
            "Too many metadata items; max 90",
        ),
        (
            "object",
            {f"x-object-meta-{n:03d}": "v" * 250 for n in range(17)},
            "Total metadata too large; max 4096",
        ),
    ],
)
def test_what_is_refused(kind, headers, text):
    assert refusal(check_metadata, headers, kind, LIMITS) == (400, text)


def test_what_is_accepted():
    check_metadata({"x-object-meta-a": "\xff" * 256, "x-container-meta-" + "n" * 300: "v"}, "object", LIMITS)
    check_metadata({f"x-container-meta-{n}": "v" for n in range(90)}, "container", LIMITS)
    check_metadata({"x-container-meta-a": "é".encode().decode("latin-1")}, "container", LIMITS)


def test_deleted_metadata_does_not_count_in_the_stored_total():
    validate_stored_metadata([(str(n), "") for n in range(200)] + [("a", "v")] * 90, LIMITS)
    many = [(str(n), "v") for n in range(91)]
    assert refusal(validate_stored_metadata, many, LIMITS) == (400, "Too many metadata items; max 90")
    large = [(str(n), "v" * 256) for n in range(17)]
    assert refusal(validate_stored_metadata, large, LIMITS) == (400, "Total metadata too large; max 4096")


def test_name_lengths_are_counted_in_characters():
    check_names(EntityPath("a", "c", "é" * 1024), LIMITS)
    assert refusal(check_names, EntityPath("a", "c", "o" * 1025), LIMITS) == (
        400,
        "Object name length of 1025 longer than 1024",
    )
    assert refusal(check_names, EntityPath("a", "c" * 257), LIMITS, new=True) == (
        400,
        "Container name length of 257 longer than 256",
    )
    assert refusal(check_names, EntityPath("a" * 257), LIMITS, new=True) == (
        400,
        "Account name length of 257 longer than 256",
    )


def test_internal_accounts_may_have_names_twice_as_long():
    check_names(EntityPath(".shards_a", "c" * 512), LIMITS, new=True)
    assert refusal(check_names, EntityPath(".shards_a", "c" * 513), LIMITS, new=True)[0] == 400


def test_reading_is_not_limited():
    check_names(EntityPath("a", "c" * 300), LIMITS)


def test_a_request_happens_when_it_says_or_now():
    assert request_timestamp({"x-timestamp": "1700000000.00001_0000000000000002"}) == Timestamp(
        1700000000.00001, offset=2
    )
    assert request_timestamp({"x-timestamp": "0"}) == Timestamp(0)
    before = Timestamp.now()
    assert before <= request_timestamp({}) <= Timestamp.now()


@pytest.mark.parametrize("given", ["", "soon", "-1", "nan", "1" * 30, "1_x"])
def test_a_time_that_is_none_is_400(given):
    status, text = refusal(request_timestamp, {"x-timestamp": given})
    assert status == 400
    assert text == f"X-Timestamp should be a UNIX timestamp float value; was {given!r}"
