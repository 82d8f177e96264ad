"""What deletions are told as."""

from test.sim.test_s3_notifications import records, told

__all__ = ["told"]


def names(s3):
    return [(r["eventName"], r["s3"]["object"].get("versionId", "")) for r in records(s3)]


def test_without_versions_a_deletion_is_one(told):
    told("PUT", "/bucket/key", {}, b"1")
    told("DELETE", "/bucket/key")
    assert names(told)[1:] == [("ObjectRemoved:Delete", "")]


def test_with_them_a_marker_is_made_and_whoever_removes_one_deletes(told):
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


def test_a_deletion_that_is_refused_is_not_told(told):
    told("PUT", "/bucket/key", {}, b"1")
    assert told("DELETE", "/bucket/key", {"if-match": '"0"'}).code == "PreconditionFailed"
    assert len(names(told)) == 1
