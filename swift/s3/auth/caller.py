"""The caller of a request: asked from the authentication filter, once, before the request is routed."""

from __future__ import annotations

from swift.gateway.subrequest import drained
from swift.http import environkeys
from swift.http.request import Request
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.session import CallerIdentity, Session


class KnownAccounts:
    """Access key → account, learned from valid signatures; proves nothing.

    It lets bucket settings be read before a signature is validated. The cache shares it with other workers
    and with unsigned preflight requests.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, str] = {}

    def find(self, request: Request, access_key: str) -> str:
        """Return the account of an access key; empty if unknown."""
        name = self._accounts.get(access_key)
        if name is None:
            cache = request.env.get(environkeys.CACHE)
            found = None if cache is None else cache.get(_CACHE_PREFIX + access_key)
            name = found if isinstance(found, str) else ""
            if name:
                self._remember(access_key, name)
        return name

    def learn(self, request: Request, access_key: str, name: str) -> None:
        """Store the account of an access key whose signature was valid."""
        if self._accounts.get(access_key) == name:
            return
        self._remember(access_key, name)
        cache = request.env.get(environkeys.CACHE)
        if cache is not None:
            cache.set(_CACHE_PREFIX + access_key, name, ttl_s=_CACHE_TTL_S)

    def _remember(self, access_key: str, name: str) -> None:
        if len(self._accounts) >= _ACCOUNTS_MAX:
            self._accounts.clear()
        self._accounts[access_key] = name


_CACHE_PREFIX, _CACHE_TTL_S, _ACCOUNTS_MAX = "s3account/", 86400, 10_000

#: Entries by which an authentication filter describes a caller; requests of the caller need them.
_IDENTITY_KEYS = (
    *(environkeys.REMOTE_USER, environkeys.CLEAN_ACL, environkeys.RESELLER_REQUEST),
    *(environkeys.ACCESS_LOGGING, environkeys.KEYSTONE_IDENTITY, environkeys.KEYSTONE_TOKEN_INFO),
    environkeys.IDENTITY,
)
_USER_ID_MAX = 128


def identify_caller(session: Session, known_accounts: KnownAccounts) -> Session:
    """Return the session with the identity of its caller, whatever its rights; raise ``S3Error``.

    An OPTIONS request for the caller's own account asks the authentication filter, which validates the
    signature and puts the account where the access key is.
    """
    key = session.claim.access_key
    if not key:
        return session
    asking = session._replace(path_account="") if session.path_account else session
    sub = asking.subrequest("OPTIONS")
    sub.headers.pop("origin", None)
    for name in (environkeys.AUTHORIZE_OVERRIDE, environkeys.REMOTE_USER):
        sub.env.pop(name, None)
    status = drained(session.forward(sub)).status
    env, entity = sub.env, sub.entity
    if not env.get(environkeys.REMOTE_USER) or entity is None:
        # After a 5xx the filter could not validate the signature.
        if status >= 500:
            raise error_for_status(status)
        raise S3Error("SignatureDoesNotMatch", details=session.claim.error_details, reason="signature")
    account = entity.path.account
    known_accounts.learn(session.request, key, account)
    _note_caller(session.request, sub, key, account)
    environ = {name: env[name] for name in _IDENTITY_KEYS if name in env}
    identity = CallerIdentity(account, env.get(environkeys.AUTHORIZE), environ, env.get(environkeys.IDENTITY))
    return session.with_identity(identity)


def _note_caller(request: Request, sub: Request, key: str, account: str) -> None:
    """Note the caller in the environment of the S3 request, for logs and metrics."""
    user_id = key if len(key) <= _USER_ID_MAX else key[: _USER_ID_MAX - 3] + "..."
    request.env[environkeys.ACCESS_LOGGING] = {"user_id": user_id}
    request.env[environkeys.REMOTE_USER] = sub.env[environkeys.REMOTE_USER]
    call = request.env.setdefault(environkeys.S3_CALL, {})
    call["account"] = account
    call["user"] = (sub.env.get(environkeys.ACCESS_LOGGING) or {}).get("user_id")
