"""Scope of a temporary URL or form: the authorization callback for the request and its sub-requests.

A request and what staticweb reads for it stay within the signed object or prefix. Segments and symlink
targets may be anywhere in the account or container of the key; links for reading may read them. Only
staticweb lists a container, within the prefix, and dlo lists the segments of a dynamic large object.
"""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.entity import RESERVED, EntityPath
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response, error_response

READ_METHODS = ("GET", "HEAD")
#: Sources of sub-requests (``environkeys.SOURCE``) for targets of stored objects: segments and symlinks.
_REFERENCE_SOURCES = ("SLO", "DLO", "SYM")
_STATICWEB_SOURCE = "SW"


@dataclass(frozen=True, slots=True)
class SignedScope:
    """Scope of a signature: the names that it covers, and the account or container of its key."""

    #: The account or container that owns the key.
    key_owner: EntityPath
    container: EntityPath
    #: The name of the object, or the prefix of names.
    name: str
    is_prefix: bool
    is_reading: bool

    def restrict(self, request: Request, user: str) -> None:
        """Let a request do what is signed, and nothing else, on behalf of a user."""
        request.env[environkeys.AUTHORIZE] = self.authorise
        request.env[environkeys.AUTHORIZE_OVERRIDE] = True
        request.env[environkeys.REMOTE_USER] = user
        request.env[environkeys.OWNER] = False

    def authorise(self, request: Request) -> Response | None:
        """Return None for an allowed request, the denial otherwise (proxy.md §2)."""
        if not self._is_allowed(request):
            return invalid_link_response(request)
        request.env[environkeys.OWNER] = False
        return None

    def _is_allowed(self, request: Request) -> bool:
        if request.entity is None or (self.is_reading and request.method not in READ_METHODS):
            return False
        path = request.entity.path
        if path.account != self.key_owner.account or path.container is None:
            return False
        if self.key_owner.container not in (None, path.container) or path.container.startswith(RESERVED):
            return False
        source = request.env.get(environkeys.SOURCE)
        if self.is_reading and source in _REFERENCE_SOURCES:
            return True
        if (path.account, path.container) != (self.container.account, self.container.container):
            return False
        if path.obj is not None:
            return self.covers(path.obj)
        return self.is_reading and source == _STATICWEB_SOURCE and self._lists_signed_names(request)

    def covers(self, name: str) -> bool:
        """Return True if a name is the signed one or begins with the signed prefix."""
        return name.startswith(self.name) if self.is_prefix else name == self.name

    def _lists_signed_names(self, request: Request) -> bool:
        """Return True if a listing, or a HEAD of the container, shows only signed names."""
        prefix = request.params.get("prefix", "").encode("latin-1").decode("utf-8", "surrogateescape")
        return self.is_prefix and prefix.startswith(self.name)


def invalid_link_response(request: Request) -> Response:
    """Return the 401 for an invalid link, without the reason."""
    body = b"" if request.method == "HEAD" else b"401 Unauthorized: Temp URL invalid\n"
    return error_response(401, body, {"www-authenticate": 'Swift realm="unknown"'})
