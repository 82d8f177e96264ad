"""Signatures of the load generator are those of AWS's own library."""

import datetime

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from swift.load.endpoint import LoadEndpoint
from swift.load.sigv4 import sign_headers

ENDPOINT = LoadEndpoint(
    "http://127.0.0.1:8080", access_key="test:tester", secret_key="testing", region="eu-1"
)


class Unsigned(S3SigV4Auth):
    """Leaves the body out of the signature."""

    def payload(self, request):
        return "UNSIGNED-PAYLOAD"


@pytest.mark.parametrize(
    ("path", "query", "more"),
    [
        ("/bucket/key", {}, {}),
        ("/bucket/a%20b/%C3%BC~", {"prefix": "a b/~", "list-type": "2"}, {}),
        ("/bucket/key", {"uploads": ""}, {"x-amz-meta-a": "b"}),
    ],
)
def test_a_signature_is_the_one_that_aws_would_make(path, query, more):
    request = AWSRequest("GET", f"{ENDPOINT.url}{path}", params=query, headers=dict(more))
    Unsigned(Credentials(ENDPOINT.access_key, ENDPOINT.secret_key), "s3", ENDPOINT.region).add_auth(request)
    moment = request.headers["X-Amz-Date"]
    now_s = datetime.datetime.strptime(f"{moment}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
    ours = sign_headers(ENDPOINT, "GET", path, query, now_s, more=more)
    assert (ours["authorization"], ours["x-amz-date"]) == (request.headers["Authorization"], moment)
