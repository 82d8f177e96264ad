"""What nodes say of the version that they have; a node that says nonsense has said nothing."""

from types import SimpleNamespace

import pytest

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.proxy.obj.commit.stored import has_version, reported_version, stored_headers, stored_read_headers

AT = Timestamp(5)
DATA, KNOWN = fields.BACKEND_DATA_TIMESTAMP, fields.BACKEND_TIMESTAMP


def said(status, **headers):
    return SimpleNamespace(status=status, headers={n.replace("_", "-"): v for n, v in headers.items()})


@pytest.mark.parametrize(
    ("status", "headers", "version"),
    [
        (200, {DATA: AT.internal, KNOWN: Timestamp(9).internal}, AT),
        (200, {KNOWN: AT.internal}, None),
        (404, {KNOWN: AT.internal}, AT),
        (404, {DATA: AT.internal}, None),
        (404, {}, None),
        (200, {DATA: "nonsense"}, None),
        (200, {DATA: ""}, None),
        (404, {KNOWN: "1e99"}, None),
        (206, {DATA: AT.internal}, None),
        (503, {KNOWN: AT.internal}, None),
        (507, {}, None),
    ],
)
def test_the_version_that_an_answer_is_about(status, headers, version):
    assert reported_version(said(status, **headers)) == version


@pytest.mark.parametrize(
    ("status", "known", "has"),
    [
        (201, None, True),
        (409, AT.internal, True),
        (404, AT.internal, True),
        (409, Timestamp(6).internal, False),
        (409, "nonsense", False),
        (409, None, False),
        (202, None, False),
        (503, None, False),
    ],
)
def test_a_node_has_a_version_when_it_stored_it_or_says_so(status, known, has):
    assert has_version(said(status, **({} if known is None else {KNOWN: known})), AT) is has


def test_versions_that_differ_in_their_offset_only_are_not_the_same():
    assert not has_version(said(409, **{KNOWN: Timestamp(5, offset=1).internal}), AT)


def test_a_copy_is_made_of_what_was_stored_and_of_nothing_that_was_said_about_it():
    answered = {
        "content-type": "text/plain",
        "etag": "e",
        "x-object-meta-a": "1",
        "x-object-sysmeta-b": "2",
        "x-delete-at": "99",
        "content-length": "5",
        "date": "today",
        "last-modified": "today",
        "x-timestamp": "5",
        "x-backend-anything": "x",
        "connection": "close",
    }
    kept = stored_headers(answered)
    assert sorted(kept) == ["content-type", "etag", "x-delete-at", "x-object-meta-a", "x-object-sysmeta-b"]


def test_a_question_about_what_is_stored_is_about_expired_objects_too():
    asked = stored_read_headers(3)
    assert asked[fields.BACKEND_STORAGE_POLICY_INDEX] == "3"
    assert asked[fields.BACKEND_OPEN_EXPIRED] == asked[fields.BACKEND_REPLICATION] == "true"
