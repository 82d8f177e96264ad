"""Events of deletions."""

from test.sim.test_s3_notifications import records, told

__all__ = ["told"]


def names(s3):
    return [(r["eventName"], r["s3"]["object"].get("versionId", "")) for r in records(s3)]


def test_without_versions_a_deletion_is_an_object_removed_event(told):
    told("PUT", "/bucket/key", {}, b"1")
    told("DELETE", "/bucket/key")
    assert names(told)[1:] == [("ObjectRemoved:Delete", "")]


def test_with_versions_deletions_create_marker_and_delete_events(told):
    told.versioning("bucket", "Enabled")
    version = told("PUT", "/bucket/key", {}, b"1").headers["x-amz-version-id"]
    marker = told("DELETE", "/bucket/key").headers["x-amz-version-id"]
    told("DELETE", f"/bucket/key?versionId={marker}")
    told("DELETE", f"/bucket/key?versionId={version}")
    assert names(told)[1:] == [
        ("ObjectRemoved:DeleteMarkerCreated", marker),
        ("ObjectRemoved:Delete", marker),
        ("ObjectRemoved:Delete", version),
    ]


def test_a_refused_deletion_causes_no_event(told):
    told("PUT", "/bucket/key", {}, b"1")
    assert told("DELETE", "/bucket/key", {"if-match": '"0"'}).code == "PreconditionFailed"
    assert len(names(told)) == 1
