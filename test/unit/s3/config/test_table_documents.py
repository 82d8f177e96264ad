"""Documents of buckets are their owners': read, kept and forgotten by nobody else."""

import pytest

from swift.http import environkeys, fields
from swift.http.response import Response
from swift.s3.config.codec import kept_headers
from swift.s3.config.table import owned_document, store_document
from swift.s3.errors import S3Error

NAME = fields.SYSMETA_S3_BUCKET_CORS


class Call:
    """A bucket with these headers, asked for by its owner or not."""

    bucket = "bucket"

    def __init__(self, headers=None, *, owner=True, status=204):
        self.session = self
        self.headers, self.owner, self.status = headers or {}, owner, status
        self.posted = []

    def is_trusted_in(self, container):
        return False

    def subrequest(self, method, bucket):
        assert (method, bucket) == ("HEAD", "bucket")
        self.env = {environkeys.OWNER: self.owner}
        return self

    def open(self, sub):
        return Response(self.status, dict(self.headers))

    def done(self, method, bucket, headers):
        assert (method, bucket) == ("POST", "bucket")
        self.posted.append(headers)


def code_of(call, *args):
    with pytest.raises(S3Error) as refused:
        call(*args)
    return refused.value.code


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_document_comes_back_as_it_was_kept(size):
    call = Call()
    document = bytes(range(256)) * (size // 256 + 1)
    store_document(call, NAME, document)
    [headers] = call.posted
    assert owned_document(Call(headers), NAME, "Missing") == document


@pytest.mark.parametrize("headers", [{}, kept_headers(NAME, b"")], ids=["never", "forgotten"])
def test_one_that_is_not_there_is_named(headers):
    assert (
        code_of(owned_document, Call(headers), NAME, "NoSuchCORSConfiguration") == "NoSuchCORSConfiguration"
    )


def test_one_document_leaves_another_alone():
    call = Call()
    store_document(call, NAME, b"")
    [headers] = call.posted
    assert all(name.startswith(NAME) for name in headers)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"owner": False}, "AccessDenied"),
        ({"status": 404}, "NoSuchBucket"),
        ({"status": 503}, "ServiceUnavailable"),
    ],
)
def test_nobody_else_and_nowhere_else(options, code):
    call = Call(kept_headers(NAME, b"secret"), **options)
    assert code_of(owned_document, call, NAME, "Missing") == code
    assert code_of(store_document, call, NAME, b"x") == code
    assert call.posted == []
