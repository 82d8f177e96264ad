"""The marker of an upload changes only from what was read, and its record survives a round trip."""

import pytest

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.s3.core.uploadstate import (
    CompletionDecision,
    DecisionStatus,
    MarkerRecord,
    ObjectResponse,
    StateUnavailable,
    SwapOutcome,
    UploadState,
    end_upload,
    is_definite_failure,
    join_decision,
    newest_timestamp,
    parse_record,
    read_decision_status,
    read_state,
    revert_decision,
    swap_record,
)

AT = Timestamp(1_700_000_000)
DECISION = CompletionDecision("d", AT.internal, "e-1", ((1, "e"),), {"content-type": "t/x"}, 5, None)


class OneMarker:
    """A marker and an object, each its headers and body; keeps what it was asked for."""

    def __init__(self, body=b"", stamp=AT, status=0):
        self.marker = (stamp, body)
        self.status = status
        self.key = ObjectResponse(404, {})
        self.asked = []

    def request(self, method, container, name, headers=None, body=b"", *, query=""):
        self.asked.append((method, container, name, headers or {}, body))
        if container == "b":
            return self.key
        if self.marker is None:
            return ObjectResponse(404, {})
        stamp, content = self.marker
        if method == "GET":
            return ObjectResponse(200, {fields.BACKEND_DATA_TIMESTAMP: stamp.internal}, content)
        if self.status:
            return ObjectResponse(self.status, {})
        wanted = (headers or {}).get(fields.BACKEND_IF_PREDECESSOR)
        if wanted is not None and Timestamp(wanted) != stamp:
            return ObjectResponse(412, {})
        self.marker = None if method == "DELETE" else (stamp.above(1), body)
        return ObjectResponse(204, {})


def read(objects):
    return read_state(objects, "b", "k", "id")


@pytest.mark.parametrize("record", [MarkerRecord(), MarkerRecord({2: "7"}), MarkerRecord({1: "1"}, DECISION)])
def test_a_record_is_read_as_it_was_written(record):
    assert parse_record(record.encode()) == record


@pytest.mark.parametrize("body", [b"x", b"{}", b"[]", b'{"parts": {}, "decision": {"parts": [], "new": 1}}'])
def test_a_record_of_another_version_is_no_open_upload(body):
    with pytest.raises(StateUnavailable):
        parse_record(body)


def test_an_upload_without_a_marker_has_no_state():
    objects = OneMarker()
    objects.marker = None
    assert read(objects) is None


def test_of_two_changes_of_what_was_read_one_wins():
    objects = OneMarker()
    first, second = read(objects), read(objects)
    assert swap_record(objects, first, MarkerRecord(decision=DECISION)) is SwapOutcome.WON
    assert end_upload(objects, second) is SwapOutcome.LOST
    assert read(objects).is_completing


@pytest.mark.parametrize(
    ("status", "outcome"), [(412, SwapOutcome.LOST), (404, SwapOutcome.LOST), (501, SwapOutcome.UNSUPPORTED)]
)
def test_a_change_says_how_it_went(status, outcome):
    objects = OneMarker(status=status)
    assert end_upload(objects, read(objects)) is outcome


def test_a_change_that_may_have_been_made_is_no_outcome():
    objects = OneMarker(status=503)
    with pytest.raises(StateUnavailable):
        end_upload(objects, read(objects))


def test_the_marker_of_another_class_keeps_saying_so_in_its_row():
    objects = OneMarker()
    state = read(objects)
    marked = UploadState("b", "k", "id", {**state.headers, fields.SYSMETA_S3_CLASS: "COLD"}, MarkerRecord())
    swap_record(objects, marked, MarkerRecord(decision=DECISION))
    headers = objects.asked[-1][3]
    assert headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG].endswith("; s3_class=COLD")
    assert (marked.segments_container, marked.part_locations([1])) == (
        "b+COLD+segments",
        [("b+COLD+segments", "k/id/1")],
    )


def test_a_part_that_was_uploaded_again_is_another_object():
    state = UploadState("b", "k", "id", {}, MarkerRecord({2: "99"}))
    assert [state.part_name(number) for number in (1, 2)] == ["k/id/1", "k/id/99"]


# --- decisions ----------------------------------------------------------------------------------------


def test_a_decision_that_failed_opens_the_upload_again():
    objects = OneMarker(MarkerRecord({1: "1"}, DECISION).encode())
    revert_decision(objects, read(objects), DECISION)
    assert read(objects).record == MarkerRecord({1: "1"})


def test_a_decision_that_others_joined_ends_the_upload_when_it_fails():
    objects = OneMarker(MarkerRecord(decision=DECISION).encode())
    assert join_decision(objects, read(objects)).record.decision.is_joined
    revert_decision(objects, read(objects), DECISION)
    assert read(objects) is None


def test_another_decision_is_not_reverted():
    objects = OneMarker(MarkerRecord(decision=DECISION).encode())
    revert_decision(objects, read(objects), CompletionDecision("other", AT.internal, "e-1", ()))
    assert read(objects).is_completing


@pytest.mark.parametrize(
    ("headers", "found", "age_s", "expected"),
    [
        ({}, ObjectResponse(404, {}), 1, DecisionStatus.TO_DO),
        ({}, ObjectResponse(200, {fields.SYSMETA_S3_UPLOAD_ID: "id"}), 1, DecisionStatus.DONE),
        ({}, ObjectResponse(200, {fields.SYSMETA_S3_UPLOAD_ID: "other"}), 1, DecisionStatus.TO_DO),
        ({}, ObjectResponse(404, {}), 6 * 86400, DecisionStatus.OVERTAKEN),
        ({"if-none-match": "*"}, ObjectResponse(404, {}), 1, DecisionStatus.TO_DO),
        (
            {"if-none-match": "*"},
            ObjectResponse(404, {fields.BACKEND_TIMESTAMP: AT.above(1).internal}),
            1,
            DecisionStatus.OVERTAKEN,
        ),
    ],
)
def test_a_repeat_knows_what_may_still_be_done(headers, found, age_s, expected):
    decision = CompletionDecision("d", AT.internal, "e-1", ((1, "e"),), headers)
    objects = OneMarker(MarkerRecord(decision=decision).encode())
    objects.key = found
    assert read_decision_status(objects, read(objects), AT.seconds + age_s) is expected


def test_the_newest_state_of_an_object_may_be_a_deletion():
    objects = OneMarker()
    objects.key = ObjectResponse(404, {fields.BACKEND_TIMESTAMP: AT.internal})
    assert newest_timestamp(objects, "b", "k") == AT


@pytest.mark.parametrize(
    ("status", "refused"), [(400, True), (412, True), (404, True), (409, False), (503, False), (201, False)]
)
def test_only_a_clear_refusal_says_that_nothing_was_stored(status, refused):
    assert is_definite_failure(status) is refused
