"""A filter over a simulated cluster, as the owner of an account asks it."""

from swift.http.request import Request
from swift.http.response import HTTPError, error_response
from test.support.sim import Answer


class FilterFront:
    """Asks a filter; what a caller may not ask for stands in ``denied``: paths, or methods and paths."""

    def __init__(self, sim, filter_):
        self.sim, self.filter = sim, filter_
        self.denied = set()

    def open(self, method, path, headers=None, body=b""):
        """The response, whose body nobody has read."""
        target, _, query = path.partition("?")
        sent = dict(headers or {})
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body) if isinstance(body, bytes) else body.length))
        env = {"swift.cache": self.sim.cache, "swift_owner": True, "swift.authorize": self.authorise}
        try:
            return self.filter.handle(Request(method, f"/v1{target}", sent, body, query=query, env=env))
        except HTTPError as error:
            return error.response

    def __call__(self, method, path, headers=None, body=b""):
        return Answer(self.open(method, path, headers, body))

    def authorise(self, request):
        """403 for what is denied."""
        path = request.raw_path.removeprefix("/v1")
        return None if self.denied.isdisjoint((path, (request.method, path))) else error_response(403)
