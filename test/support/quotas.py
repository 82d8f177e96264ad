"""An account and a container that hold something, and uploads to them."""

import pytest

from swift.http.body import BytesBody
from swift.http.request import Request
from swift.http.response import Response
from swift.policy.policies import Policies
from swift.policy.policy import Policy

#: Of 90 bytes and 9 objects that are there already; a quota that is no number is none.
uploads_that_fit_or_not = pytest.mark.parametrize(
    ("word", "quota", "size", "fits"),
    [
        ("bytes", "100", 10, True),
        ("bytes", "100", 11, False),
        ("bytes", "0", 0, False),
        ("bytes", "90", 0, True),
        ("bytes", "", 1000, True),
        ("bytes", "junk", 1000, True),
        ("bytes", "9" * 256, 1000, True),
        ("count", "10", 1000, True),
        ("count", "9", 0, False),
    ],
)
POLICIES = Policies((Policy(0, "gold", is_default=True, aliases=("yellow",)), Policy(3, "Silver")))


class App:
    """An account and a container that hold something."""

    def __init__(self):
        self.account = {
            "x-account-bytes-used": "90",
            "x-account-object-count": "9",
            "x-account-storage-policy-silver-bytes-used": "50",
            "x-account-storage-policy-silver-object-count": "5",
        }
        self.container = {
            "x-container-bytes-used": "90",
            "x-container-object-count": "9",
            "x-backend-storage-policy-index": "3",
            "x-container-write": "writers",
        }
        self.container_status = 204
        self.seen = None

    def handle(self, request):
        path = request.entity.path
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            status = 204 if path.container is None else self.container_status
            headers = dict(self.account if path.container is None else self.container)
            if path.container is None:
                request.env["swift.infocache"][f"account/{path.account}"] = {
                    "status": 204,
                    "bytes": "90",
                    "total_object_count": "9",
                    "storage_policies": {"3": {"bytes": 50, "object_count": 5}},
                    "sysmeta": self.stripped("x-account-sysmeta-"),
                    "meta": self.stripped("x-account-meta-"),
                }
            return Response(status, headers)
        self.seen = request
        return Response(204, dict(self.account) if request.method in ("GET", "HEAD") else {})

    def stripped(self, prefix):
        return {name[len(prefix) :]: value for name, value in self.account.items() if name.startswith(prefix)}


def put(filter_, app, size, *, chunked=False, env=None):
    app.seen = None
    body = BytesBody(b"x" * size, chunked=chunked)
    response = filter_.handle(Request("PUT", "/v1/a/c/o", {}, body, env=env or {}))
    assert (response.status == 204) == (app.seen is not None)
    return response


def said(answer):
    """Why an upload was refused, None when it was not."""
    assert answer.status in (204, 413)
    return answer.body if answer.status == 413 else None
