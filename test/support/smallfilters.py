"""The rest of the pipeline as tests of small filters need it."""

from swift.http.request import Request
from swift.http.response import Response


class App:
    """Accounts and containers with system metadata; remembers the last request."""

    def __init__(self, **answer):
        self.answer = answer
        self.account = {}
        self.container = {}
        self.seen = None

    def handle(self, request):
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            path = request.entity.path
            return Response(
                204, self.account.get(path.account, {}) if path.container is None else self.container
            )
        self.seen = request
        return Response(200, {name.replace("_", "-"): value for name, value in self.answer.items()})


def ask(filter_, method="GET", path="/v1/AUTH_a/c/o", headers=None, **more):
    return filter_.handle(Request(method, path, dict(headers or {}), **more))
