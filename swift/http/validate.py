"""Validation of names, UTF-8 and metadata in requests (spec: public-api.md §1, §4, §11).

Every check raises ``HTTPError`` with the exact text of the spec, or returns nothing. The storage
servers check again what the proxy checked, where the spec says so (``validate_stored_metadata``).
"""

from __future__ import annotations

from collections.abc import Iterable

from swift.base.entity import RESERVED, EntityPath
from swift.base.limits import Limits
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http.headers import HeaderMap, title_case, utf8_value
from swift.http.response import TEXT, HTTPError

_META_PREFIX = {
    "account": "x-account-meta-",
    "container": "x-container-meta-",
    "object": "x-object-meta-",
}


def check_metadata(headers: HeaderMap, kind: str, limits: Limits) -> None:
    """Check the metadata of a client's PUT or POST of an account, container or object.

    ``kind`` is one of these three words. Raises ``HTTPError`` 400 (text/plain).
    """
    prefix = _META_PREFIX[kind]
    skip = len(prefix)
    count = size = 0
    value_max = limits.max_header_size
    for name, value in headers.items():
        if len(value) > value_max:
            _raise_bad_request(
                f"Header value too long: {_header_for_message(name)[: limits.max_meta_name_length]}"
            )
        if not name.startswith(prefix):
            continue
        key = name[skip:]
        if not key:
            _raise_bad_request("Metadata name cannot be empty")
        if kind != "object" and not (_is_utf8_header(key) and _is_utf8_header(value)):
            _raise_bad_request("Metadata must be valid UTF-8")
        count += 1
        size += len(key) + len(value)
        if len(key) > limits.max_meta_name_length:
            _raise_bad_request(f"Metadata name too long: {prefix}{_header_for_message(key)}")
        if len(value) > limits.max_meta_value_length:
            _raise_bad_request(
                f"Metadata value longer than {limits.max_meta_value_length}: "
                f"{prefix}{_header_for_message(key)}"
            )
        if count > limits.max_meta_count:
            _raise_bad_request(f"Too many metadata items; max {limits.max_meta_count}")
        if size > limits.max_meta_overall_size:
            _raise_bad_request(f"Total metadata too large; max {limits.max_meta_overall_size}")


def validate_stored_metadata(items: Iterable[tuple[str, str]], limits: Limits) -> None:
    """Check the totals of a database's user metadata after a merge (account-container.md §8).

    ``items`` are (name without prefix, value) with values as stored; deleted ones (empty) do not count.
    Raises ``HTTPError`` 400.
    """
    count = size = 0
    for name, value in items:
        if value:
            count += 1
            size += len(name) + len(value)
    if count > limits.max_meta_count:
        raise HTTPError(400, f"Too many metadata items; max {limits.max_meta_count}")
    if size > limits.max_meta_overall_size:
        raise HTTPError(400, f"Total metadata too large; max {limits.max_meta_overall_size}")


def check_names(path: EntityPath, limits: Limits, *, new: bool = False) -> None:
    """Check name lengths, counted in characters; raises ``HTTPError`` 400.

    The account and container limits are doubled for internal accounts. ``new`` says that the last part
    is being made: only then is its own length the question for accounts and containers.
    """
    factor = 2 if path.account.startswith(limits.auto_create_account_prefix) else 1
    account_max = limits.max_account_name_length * factor
    container_max = limits.max_container_name_length * factor
    if path.container is None and new:
        _check_length("Account", path.account, account_max)
    elif path.container is not None and path.obj is None and new:
        _check_length("Container", path.container, container_max)
    elif path.obj is not None:
        _check_length("Object", path.obj, limits.max_object_name_length)


def request_timestamp(headers: HeaderMap) -> Timestamp:
    """Return the timestamp of a request: its X-Timestamp, or now; raises ``HTTPError`` 400."""
    given = headers.get("x-timestamp")
    if given is None:
        return Timestamp.now()
    try:
        return Timestamp(given)
    except InvalidTimestamp:
        text = f"X-Timestamp should be a UNIX timestamp float value; was {given!r}"
        raise HTTPError(400, text, content_type=TEXT)


def _check_length(noun: str, name: str, longest: int) -> None:
    if len(name) > longest:
        raise HTTPError(400, f"{noun} name length of {len(name)} longer than {longest}")


def _is_utf8_header(value: str) -> bool:
    """Return True if a Latin-1 header view is UTF-8 without NUL."""
    if value.isascii():
        return RESERVED not in value
    try:
        return RESERVED not in value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return False


def _header_for_message(name: str) -> str:
    """Return a header's name for the text of a refusal, which is UTF-8."""
    return utf8_value(title_case(name))


def _raise_bad_request(text: str) -> None:
    raise HTTPError(400, text, content_type=TEXT)
