"""The S3 filter over tempauth and a store that remembers what it was given."""

from hashlib import md5
from urllib.parse import urlsplit

from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.tempauth.filter import Tempauth
from swift.middleware.tempauth.users import TempauthSettings, parse_users
from swift.runtime.wsgi import answered
from swift.s3.filter import S3Api
from swift.s3.settings import S3Settings
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.s3 import signed_headers
from test.support.sim import MemoryCache

USERS = {
    "user_test_tester": "testing .admin",
    "user_test_tester2": "testing2 .admin",
    "user_test_tester3": "testing3",
    "user_test2_stranger": "testing4 .admin",
}
#: A user of the same account who is no administrator of it.
OTHER = {"user": "test:tester3", "secret": "testing3"}
#: Another administrator of the account.
SECOND = {"user": "test:tester2", "secret": "testing2"}
#: The administrator of another account.
STRANGER = {"user": "test2:stranger", "secret": "testing4"}
HOST = "http://h"


class Store:
    """Below the filters: PUT keeps a body, GET gives it."""

    def __init__(self):
        self.objects = {}
        self.seen = []

    def handle(self, request):
        authorise = request.env.get("swift.authorize")
        denial = authorise(request) if authorise else None
        if denial is not None:
            return denial
        self.seen.append(request)
        if request.method == "PUT" and request.entity.path.obj is not None:
            data = b"".join(iter(lambda: request.body.read(7000), b""))
            if request.body.length is not None and len(data) != request.body.length:
                return Response(499)
            footers = {}
            if "swift.callback.update_footers" in request.env:
                request.env["swift.callback.update_footers"](footers)
            self.objects[request.entity.path[1:]] = data, {**request.headers, **footers}
            return Response(201, {"etag": md5(data).hexdigest()})
        if request.entity is not None and request.entity.path.obj is not None:
            found = self.objects.get(request.entity.path[1:])
            return Response(404) if found is None else Response(200, {"etag": "x"}, found[0])
        return (
            Response(200, {"content-type": "application/json"}, b"[]")
            if request.method == "GET"
            else Response(204)
        )


class Front:
    def __init__(self, **options):
        self.store = Store()
        told = Telemetry(silent_log())
        auth = Tempauth(self.store, TempauthSettings(), parse_users(USERS), USERS, told)
        self.filter = S3Api(auth, S3Settings.parse(options), told)

    def raw(self, method, path, headers=None, body=b""):
        """A request as it stands."""
        target = urlsplit(path)
        sent = {"host": "h", **{name.lower(): value for name, value in (headers or {}).items()}}
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body)))
        env = {"swift.cache": MemoryCache(), "swift.trans_id": "tx1"}
        return answered(
            self.filter.handle, Request(method, target.path, sent, body, query=target.query, env=env)
        )

    def __call__(self, method, path, headers=None, body=b"", **how):
        """A signed request."""
        return self.raw(method, path, signed_headers(method, HOST + path, headers, body, **how), body)


def code_of(response):
    assert response.status >= 400, response
    body = response.read_body()
    assert body.startswith(b"<?xml version='1.0' encoding='UTF-8'?>\n<Error><Code>")
    return body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()
