"""The bounds of a temporary URL or form: an authorisation callback for the request and its sub-requests.

A request and what staticweb looks up for it stay at the signed object or prefix. What a stored object refers
to (segments, the target of a link) may be anywhere that the key governs; links for reading read it.
Nothing lists a container but staticweb, within the prefix, and the listing of a dynamic large object.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.entity import RESERVED, EntityPath
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response, error_response

READING = ("GET", "HEAD")
#: Sources of sub-requests (``environkeys.SOURCE``) for what stored objects refer to.
_REFERENCES = ("SLO", "DLO", "SYM")
_STATICWEB = "SW"


@dataclass(frozen=True, slots=True)
class SignedScope:
    """Bounds of a signature: the names that it covers, and the account or container of its key."""

    #: The account or container whose key it is.
    governed: EntityPath
    container: EntityPath
    #: The name of the object, or what names begin with.
    name: str
    is_prefix: bool
    is_reading: bool

    def authorise(self, request: Request) -> Response | None:
        """Return None for what is allowed, else the answer that denies it (proxy.md §2)."""
        if not self._allows(request):
            return refusal(request)
        request.env[environkeys.OWNER] = False
        return None

    def _allows(self, request: Request) -> bool:
        if request.entity is None or (self.is_reading and request.method not in READING):
            return False
        path = request.entity.path
        if path.account != self.governed.account or path.container is None:
            return False
        if self.governed.container not in (None, path.container) or path.container.startswith(RESERVED):
            return False
        source = request.env.get(environkeys.SOURCE)
        if self.is_reading and source in _REFERENCES:
            return True
        if (path.account, path.container) != (self.container.account, self.container.container):
            return False
        if path.obj is not None:
            return self.covers(path.obj)
        return self.is_reading and source == _STATICWEB and self._lists(request)

    def covers(self, name: str) -> bool:
        """Return True if a name is the signed one or begins with the signed prefix."""
        return name.startswith(self.name) if self.is_prefix else name == self.name

    def _lists(self, request: Request) -> bool:
        """Return True if a listing, or a HEAD of the container, shows only what was signed."""
        prefix = request.params.get("prefix", "").encode("latin-1").decode("utf-8", "surrogateescape")
        return self.is_prefix and prefix.startswith(self.name)


def refusal(request: Request) -> Response:
    """401 for a link that is not good, whatever is wrong with it."""
    body = b"" if request.method == "HEAD" else b"401 Unauthorized: Temp URL invalid\n"
    return error_response(401, body, {"www-authenticate": 'Swift realm="unknown"'})
