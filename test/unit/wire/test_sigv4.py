"""Signatures of clients are those of AWS's own library."""

import datetime

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from swift.wire.sigv4 import Signer

HOST = "127.0.0.1:8080"
SIGNERS = [Signer("test:tester", "testing", "eu-1"), Signer("ASIA", "testing", "eu-1", "a/token+")]
signers = pytest.mark.parametrize("signer", SIGNERS)


class Unsigned(S3SigV4Auth):
    """Leaves the body out of the signature."""

    def payload(self, request):
        return "UNSIGNED-PAYLOAD"


def credentials(signer):
    return Credentials(signer.access_key, signer.secret_key, signer.session_token or None)


def seconds(moment):
    return datetime.datetime.strptime(f"{moment}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()


@signers
@pytest.mark.parametrize(
    ("path", "query", "more"),
    [
        ("/bucket/key", {}, {}),
        ("/bucket/a%20b/%C3%BC~", {"prefix": "a b/~", "list-type": "2"}, {}),
        ("/bucket/key", {"uploads": ""}, {"x-amz-meta-a": "b"}),
    ],
)
def test_signed_headers_are_those_that_aws_would_make(signer, path, query, more):
    request = AWSRequest("GET", f"http://{HOST}{path}", params=query, headers=dict(more))
    Unsigned(credentials(signer), "s3", signer.region).add_auth(request)
    moment = request.headers["X-Amz-Date"]
    ours = signer.sign_headers("GET", HOST, path, query, seconds(moment), more=more)
    assert (ours["authorization"], ours["x-amz-date"]) == (request.headers["Authorization"], moment)


@signers
@pytest.mark.parametrize("path", ["/bucket/key", "/bucket/a%20b/%C3%BC~"])
def test_a_presigned_url_is_the_one_that_aws_would_make(signer, path):
    request = AWSRequest("GET", f"http://{HOST}{path}", params={"versionId": "1 2"})
    S3SigV4QueryAuth(credentials(signer), "s3", signer.region, expires=900).add_auth(request)
    _, _, query = request.url.partition("?")
    theirs = dict(pair.split("=", 1) for pair in query.split("&"))
    made = signer.presign("GET", HOST, path, {"versionId": "1 2"}, 900, seconds(theirs["X-Amz-Date"]))
    ours = dict(pair.split("=", 1) for pair in made.partition("?")[2].split("&"))
    assert ours["X-Amz-Signature"] == theirs["X-Amz-Signature"]
    assert ours.keys() == theirs.keys() and made.startswith(f"{path}?")
