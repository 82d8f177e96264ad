"""What a status of the rest of the pipeline is to an S3 client."""

import pytest

from swift.s3.core.errors import error_for_status


@pytest.mark.parametrize(
    ("status", "code", "answered"),
    [
        (503, "ServiceUnavailable", 503),
        (507, "ServiceUnavailable", 503),
        (404, "NoSuchKey", 404),
        (429, "SlowDown", 503),
        (418, "InvalidRequest", 400),
        (599, "InternalError", 500),
    ],
)
def test_a_status_has_a_code_that_clients_know(status, code, answered):
    error = error_for_status(status)
    assert (error.code, error.status) == (code, answered)
