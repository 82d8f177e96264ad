"""Header lines that RFC 9110 forbids although they may carry metadata (spec: public-api.md §1).

Metadata names with spaces, quotes or bytes outside ASCII, and values with control characters, are stored by
OpenStack Swift, so they must be taken, served and removable. llhttp refuses a head that has any. Then, and
only then, such lines are taken out here and the rest is parsed as strictly as ever: what an odd line says is
never about framing. Sans I/O.
"""

from __future__ import annotations

import re

Line = tuple[bytes, bytes]

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_NO_TOKEN = re.compile(rb"[^!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_LINE_BREAK = re.compile(rb"[\r\n]")
#: Software that drops odd characters of a name, or reads them as dashes, must not get one of these. (Without
#: dashes.)
_FRAMING = frozenset(
    (
        b"connection",
        b"contentlength",
        b"expect",
        b"host",
        b"keepalive",
        b"proxyconnection",
        b"te",
        b"trailer",
        b"transferencoding",
        b"upgrade",
    )
)
_KINDS = ("account", "container", "object")
#: Names of metadata as clients send it, and as filters store it: encryption moves an object's into system
#: metadata of the same name.
_METADATA = (
    *(f"x-{verb}{kind}-meta-".encode() for verb in ("", "remove-") for kind in _KINDS),
    *(f"x-{kind}-sysmeta-".encode() for kind in (*_KINDS, "object-transient")),
    # S3 clients sign these as they send them.
    b"x-amz-meta-",
)


def extract_invalid_lines(head: bytes) -> tuple[bytes, list[Line]] | None:
    """Return a complete head without its odd lines, and these as (name, value).

    None when there are none, or when one of them cannot be told from a broken or smuggled line: no colon, a
    line break, a continuation of the line before, or a name that resembles one of framing.
    """
    first, *lines = head[:-4].split(b"\r\n")
    regular, odd = [first], []
    for line in lines:
        name, colon, value = line.partition(b":")
        if _TOKEN.match(name) and not _CONTROL.search(value):
            regular.append(line)
        elif not name or not colon or name[0] in b" \t" or _resembles_framing(name):
            return None
        else:
            odd.append((name, value.strip(b" \t")))
    return (b"\r\n".join([*regular, b"", b""]), odd) if odd else None


def _resembles_framing(name: bytes) -> bool:
    return _NO_TOKEN.sub(b"", name).replace(b"-", b"").lower() in _FRAMING


def is_allowed_in_request(odd: list[Line]) -> bool:
    """Return True if these may be in a request: no line break is part of them, NUL and spaces before the
    colon only of metadata.
    """
    for name, value in odd:
        if _LINE_BREAK.search(name) or _LINE_BREAK.search(value):
            return False
        if not _is_metadata(name) and (name[-1] in b" \t" or b"\0" in name or b"\0" in value):
            return False
    return True


def is_significant(name: bytes) -> bool:
    """Return True if a request's odd line is more than ignored: its name is a usual one or metadata's."""
    return bool(_TOKEN.match(name)) or _is_metadata(name)


def _is_metadata(name: bytes) -> bool:
    return name.lower().startswith(_METADATA)
