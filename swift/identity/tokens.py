"""Signed tokens: of the Swift API, and of temporary S3 keys. They need no record and no shared cache.

A token is ``<key id>.<base64url of JSON>.<base64url of HMAC-SHA-256>``. It says who the caller is and until
when; what the caller may do is in the records, so that a change of rights counts at once.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import zlib
from dataclasses import dataclass
from hashlib import sha256

from swift.base.documents import JsonObject
from swift.base.memo import SizedCache
from swift.identity.clusterkeys import ClusterKeys
from swift.identity.names import SESSION_PREFIX

#: Longest token in characters.
TOKEN_MAX = 6144
_PAYLOAD_MAX = 16 << 10
#: Bytes of verified tokens that are kept, and of each one besides its texts.
_KEPT_BYTES_MAX, _KEPT_BYTES = 16 << 20, 1 << 10
_TOKEN, _SESSION, _SESSION_SECRET, _SESSION_KEY = "token", "session", "session secret", "session key"


@dataclass(frozen=True)
class Ticket:
    """The content of a valid token."""

    #: ``TENANT:NAME`` of the user, or of the role whose session it is.
    name: str
    #: Unix times.
    issued: float
    ends: float
    id: str
    #: The session's name if ``name`` is a role.
    session: str = ""
    #: The access key of a session.
    access_key: str = ""
    #: The lasting access key that made it, whose limits and life count; empty for a password.
    parent: str = ""
    #: Policy that limits the session further.
    policy: str = ""
    #: The user, role session or provider that took the role, for logs.
    source: str = ""

    @property
    def is_session(self) -> bool:
        """True if a role was taken."""
        return bool(self.session)


_MEMBERS = {
    "n": "name",
    "i": "issued",
    "e": "ends",
    "j": "id",
    "s": "session",
    "k": "access_key",
    "m": "parent",
    "p": "policy",
    "o": "source",
}


def new_id() -> str:
    """Return a new id of a token."""
    return secrets.token_urlsafe(9)


class Tickets:
    """Makes and reads tokens with the keys of a cluster."""

    def __init__(self, keys: ClusterKeys):
        self._keys = keys
        #: (kind, token) → its content; a token is verified once.
        self._read: SizedCache[tuple[str, str], Ticket] = SizedCache(_KEPT_BYTES_MAX)

    def make_token(self, ticket: Ticket) -> str:
        """Return a token of the Swift API, without the reseller prefix."""
        return self._make(_TOKEN, ticket)

    def make_session_token(self, ticket: Ticket) -> tuple[str, str]:
        """Return the session token of a temporary access key, and its secret key."""
        token = self._make(_SESSION, ticket)
        return token, self._secret_of(token)

    def session_key(self, token_id: str) -> str:
        """Return the access key of the session of an id: the same one while the active key is the same."""
        digest = self._keys.sign(_SESSION_KEY, token_id.encode("ascii"))
        return SESSION_PREFIX + base64.b32encode(digest[:10]).decode("ascii")

    def read_token(self, token: str, now: float) -> Ticket | None:
        """Return the content of a valid token of the Swift API; None for an ended or any other text."""
        return self._open(_TOKEN, token, now)

    def read_session_token(self, access_key: str, token: str, now: float) -> tuple[Ticket, str] | None:
        """Return the content of a session token and the secret key; None if it is not valid for the key."""
        ticket = self._open(_SESSION, token, now)
        if ticket is None or not hmac.compare_digest(ticket.access_key.encode(), access_key.encode()):
            return None
        return ticket, self._secret_of(token)

    def _secret_of(self, token: str) -> str:
        key_id = token.partition(".")[0]
        digest = self._keys.sign(_SESSION_SECRET, token.encode("ascii"), key_id)
        return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")

    def _make(self, kind: str, ticket: Ticket) -> str:
        tree = {short: value for short, name in _MEMBERS.items() if (value := getattr(ticket, name))}
        data = zlib.compress(json.dumps(tree, separators=(",", ":")).encode("ascii"), 9)
        head = f"{self._keys.active_id}.{_encode(data)}"
        return f"{head}.{_encode(self._keys.sign(kind, head.encode('ascii')))}"

    def _open(self, kind: str, token: str, now: float) -> Ticket | None:
        found = self._read.get((kind, token))
        if found is None:
            found = self._verify(kind, token)
            if found is None:
                return None
            self._read.keep((kind, token), found, _KEPT_BYTES + len(token) + len(found.policy))
        return found if found.ends > now else None

    def _verify(self, kind: str, token: str) -> Ticket | None:
        if len(token) > TOKEN_MAX or not token.isascii():
            return None
        head, _, signature = token.rpartition(".")
        key_id, _, payload = head.partition(".")
        stated = _decode(signature)
        if stated is None or len(stated) != sha256().digest_size:
            return None
        if not self._keys.is_signed(kind, head.encode("ascii"), stated, key_id):
            return None
        data = _decode(payload)
        assert data is not None, "the cluster signed it"
        tree: JsonObject = json.loads(zlib.decompressobj().decompress(data, _PAYLOAD_MAX))
        return Ticket(**{name: tree[short] for short, name in _MEMBERS.items() if short in tree})


def is_session_key(access_key: str) -> bool:
    """Return True for the access key of a session."""
    return access_key.startswith(SESSION_PREFIX)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _decode(text: str) -> bytes | None:
    """Return the bytes of canonical base64url without padding; None for any other text."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
    return data if _encode(data) == text else None
