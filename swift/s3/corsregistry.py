"""Which accounts have a bucket of a name with rules for other origins: objects of a hidden account.

A browser's question carries no signature, so nobody knows whose bucket it is about; the rules of all of that
name are asked then. A yes is only a yes to ask: what the browser may see, the bucket says that its signed
request is about. What stands there in vain does no harm, as the rules are the bucket's own.
"""

from __future__ import annotations

from swift.base.entity import EntityPath
from swift.http import environkeys
from swift.http.request import Request
from swift.s3.account import Account

ACCOUNT, CONTAINER = ".s3_cors", "buckets"
HOME = EntityPath(ACCOUNT, CONTAINER)
#: Accounts that are asked about one name, and for how long what was found is believed.
ACCOUNTS_MAX, _CACHED_S = 20, 60
_CACHED = "s3cors/"


def register(account: Account, request: Request, bucket: str) -> None:
    """Let the rules of a bucket be found by its name; raises ``S3Error``."""
    account.hidden.note("PUT", HOME)
    account.hidden.note("PUT", HOME._replace(obj=f"{bucket}/{account.name}"))
    _forget(request, bucket)


def unregister(account: Account, request: Request, bucket: str) -> None:
    """Let a bucket that has no rules any more not be found; raises ``S3Error``."""
    account.hidden.note("DELETE", HOME._replace(obj=f"{bucket}/{account.name}"), accept=(404,))
    _forget(request, bucket)


def _forget(request: Request, bucket: str) -> None:
    cache = request.env.get(environkeys.CACHE)
    if cache is not None:
        cache.delete(_CACHED + bucket)


def accounts_of(account: Account, request: Request, bucket: str) -> list[str]:
    """The accounts that have such a bucket."""
    cache = request.env.get(environkeys.CACHE)
    found = None if cache is None else cache.get(_CACHED + bucket)
    if isinstance(found, list):
        return [str(name) for name in found]
    start = f"{bucket}/"
    rows = account.hidden.names(HOME, prefix=start, limit=ACCOUNTS_MAX)
    names = [name.removeprefix(start) for name in rows]
    if cache is not None:
        cache.set(_CACHED + bucket, names, ttl_s=_CACHED_S)
    return names
