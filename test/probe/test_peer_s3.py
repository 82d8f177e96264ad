"""Buckets of the peer's s3api are taken over, changed and given back on one cluster."""

from contextlib import contextmanager
from functools import partial

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from swift.aio.make import make_cluster
from swift.aio.plan import new_plan
from swift.aio.ports import PORTS_PER_NODE
from swift.aio.supervisor import Supervisor
from test.support.cluster import with_filters
from test.support.peer import can_hide_etc, needs_peer, peer_command
from test.support.processes import free_ports, free_range
from tools.bench.contestants import Contestant

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]
PART = b"p" * (5 << 20)
ACL_SECTION = "[filter:s3api]\nuse = egg:swift#s3api\ns3_acl = true\n"


class Turns:
    """One cluster, served alternately by the peer and by us."""

    def __init__(self, root, options):
        proxy_port, cache_port = free_ports(2)
        base_port = free_range(PORTS_PER_NODE * 5)
        ports = {"proxy_port": proxy_port, "cache_port": cache_port, "base_port": base_port}
        self.plan = new_plan(root / "data", ec="2+1", **ports)
        make_cluster(self.plan)
        conf = self.plan.etc / "swift.conf"
        conf.write_text(conf.read_text().partition("[swift-constraints]")[0])
        conf = self.plan.etc / "proxy-server.conf"
        conf.write_text(with_filters(conf.read_text(), {}, options))

    def client(self, user="test:tester", key="testing"):
        return boto3.client(
            "s3",
            region_name="us-east-1",
            endpoint_url=f"http://{self.plan.ip}:{self.plan.proxy_port}",
            aws_access_key_id=user,
            aws_secret_access_key=key,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )

    @contextmanager
    def peer(self):
        program = partial(self._program, swift_dir=self.plan.etc)
        served = Contestant("peer", self.plan, program)
        try:
            served.start()
            yield self.client()
        finally:
            served.stop_servers()

    @staticmethod
    def _program(kind, conf, *, swift_dir):
        return peer_command(f"swift-{kind}-server", conf, "-v", swift_dir=swift_dir)

    @contextmanager
    def ours(self):
        served = Supervisor(self.plan, lambda _text: None)
        try:
            served.start()
            yield self.client()
        finally:
            served.end()


def begin(s3, key):
    upload = s3.create_multipart_upload(Bucket="taken", Key=key, ContentType="x/big", Metadata={"m": key})
    where = {"Bucket": "taken", "Key": key, "UploadId": upload["UploadId"]}
    parts = [
        {"PartNumber": n, "ETag": s3.upload_part(PartNumber=n, Body=body, **where)["ETag"]}
        for n, body in enumerate((PART, b"tail"), 1)
    ]
    return where, parts


def finish(s3, where, parts):
    return s3.complete_multipart_upload(MultipartUpload={"Parts": parts}, **where)["ETag"]


def write(s3, name):
    """Write an object, a multipart object, an open upload and versions for the other side."""
    s3.put_object(Bucket="taken", Key=f"{name}-plain", Body=name.encode(), Metadata={"by": name})
    etag = finish(s3, *begin(s3, f"{name}-big"))
    going_on = begin(s3, f"{name}-later")
    versions = [
        s3.put_object(Bucket="kept", Key=name, Body=f"{name} {n}".encode())["VersionId"] for n in range(2)
    ]
    s3.delete_object(Bucket="kept", Key=name)
    return {"name": name, "etag": etag, "going_on": going_on, "versions": versions}


def read(s3, left):
    """Check that the other side reads, completes, restores and removes all of it."""
    name = left["name"]
    got = s3.get_object(Bucket="taken", Key=f"{name}-plain")
    assert (got["Body"].read(), got["Metadata"]) == (name.encode(), {"by": name})
    big = s3.get_object(Bucket="taken", Key=f"{name}-big")
    assert big["Body"].read() == PART + b"tail"
    assert (big["ETag"], big["ContentType"], big["Metadata"]) == (left["etag"], "x/big", {"m": f"{name}-big"})
    rows = {row["Key"]: row for row in s3.list_objects_v2(Bucket="taken")["Contents"]}
    assert (rows[f"{name}-big"]["ETag"], rows[f"{name}-big"]["Size"]) == (left["etag"], len(PART) + 4)
    assert s3.head_object(Bucket="taken", Key=f"{name}-big", PartNumber=2)["ContentLength"] == 4
    where, parts = left["going_on"]
    assert len(s3.list_parts(**where)["Parts"]) == 2
    assert finish(s3, where, parts) == left["etag"]
    assert s3.get_object(Bucket="taken", Key=f"{name}-later")["Metadata"] == {"m": f"{name}-later"}
    listed = s3.list_object_versions(Bucket="kept", Prefix=name)
    assert [v["VersionId"] for v in listed["Versions"]] == left["versions"][::-1]
    for n, version in enumerate(left["versions"]):
        got = s3.get_object(Bucket="kept", Key=name, VersionId=version)
        assert got["Body"].read() == f"{name} {n}".encode()
    (marker,) = listed["DeleteMarkers"]
    s3.delete_object(Bucket="kept", Key=name, VersionId=marker["VersionId"])
    assert s3.get_object(Bucket="kept", Key=name)["Body"].read() == f"{name} 1".encode()
    s3.delete_object(Bucket="taken", Key=f"{name}-big")
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket="taken", Key=f"{name}-big")


@pytest.fixture(params=["", ACL_SECTION], ids=["swift-acl", "s3-acl"])
def turns(tmp_path, request):
    return Turns(tmp_path, request.param)


def test_a_bucket_is_taken_over_and_given_back(turns):
    with turns.peer() as s3:
        s3.create_bucket(Bucket="taken")
        s3.create_bucket(Bucket="kept")
        s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_acl(Bucket="taken", ACL="public-read")
        theirs = write(s3, "theirs")
        acl = s3.get_bucket_acl(Bucket="taken")["Grants"]
    with turns.ours() as s3:
        read(s3, theirs)
        assert all(grant in s3.get_bucket_acl(Bucket="taken")["Grants"] for grant in acl)
        ours = write(s3, "ours")
        s3.put_bucket_acl(Bucket="taken", ACL="private")
    with turns.peer() as s3:
        read(s3, ours)
        assert len(s3.get_bucket_acl(Bucket="taken")["Grants"]) == 1
        for key in ("theirs-later", "theirs-plain", "ours-later", "ours-plain"):
            assert s3.get_object(Bucket="taken", Key=key)["ResponseMetadata"]["HTTPStatusCode"] == 200
            s3.delete_object(Bucket="taken", Key=key)
        s3.delete_bucket(Bucket="taken")


def test_the_peer_reads_an_object_of_another_class_as_a_multipart_object(tmp_path):
    turns = Turns(tmp_path, "[filter:s3api]\nuse = egg:swift#s3api\nstorage_classes = COLD:ec\n")
    with turns.ours() as s3:
        for bucket in ("classes", "kept"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        etag = s3.put_object(Bucket="classes", Key="a/k", Body=b"cold", StorageClass="COLD")["ETag"]
        s3.put_object(Bucket="classes", Key="goes", Body=b"cold", StorageClass="COLD")
        version = s3.put_object(Bucket="kept", Key="k", Body=b"cold", StorageClass="COLD")["VersionId"]
    with turns.peer() as s3:
        got = s3.get_object(Bucket="classes", Key="a/k")
        assert got["Body"].read() == b"cold" and got["ETag"] == etag
        assert s3.get_object(Bucket="kept", Key="k", VersionId=version)["Body"].read() == b"cold"
        rows = s3.list_objects_v2(Bucket="classes")["Contents"]
        assert [(row["Key"], row["ETag"], row["Size"]) for row in rows] == [
            ("a/k", etag, 4),
            ("goes", etag, 4),
        ]
        assert [item["Name"] for item in s3.list_buckets()["Buckets"]] == ["classes", "kept"]
        s3.delete_object(Bucket="classes", Key="goes")
    with turns.ours() as s3:
        [row] = s3.list_objects_v2(Bucket="classes")["Contents"]
        assert (row["Key"], row["StorageClass"], row["ETag"]) == ("a/k", "COLD", etag)
        assert s3.get_object(Bucket="classes", Key="a/k")["Body"].read() == b"cold"
        for bucket, key in (("classes", "a/k"), ("kept", "k")):
            for item in s3.list_object_versions(Bucket=bucket)["Versions"]:
                s3.delete_object(Bucket=bucket, Key=key, VersionId=item["VersionId"])
            s3.delete_bucket(Bucket=bucket)
