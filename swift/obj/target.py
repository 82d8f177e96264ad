"""What a request is about: its key, policy and point of view (spec: object-server.md §1, §2)."""

from __future__ import annotations

import json

from swift.base.documents import JsonObject
from swift.base.entity import RESERVED, EntityPath, reserved_name_error
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.policy.policy import Policy
from swift.runtime.backendapp import BackendContext, refuse_sync_key, split_backend_path
from swift.store.api import ObjectKey, Viewpoint
from swift.store.choice import FragmentPreference

PLAIN = "text/plain"


def policy_of(request: Request, context: BackendContext) -> Policy:
    """The policy that the request names; 503 for one that this node does not know."""
    text = request.headers.get(fields.BACKEND_STORAGE_POLICY_INDEX)
    policy = context.policies.of_header(text)
    if policy is None:
        raise HTTPError(503, f"No policy with index {text}", content_type=PLAIN)
    return policy


def key_of(request: Request, context: BackendContext) -> ObjectKey:
    """The object of ``/device/partition/account/container/object``.

    Raises ``HTTPError`` 400, 403, 412, 503.
    """
    policy = policy_of(request, context)
    headers = request.headers
    if fields.BACKEND_STORAGE_POLICY_INDEX not in headers:
        # Proxies of OpenStack Swift hand a client's headers on, and name the policy.
        refuse_sync_key(headers)
    device, partition, account, container, obj = split_backend_path(request, 5, 5)
    context.partitions.check(partition, policy.ring_name)
    path = EntityPath(account, container, obj)
    if RESERVED in account or RESERVED in container or RESERVED in obj:
        reason = reserved_name_error(path, context.limits.auto_create_account_prefix)
        if reason is not None:
            raise HTTPError(400, reason)
    name_hash = context.hasher.hexdigest(account, container, obj)
    if not is_flagged(headers, fields.BACKEND_REPLICATION):
        # Replication copies what lies in a partition as it is, so that no misplaced object stops it.
        context.partitions.check_hash(partition, policy.ring_name, name_hash)
    return ObjectKey(device, partition, policy, path, name_hash)


def is_flagged(headers: HeaderMap, name: str) -> bool:
    """Whether a header that is usually absent says yes."""
    return name in headers and is_true(headers[name])


def opens_expired(request: Request) -> bool:
    """Whether expired objects count as existing for this request."""
    headers = request.headers
    return is_flagged(headers, fields.BACKEND_OPEN_EXPIRED) or is_flagged(headers, fields.BACKEND_REPLICATION)


def read_view(request: Request, context: BackendContext) -> Viewpoint:
    """How GET and HEAD look at objects: at the request's X-Timestamp, or now."""
    headers = request.headers
    moment_s = context.clock.time()
    if "x-timestamp" in headers:
        moment_s = request.timestamp.seconds
    preferences = None
    if fields.BACKEND_FRAGMENT_PREFERENCES in headers:
        preferences = parse_preferences(headers[fields.BACKEND_FRAGMENT_PREFERENCES])
    return Viewpoint(moment_s, opens_expired(request), preferences)


def parse_preferences(text: str) -> list[FragmentPreference] | None:
    """``X-Backend-Fragment-Preferences``; malformed JSON is absent, anything but preferences in it is 400."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return None
    try:
        return [_preference(item) for item in items]
    except (TypeError, KeyError, ValueError, OverflowError):
        raise HTTPError(400, "Bad X-Backend-Fragment-Preferences", content_type=PLAIN)


def _preference(item: JsonObject) -> FragmentPreference:
    return FragmentPreference(Timestamp(item["timestamp"]), frozenset(int(i) for i in item["exclude"]))


def next_part_power_of(request: Request) -> int | None:
    """X-Backend-Next-Part-Power, None when absent or not a power."""
    text = request.headers.get(fields.BACKEND_NEXT_PART_POWER)
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) <= 32 else None
