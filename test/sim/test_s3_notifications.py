"""Events are in the queue before the client gets its response, in the format of AWS."""

import json

import pytest

from swift.http.response import error_response
from swift.s3.config.notifications import EVENTS_ACCOUNT, queue_container
from test.support.s3_fixtures import Multipart, S3Cluster


def rules(*events, prefix=""):
    named = "".join(f"<Event>{event}</Event>" for event in events)
    chosen = (
        f"<Filter><S3Key><FilterRule><Name>prefix</Name><Value>{prefix}</Value></FilterRule></S3Key></Filter>"
        if prefix
        else ""
    )
    return (
        "<NotificationConfiguration><QueueConfiguration><Id>r</Id>"
        f"<Queue>arn:aws:sqs:us-east-1:1:hook</Queue>{named}{chosen}"
        "</QueueConfiguration></NotificationConfiguration>"
    ).encode()


@pytest.fixture
def told(sim):
    s3 = S3Cluster(sim, notification_targets="hook")
    s3("PUT", "/bucket")
    every = "s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectTagging:*"
    response = s3("PUT", "/bucket?notification", {}, rules(*every))
    assert response.status == 200, response
    return s3


def queued(s3):
    documents = []
    hours = json.loads(s3.sim("GET", f"/{EVENTS_ACCOUNT}?format=json").body or b"[]")
    for hour in hours:
        for row in json.loads(s3.sim("GET", f"/{EVENTS_ACCOUNT}/{hour['name']}?format=json").body):
            documents.append(
                json.loads(s3.sim("GET", f"/{EVENTS_ACCOUNT}/{hour['name']}/{row['name']}").body)
            )
    return documents


def records(s3):
    return [document["event"]["Records"][0] for document in queued(s3)]


def test_the_event_of_an_upload_has_the_format_of_aws(told):
    response = told("PUT", "/bucket/a%20b/%C3%BC%2B", {}, b"12345")
    [document] = queued(told)
    assert document["target"] == "hook"
    [record] = document["event"]["Records"]
    assert (record["eventVersion"], record["eventSource"]) == ("2.1", "aws:s3")
    assert (record["eventName"], record["awsRegion"]) == ("ObjectCreated:Put", "us-east-1")
    assert record["userIdentity"] == {"principalId": "test:tester"}
    assert record["s3"]["bucket"]["arn"] == "arn:aws:s3:::bucket"
    about = record["s3"]["object"]
    assert (about["key"], about["size"]) == ("a+b/%C3%BC%2B", 5)
    assert f'"{about["eTag"]}"' == response.headers["etag"]


def test_each_change_has_an_event_name(told):
    told("PUT", "/bucket/key", {}, b"1")
    told("PUT", "/bucket/copy", {"x-amz-copy-source": "/bucket/key"})
    upload = Multipart(told, "/bucket/big")
    upload.part(1, b"p")
    upload.complete((1, b"p"))
    told("DELETE", "/bucket/key")
    assert [(r["eventName"], r["s3"]["object"]["key"]) for r in records(told)] == [
        ("ObjectCreated:Put", "key"),
        ("ObjectCreated:Copy", "copy"),
        ("ObjectCreated:CompleteMultipartUpload", "big"),
        ("ObjectRemoved:Delete", "key"),
    ]
    order = [r["s3"]["object"]["sequencer"] for r in records(told)]
    assert order == sorted(order) and len(set(order)) == 4


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/bucket/key"), ("PUT", "/no-bucket/key"), ("GET", "/bucket")]
)
def test_requests_that_change_nothing_cause_no_event(told, method, path):
    told(method, path)
    assert queued(told) == []


def test_a_refused_upload_causes_no_event(told):
    assert told("PUT", "/bucket/key", {"x-amz-checksum-crc32": "AAAAAA=="}, b"x").code == "BadDigest"
    assert queued(told) == []


def test_only_events_that_match_a_rule_are_sent(told):
    told("PUT", "/bucket?notification", {}, rules("s3:ObjectCreated:Put", prefix="in/"))
    told("PUT", "/bucket/in/a", {}, b"")
    told("PUT", "/bucket/out", {}, b"")
    told("DELETE", "/bucket/in/a")
    assert [r["s3"]["object"]["key"] for r in records(told)] == ["in/a"]


def test_a_client_gets_an_error_when_an_event_cannot_be_stored(told):
    def without_queue(request):
        path = request.entity.path
        return error_response(503) if path.account == EVENTS_ACCOUNT and path.obj else None

    told.bottom.instead = without_queue
    assert told("PUT", "/bucket/key", {}, b"x").code == "ServiceUnavailable"


def test_the_events_of_an_hour_are_in_one_container():
    assert queue_container(7200.0) == queue_container(10799.9) == "7200"
    assert queue_container(10800.0) == "10800"
