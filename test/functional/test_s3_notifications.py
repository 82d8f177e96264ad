"""Bucket events of a live cluster, sent to a webhook by its daemon."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from swift.aio.make import make_cluster
from test.functional.test_s3 import client_of, complete, parts_of, refused
from test.support.cluster import LiveCluster

OPTIONS = "[filter:s3api]\nuse = egg:swift#s3api\nnotification_targets = hook\n"
ARN = "arn:aws:sqs:us-east-1:1:hook"


@pytest.fixture(scope="module")
def hook():
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    server.seen = seen
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def live(tmp_path_factory, hook):
    root = tmp_path_factory.mktemp("s3-events") / "data"
    cluster = LiveCluster(root, nodes=1, replicas=1, options=OPTIONS)
    make_cluster(cluster.plan)
    conf = cluster.plan.etc / "container-server" / "1.conf"
    url = f"http://127.0.0.1:{hook.server_port}/"
    conf.write_text(conf.read_text().replace("[s3-notifier]\n", f"[s3-notifier]\ntargets = hook={url}\n"))
    try:
        cluster.start()
        yield cluster
        assert "Traceback" not in cluster.log_text()
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def s3(live):
    return client_of(live)


def set_events(s3, bucket, *events, **more):
    rule = {"Id": "r", "QueueArn": ARN, "Events": list(events), **more}
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [rule]}
    )
    return rule


def test_rules_are_returned_and_removed(s3):
    s3.create_bucket(Bucket="rules")
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket="rules")
    rules = [{"Name": "Prefix", "Value": "in/"}]
    rule = set_events(s3, "rules", "s3:ObjectCreated:*", Filter={"Key": {"FilterRules": rules}})
    found = s3.get_bucket_notification_configuration(Bucket="rules")
    assert found["QueueConfigurations"] == [rule]
    s3.put_bucket_notification_configuration(Bucket="rules", NotificationConfiguration={})
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket="rules")


def test_only_targets_of_the_cluster_are_accepted(live, s3):
    s3.create_bucket(Bucket="refusals")
    for arn in ("arn:aws:sqs:us-east-1:1:elsewhere", "http://169.254.169.254/"):
        with refused("InvalidArgument", 400):
            set_events(s3, "refusals", "s3:ObjectCreated:*", QueueArn=arn)
    with refused("AccessDenied", 403):
        set_events(client_of(live, "test:tester3"), "refusals", "s3:ObjectCreated:*")
    assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket="refusals")


def test_events_are_delivered(live, s3, hook):
    s3.create_bucket(Bucket="told")
    s3.put_bucket_versioning(Bucket="told", VersioningConfiguration={"Status": "Enabled"})
    set_events(s3, "told", "s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectTagging:*")
    put = s3.put_object(Bucket="told", Key="a b/ü", Body=b"12345")
    s3.copy_object(Bucket="told", Key="copy", CopySource="told/a b/ü")
    upload, parts = parts_of(s3, "told", "big", [b"1"])
    complete(s3, "told", "big", upload, parts)
    s3.put_object_tagging(Bucket="told", Key="copy", Tagging={"TagSet": [{"Key": "a", "Value": "1"}]})
    s3.delete_object(Bucket="told", Key="copy")
    s3.delete_objects(Bucket="told", Delete={"Objects": [{"Key": "a b/ü", "VersionId": put["VersionId"]}]})
    expected = [
        ("ObjectCreated:Put", "a+b/%C3%BC"),
        ("ObjectCreated:Copy", "copy"),
        ("ObjectCreated:CompleteMultipartUpload", "big"),
        ("ObjectTagging:Put", "copy"),
        ("ObjectRemoved:DeleteMarkerCreated", "copy"),
        ("ObjectRemoved:Delete", "a+b/%C3%BC"),
    ]

    def heard():
        records = [record for document in hook.seen for record in document["Records"]]
        return {(record["eventName"], record["s3"]["object"]["key"]) for record in records}

    live.await_true(lambda: heard() >= set(expected), "the webhook heard of all", seconds=60)
    first = next(d["Records"][0] for d in hook.seen if d["Records"][0]["eventName"] == "ObjectCreated:Put")
    told = first["s3"]["object"]
    assert (told["size"], told["versionId"]) == (5, put["VersionId"])
    assert f'"{told["eTag"]}"' == put["ETag"]
    assert (first["s3"]["bucket"]["name"], first["s3"]["configurationId"]) == ("told", "r")
