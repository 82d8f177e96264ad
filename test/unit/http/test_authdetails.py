"""What authentication filters are told of a request that S3 clients signed."""

import pytest

from swift.http import environkeys
from swift.http.authdetails import AuthDetails
from swift.http.response import Response
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings, parse_users
from swift.s3.core.settings import S3Settings
from swift.s3.filter import S3Api
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.s3 import signed_headers
from test.support.s3_fixtures import HOST, USERS, S3Fixture


class Listener:
    def __init__(self):
        self.details = []

    def handle(self, request):
        if environkeys.S3_AUTH_DETAILS in request.env:
            self.details.append(request.env[environkeys.S3_AUTH_DETAILS])
        return Response(401)


def told(**how):
    front, app = S3Fixture(), Listener()
    front.filter = S3Api(app, S3Settings.parse({}), Telemetry(silent_log()))
    front.raw("GET", "/bucket/key", signed_headers("GET", f"{HOST}/bucket/key", **how))
    return app.details


def test_they_are_told_all_that_is_declared_and_nothing_else():
    for details in told():
        assert details.keys() == AuthDetails.__annotations__.keys() - {"signer"}
        assert details["access_key"] == "test:tester"
        assert details["string_to_sign"].startswith(b"AWS4-HMAC-SHA256\n")


def test_they_can_check_a_secret_that_only_they_know():
    for version in (2, 4):
        details = told(version=version)
        assert details
        assert details[0]["check_signature"]("testing")
        assert not details[0]["check_signature"]("other")


def test_a_request_that_nobody_signed_has_none():
    front, app = S3Fixture(), Listener()
    front.filter = S3Api(app, S3Settings.parse({"anonymous_account": "AUTH_test"}), Telemetry(silent_log()))
    front.raw("GET", "/bucket/key")
    assert app.details == []


class Counter:
    """Stands before tempauth; notes the requests that it has to authenticate."""

    def __init__(self, store):
        told = Telemetry(silent_log())
        self.auth = Tempauth(store, TempauthSettings(), parse_users(USERS), USERS, told)
        self.asked = []

    def handle(self, request):
        if not request.env.get(environkeys.AUTHORIZE_OVERRIDE):
            self.asked.append((request.method, request.raw_path))
        return self.auth.handle(request)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/bucket/key"), ("GET", "/bucket?list-type=2"), ("DELETE", "/bucket/key")]
)
def test_they_are_asked_once_for_an_s3_request(method, path):
    front = S3Fixture()
    front("PUT", "/bucket/key", {}, b"x")
    app = Counter(front.store)
    front.filter = S3Api(app, S3Settings.parse({}), Telemetry(silent_log()))
    assert front(method, path).status < 300
    assert app.asked == [("OPTIONS", "/v1/test%3Atester")]
