"""Documents of buckets are their owners': read, kept and forgotten by nobody else."""

import pytest

from swift.http import environkeys
from swift.http.response import Response
from swift.s3.config import table
from swift.s3.config.table import Configuration
from swift.s3.core import codec
from swift.s3.core.errors import S3Error


class Call:
    """A bucket with these headers, asked for by its owner or not."""

    bucket = "bucket"

    def __init__(self, headers=None, *, owner=True, status=204, document=None):
        self.session = self
        self.headers, self.owner, self.status = headers or {}, owner, status
        self.posted, self.tree = [], document

    def parse_body(self, schema, *, limit):
        return self.tree

    def is_trusted_in(self, container):
        return False

    def subrequest(self, method, bucket):
        assert (method, bucket) == ("HEAD", "bucket")
        self.env = {environkeys.OWNER: self.owner}
        return self

    def send(self, sub):
        return Response(self.status, dict(self.headers))

    def require_success(self, method, bucket, headers):
        assert (method, bucket) == ("POST", "bucket")
        self.posted.append(headers)


def code_of(call, *args):
    with pytest.raises(S3Error) as refused:
        call(*args)
    return refused.value.code


ROW = Configuration(
    ("BucketCors",),
    table.cors.CORS,
    lambda call, tree: codec.CORS.encode(tree["ID"].encode()),
    lambda sysmeta: {"CORSRule": [{"ID": codec.CORS.decode(sysmeta).decode()}]} if sysmeta else None,
    codec.CORS.headers,
    missing_code="NoSuchCORSConfiguration",
)


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_document_comes_back_as_it_was_stored(size):
    call = Call(document={"ID": "x" * size})
    assert ROW.put(call).status == 200
    [headers] = call.posted
    assert b"<ID>" + b"x" * size + b"</ID>" in ROW.get(Call(headers)).read_body()


def test_one_that_is_not_there_is_named():
    assert code_of(ROW.get, Call()) == "NoSuchCORSConfiguration"


def test_a_deletion_empties_its_own_headers_and_no_others():
    call = Call()
    assert ROW.delete(call).status == 204
    assert call.posted == [dict.fromkeys(codec.CORS.headers, "")]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"owner": False}, "AccessDenied"),
        ({"status": 404}, "NoSuchBucket"),
        ({"status": 503}, "ServiceUnavailable"),
    ],
)
def test_nobody_else_and_nowhere_else(options, code):
    call = Call(codec.CORS.encode(b"secret"), document={"ID": "x"}, **options)
    for answer in (ROW.get, ROW.put, ROW.delete):
        assert code_of(answer, call) == code
    assert call.posted == []


def test_each_operation_of_the_table_has_one_row():
    names = [name for row in table.TABLE for name in row.handlers()]
    assert len(names) == len(set(names)) and "PutBucketLifecycle" in names
    assert "DeleteBucketNotification" not in names and "DeleteBucketLogging" not in names
