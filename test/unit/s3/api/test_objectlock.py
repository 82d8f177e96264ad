"""Object lock in S3's words: what is said, what is understood, and who may weaken it (decision 0016)."""

import time

import pytest

from swift.http import fields
from swift.http.objectlock import COMPLIANCE, GOVERNANCE, ObjectLock
from swift.s3.api.objectlock import (
    HOLD_HEADER,
    MODE_HEADER,
    UNTIL_HEADER,
    lock_headers,
    parse_requested_lock,
    parse_retain_until,
    render_retain_until,
)
from swift.s3.core.errors import S3Error

LATER_S = 4_000_000_000
LATER = "2096-10-02T07:06:40Z"


@pytest.mark.parametrize(
    "text",
    [
        LATER,
        "2096-10-02T07:06:40",
        "2096-10-02T09:06:40+02:00",
        "2096-10-02T07:06:40.900Z",
        "20961002T070640Z",
    ],
)
def test_a_moment_is_read_in_any_form_of_iso(text):
    assert parse_retain_until(text) == LATER_S


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2096-13-01T00:00:00Z",
        "4000000000",
        "2009-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+23:59",
        "\xe9",
    ],
)
def test_a_moment_that_is_none_or_past_is_refused(text):
    with pytest.raises(S3Error) as refused:
        parse_retain_until(text)
    assert refused.value.code == "InvalidArgument"


def test_this_very_second_is_not_in_the_future():
    with pytest.raises(S3Error):
        parse_retain_until(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


@pytest.mark.parametrize(
    ("headers", "lock"),
    [
        ({}, None),
        ({MODE_HEADER: GOVERNANCE, UNTIL_HEADER: LATER}, ObjectLock(GOVERNANCE, LATER_S)),
        (
            {MODE_HEADER: COMPLIANCE, UNTIL_HEADER: LATER, HOLD_HEADER: "ON"},
            ObjectLock(COMPLIANCE, LATER_S, True),
        ),
        ({HOLD_HEADER: "ON"}, ObjectLock("", 0, True)),
        ({HOLD_HEADER: "OFF"}, ObjectLock("", 0, False)),
    ],
)
def test_a_wish_is_a_lock(headers, lock):
    assert parse_requested_lock(headers) == lock


@pytest.mark.parametrize(
    "headers",
    [
        {MODE_HEADER: GOVERNANCE},
        {UNTIL_HEADER: LATER},
        {MODE_HEADER: "", UNTIL_HEADER: LATER},
        {MODE_HEADER: "governance", UNTIL_HEADER: LATER},
        {MODE_HEADER: GOVERNANCE, UNTIL_HEADER: ""},
        {HOLD_HEADER: ""},
        {HOLD_HEADER: "on"},
        {MODE_HEADER: GOVERNANCE, UNTIL_HEADER: LATER, HOLD_HEADER: "MAYBE"},
    ],
    ids=str,
)
def test_half_a_wish_is_none(headers):
    with pytest.raises(S3Error) as refused:
        parse_requested_lock(headers)
    assert refused.value.code == "InvalidArgument"


@pytest.mark.parametrize(
    ("lock", "told"),
    [
        (
            ObjectLock(GOVERNANCE, LATER_S),
            {MODE_HEADER: GOVERNANCE, UNTIL_HEADER: "2096-10-02T07:06:40.000Z"},
        ),
        (ObjectLock("", 0, True), {HOLD_HEADER: "ON"}),
        (ObjectLock("", 0, False), {HOLD_HEADER: "OFF"}),
        (
            ObjectLock(COMPLIANCE, LATER_S, True),
            {MODE_HEADER: COMPLIANCE, UNTIL_HEADER: "2096-10-02T07:06:40.000Z", HOLD_HEADER: "ON"},
        ),
    ],
)
def test_a_lock_is_told_in_headers(lock, told):
    assert lock_headers({fields.TRANSIENT_S3_LOCK: str(lock)}) == told


def test_what_never_had_a_lock_says_nothing():
    assert lock_headers({}) == {}


def test_a_lock_for_ever_can_be_told():
    assert render_retain_until(ObjectLock(COMPLIANCE, 10**15)) == "9999-12-31T23:59:59.000Z"


def test_only_buckets_with_versions_and_locks_take_a_wish(s3):
    wish = {HOLD_HEADER: "ON"}
    assert s3("PUT", "/bucket/key", wish, b"x").code == "InvalidRequest"
    assert s3("PUT", "/locked", {"x-amz-bucket-object-lock-enabled": "true"}).status == 200
    assert s3("PUT", "/locked/key", wish, b"x").status == 200
    assert s3("GET", "/bucket/key").code == "NoSuchKey"
    assert s3("HEAD", "/locked/key").headers[HOLD_HEADER] == "ON"
