"""Cached information about accounts and containers for the proxy and the filters (spec: proxy.md §4).

The info is looked up in the request's own ``swift.infocache``, then in memcached, and last with a HEAD of the
entity through ``forward``. The memcached form is the peer's JSON, so that proxies of both kinds share one
cache; readers tolerate missing keys.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath, quote_path
from swift.base.timestamp import InvalidTimestamp, Timestamp, http_date
from swift.gateway.subrequest import Forward, drained, make_subrequest, preauthorise
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap, utf8_value, wire_value, with_prefix
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.policy.policy import Policies

#: Negative responses (404, 410) are cached for this share of the positive time.
NEGATIVE_SHARE = 0.1
DEFAULT_RECHECK_S = 60.0


def _to_int(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """An account's existence, statistics and metadata; ``status`` 0 means that it could not be read."""

    status: int
    container_count: int = 0
    object_count: int = 0
    bytes: int = 0
    meta: dict[str, str] = field(default_factory=dict)
    sysmeta: dict[str, str] = field(default_factory=dict)
    really_exists: bool = False
    #: Policy index (as text) → ``container_count``, ``object_count`` and ``bytes`` of that policy.
    policies: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """2xx."""
        return 200 <= self.status <= 299


@dataclass(frozen=True, slots=True)
class ContainerInfo:
    """A container's existence, policy, ACLs, statistics and metadata."""

    status: int
    policy_index: int = 0
    read_acl: str | None = None
    write_acl: str | None = None
    sync_key: str | None = None
    sync_to: str | None = None
    object_count: int = 0
    bytes: int = 0
    versions: str | None = None
    sharding_state: str = "unsharded"
    cors: dict[str, str | None] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    sysmeta: dict[str, str] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """2xx."""
        return 200 <= self.status <= 299


def account_key(account: str) -> str:
    """Return the cache key of an account."""
    return f"account/{account}"


def container_key(account: str, container: str) -> str:
    """Return the cache key of a container."""
    return f"container/{account}/{container}"


# --- the cached JSON forms --------------------------------------------------------------------------


_POLICY_PREFIX = "x-account-storage-policy-"
_POLICY_STATS = {
    "container-count": "container_count",
    "object-count": "object_count",
    "bytes-used": "bytes",
}


def _policy_stats(headers: HeaderMap, policies: Policies) -> dict[str, dict[str, int]]:
    """Return an account's statistics by policy index, as text."""
    found: dict[str, dict[str, int]] = {}
    for name, value in with_prefix(headers, _POLICY_PREFIX).items():
        for ending, key in _POLICY_STATS.items():
            policy = policies.named(name[len(_POLICY_PREFIX) : -len(ending) - 1])
            if name.endswith(f"-{ending}") and policy is not None:
                found.setdefault(str(policy.index), {})[key] = _to_int(value)
    return found


def account_record(status: int, headers: HeaderMap, policies: Policies | None = None) -> JsonObject:
    """Return the cached form of a HEAD response; ``policies`` map names to indexes."""
    exists = 200 <= status <= 299
    record = {
        "status": status,
        "container_count": headers.get("x-account-container-count") if exists else None,
        "total_object_count": headers.get("x-account-object-count") if exists else None,
        "bytes": headers.get("x-account-bytes-used") if exists else None,
        "storage_policies": _policy_stats(headers, policies) if policies else {},
        "meta": _without_prefix(headers, "x-account-meta-"),
        "sysmeta": _without_prefix(headers, fields.ACCOUNT_SYSMETA),
    }
    if exists:
        record["account_really_exists"] = headers.get(fields.BACKEND_FAKE_ACCOUNT_LISTING) != "yes"
    return record


def _without_prefix(headers: HeaderMap, prefix: str) -> dict[str, str]:
    size = len(prefix)
    return {name[size:]: utf8_value(value) for name, value in with_prefix(headers, prefix).items()}


def container_record(status: int, headers: HeaderMap) -> JsonObject:
    """Return the cached form of a HEAD response."""
    exists = 200 <= status <= 299
    meta = _without_prefix(headers, "x-container-meta-")
    zero = "0000000000.00000"
    return {
        "status": status,
        "read_acl": headers.get("x-container-read"),
        "write_acl": headers.get("x-container-write"),
        "sync_to": headers.get("x-container-sync-to"),
        "sync_key": headers.get("x-container-sync-key"),
        "object_count": headers.get("x-container-object-count") if exists else None,
        "bytes": headers.get("x-container-bytes-used") if exists else None,
        "versions": headers.get("x-versions-location"),
        "storage_policy": headers.get(fields.BACKEND_STORAGE_POLICY_INDEX, "0"),
        "cors": {
            "allow_origin": meta.pop("access-control-allow-origin", None),
            "expose_headers": meta.pop("access-control-expose-headers", None),
            "max_age": meta.pop("access-control-max-age", None),
        },
        "meta": meta,
        "sysmeta": _without_prefix(headers, fields.CONTAINER_SYSMETA),
        "sharding_state": headers.get(fields.BACKEND_SHARDING_STATE, "unsharded"),
        "created_at": headers.get(fields.BACKEND_TIMESTAMP, zero),
        "put_timestamp": headers.get(fields.BACKEND_PUT_TIMESTAMP, zero),
        "delete_timestamp": headers.get(fields.BACKEND_DELETE_TIMESTAMP, zero),
        "status_changed_at": headers.get(fields.BACKEND_STATUS_CHANGED_AT, zero),
    }


def container_headers(record: JsonObject) -> HeaderMap:
    """Return the headers that a cached form was made from; {} if a time or a count is missing.

    Peer proxies write to the cache as well; an incomplete form must be requested from the servers.
    """
    try:
        created, put = Timestamp(record["created_at"]), Timestamp(record["put_timestamp"])
        headers = {
            fields.BACKEND_TIMESTAMP: created.internal,
            fields.BACKEND_PUT_TIMESTAMP: put.internal,
            fields.BACKEND_DELETE_TIMESTAMP: Timestamp(record["delete_timestamp"]).internal,
            fields.BACKEND_STATUS_CHANGED_AT: Timestamp(record["status_changed_at"]).internal,
            "x-container-object-count": str(int(record["object_count"])),
            "x-container-bytes-used": str(int(record["bytes"])),
        }
    except (KeyError, TypeError, ValueError, InvalidTimestamp):
        return {}
    info = container_from_record(record)
    headers["x-timestamp"] = created.normal
    headers["last-modified"] = http_date(put.ceil_seconds)
    headers[fields.BACKEND_STORAGE_POLICY_INDEX] = str(info.policy_index)
    headers[fields.BACKEND_SHARDING_STATE] = info.sharding_state
    plain = {
        "x-container-read": info.read_acl,
        "x-container-write": info.write_acl,
        "x-container-sync-to": info.sync_to,
        "x-container-sync-key": info.sync_key,
        "x-versions-location": info.versions,
    }
    decoded = {
        **{f"x-container-meta-access-control-{n.replace('_', '-')}": text for n, text in info.cors.items()},
        **{f"x-container-meta-{name}": text for name, text in info.meta.items()},
        **{f"{fields.CONTAINER_SYSMETA}{name}": text for name, text in info.sysmeta.items()},
    }
    headers.update({name: text for name, text in plain.items() if text is not None})
    headers.update({name: wire_value(text) for name, text in decoded.items() if text is not None})
    return headers


def account_from_record(record: JsonObject) -> AccountInfo:
    """Return the info of a cached form."""
    return AccountInfo(
        status=_to_int(record.get("status")),
        container_count=_to_int(record.get("container_count")),
        object_count=_to_int(record.get("total_object_count")),
        bytes=_to_int(record.get("bytes")),
        meta=record.get("meta") or {},
        sysmeta=record.get("sysmeta") or {},
        really_exists=bool(record.get("account_really_exists")),
        policies=_parse_policy_stats(record.get("storage_policies")),
    )


def _parse_policy_stats(policies: object) -> dict[str, dict[str, int]]:
    """Return the statistics by policy from a cache, {} for a malformed value."""
    if not isinstance(policies, dict):
        return {}
    return {
        str(index): {name: _to_int(value) for name, value in figures.items()}
        for index, figures in policies.items()
        if isinstance(figures, dict)
    }


def container_from_record(record: JsonObject) -> ContainerInfo:
    """Return the info of a cached form; parsed once for a form that several requests use."""
    known = _containers.get(id(record))
    if known is not None and known[0] is record:
        return known[1]
    if len(_containers) >= _RECORDS_MAX:
        _containers.clear()
    info = _container_from_record(record)
    _containers[id(record)] = record, info
    return info


#: ``id`` of a form → the form (kept, so that its ``id`` stays unique) and its info.
_containers: dict[int, tuple[JsonObject, ContainerInfo]] = {}
_RECORDS_MAX = 1000


def _container_from_record(record: JsonObject) -> ContainerInfo:
    return ContainerInfo(
        status=_to_int(record.get("status")),
        policy_index=_to_int(record.get("storage_policy")),
        read_acl=record.get("read_acl"),
        write_acl=record.get("write_acl"),
        sync_key=record.get("sync_key"),
        sync_to=record.get("sync_to"),
        object_count=_to_int(record.get("object_count")),
        bytes=_to_int(record.get("bytes")),
        versions=record.get("versions"),
        sharding_state=record.get("sharding_state") or "unsharded",
        cors=record.get("cors") or {},
        meta=record.get("meta") or {},
        sysmeta=record.get("sysmeta") or {},
    )


#: ``id`` of a record that was validated → the record, which several requests use.
_valid_records: dict[int, JsonObject] = {}


def _is_valid_record(record: JsonObject) -> bool:
    """Return True if a cached value has the structure of a record; other values are misses."""
    if _valid_records.get(id(record)) is record:
        return True
    if not _has_record_structure(record):
        return False
    if len(_valid_records) >= _RECORDS_MAX:
        _valid_records.clear()
    _valid_records[id(record)] = record
    return True


def _has_record_structure(record: object) -> bool:
    """Return True for a record. Keys may be missing. Counts of a wrong type are read as zero."""
    if not isinstance(record, dict) or not isinstance(record.get("status"), int):
        return False
    for name in _TEXTS:
        if not isinstance(record.get(name), str | None):
            return False
    for name in ("meta", "sysmeta", "cors"):
        values = record.get(name)
        if values is None:
            continue
        if not isinstance(values, dict):
            return False
        for value in values.values():
            if not isinstance(value, str) and (name != "cors" or value is not None):
                return False
    return True


_TEXTS = ("read_acl", "write_acl", "sync_key", "sync_to", "versions", "sharding_state")


# --- looking up -------------------------------------------------------------------------------------


def _recheck_s(response_headers: HeaderMap, kind: str) -> float:
    try:
        return float(response_headers.get(f"{fields.BACKEND_RECHECK}{kind}-existence", DEFAULT_RECHECK_S))
    except ValueError:
        return DEFAULT_RECHECK_S


def cache_info(request: Request, key: str, record: JsonObject, recheck_s: float) -> None:
    """Put a new record into both caches, negative responses for a tenth of the time."""
    request.env.setdefault(environkeys.INFOCACHE, {})[key] = record
    cache = request.env.get(environkeys.CACHE)
    status = record["status"]
    if cache is None:
        return
    if 200 <= status <= 299:
        cache.set(key, record, ttl_s=recheck_s)
    elif status in (404, 410):
        cache.set(key, record, ttl_s=recheck_s * NEGATIVE_SHARE)


def delete_cached_info(request: Request, key: str) -> None:
    """Delete a record from both caches, before and after its account or container is changed."""
    request.env.get(environkeys.INFOCACHE, {}).pop(key, None)
    cache = request.env.get(environkeys.CACHE)
    if cache is not None:
        cache.delete(key)


def _cached(request: Request, key: str, skip_pct: float) -> JsonObject | None:
    record = request.env.setdefault(environkeys.INFOCACHE, {}).get(key)
    if record is not None:
        return record
    if skip_pct and random.random() * 100 < skip_pct:
        # One request renews a busy entry before it expires for all requests at once.
        return None
    cache = request.env.get(environkeys.CACHE)
    record = cache.get(key) if cache is not None else None
    if record is not None and _is_valid_record(record):
        request.env[environkeys.INFOCACHE][key] = record
        return record
    return None


def _head(request: Request, forward: Forward, path: EntityPath, source: str) -> Response:
    sub = make_subrequest(
        request,
        "HEAD",
        "/v1" + quote_path(str(path)),
        headers={fields.BACKEND_ALLOW_RESERVED_NAMES: "true"},
        source=request.env.get(environkeys.SOURCE) or source,
        agent="Swift",
    )
    sub.headers.pop("origin", None)
    return drained(forward(preauthorise(sub)))


def cached_container(request: Request, account: str, container: str) -> JsonObject | None:
    """Return the cached form of a container, without a request."""
    return _cached(request, container_key(account, container), 0.0)


def account_info(request: Request, forward: Forward, account: str, *, skip_pct: float = 0.0) -> AccountInfo:
    """Return the info of an account; request it through ``forward`` when no cache has it.

    ``skip_pct`` percent of the look-ups skip memcached, so that it is refreshed.
    """
    key = account_key(account)
    record = _cached(request, key, skip_pct)
    if record is None:
        response = _head(request, forward, EntityPath(account), "GET_ACCOUNT_INFO")
        record = request.env[environkeys.INFOCACHE].get(key)
        if record is None:
            record = account_record(response.status, response.headers)
            cache_info(request, key, record, _recheck_s(response.headers, "account"))
    return account_from_record(record)


def container_info(
    request: Request,
    forward: Forward,
    account: str,
    container: str,
    *,
    internal_prefix: str = ".",
    skip_pct: float = 0.0,
) -> ContainerInfo:
    """Return the info of a container; status 0 when its account does not exist, 5xx when a request fails.

    Accounts that begin with ``internal_prefix`` need not exist. ``skip_pct`` as in ``account_info``.
    """
    key = container_key(account, container)
    record = _cached(request, key, skip_pct)
    if record is None:
        if not account.startswith(internal_prefix):
            owner = account_info(request, forward, account)
            if not owner.exists:
                return ContainerInfo(status=owner.status if owner.status >= 500 else 0)
        response = _head(request, forward, EntityPath(account, container), "GET_CONTAINER_INFO")
        record = request.env[environkeys.INFOCACHE].get(key)
        if record is None:
            record = container_record(response.status, response.headers)
            cache_info(request, key, record, _recheck_s(response.headers, "container"))
    return container_from_record(record)


def reachable_container_info(
    request: Request, forward: Forward, account: str, container: str
) -> ContainerInfo:
    """Return the info of a container; raises ``HTTPError`` 503 if no server says whether it exists."""
    info = container_info(request, forward, account, container)
    if info.status >= 500:
        raise HTTPError(503)
    return info
