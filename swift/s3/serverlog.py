"""Lines of a bucket's access log in AWS's format, and where a bucket has them go. Pure.

What a client sends stands in quotes or without spaces, and never with either of its own: nobody can write a
line that is not theirs. Signatures and tokens are left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

from swift.http.headers import HeaderMap
from swift.s3.xml import Group, Kind, Many, Text

_GRANT = Many(
    "Grant",
    Group("Grantee", Kind(), *map(Text, ("ID", "DisplayName", "EmailAddress", "URI"))),
    Text("Permission"),
)
LOGGING = Group(
    "BucketLoggingStatus",
    Group(
        "LoggingEnabled",
        Text("TargetBucket", required=True),
        Text("TargetPrefix", required=True),
        Group("TargetGrants", _GRANT),
        Group(
            "TargetObjectKeyFormat",
            Group("SimplePrefix"),
            Group("PartitionedPrefix", Text("PartitionDateSource")),
        ),
    ),
)
PREFIX_MAX, TEXT_MAX = 512, 2048
_secrets = re.compile(r"((?:^|[?&])(?:X-Amz-(?:Signature|Security-Token)|Signature)=)[^&]*", re.IGNORECASE)
#: Marks of sub-resources whose name in logs is not their own.
_RESOURCES = {"versions": "BUCKETVERSIONS", "delete": "MULTI_OBJECT_DELETE", "uploads": "UPLOADS"}


class LogTarget(NamedTuple):
    """Where a bucket's log goes: a bucket of the same account, and how the keys there begin."""

    bucket: str
    prefix: str

    @property
    def stored(self) -> str:
        """The form in which a bucket keeps it."""
        return f"{self.bucket} {quote(self.prefix, safe='')}"


def target_of(stored: str | None) -> LogTarget | None:
    """What a bucket keeps; None when it has no log."""
    bucket, space, prefix = (stored or "").partition(" ")
    return LogTarget(bucket, unquote(prefix)) if bucket and space else None


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request and its answer."""

    owner: str
    bucket: str
    key: str
    when_s: float
    address: str
    requester: str
    txid: str
    operation: str
    #: The request's line: method, path with query, protocol.
    line: str
    status: int
    error: str
    sent_bytes: int
    object_bytes: int | None
    total_s: float
    turnaround_s: float
    headers: HeaderMap
    version: str
    signature: str
    authentication: str

    @property
    def text(self) -> str:
        """The line, with its end."""
        when = time.strftime("[%d/%b/%Y:%H:%M:%S +0000]", time.gmtime(self.when_s))
        words = (
            *(_word(self.owner), _word(self.bucket), when, _word(self.address), _word(self.requester)),
            *(_word(self.txid), self.operation, _key(self.key), _quoted(_secrets.sub(r"\1-", self.line))),
            *(str(self.status), _word(self.error), str(self.sent_bytes or "-")),
            *("-" if self.object_bytes is None else str(self.object_bytes), _ms(self.total_s)),
            *(_ms(self.turnaround_s), _quoted(self.headers.get("referer", ""))),
            *(_quoted(self.headers.get("user-agent", "")), _word(self.version), _word(self.txid)),
            *(self.signature or "-", "-", self.authentication or "-", _word(self.headers.get("host", ""))),
            *("-", "-", "-"),
        )
        return " ".join(words) + "\n"


def operation_of(method: str, key: str, params: Mapping[str, str], headers: Mapping[str, str]) -> str:
    """``REST.GET.OBJECT``: what is done, as logs name it."""
    kind = "OBJECT" if key else "BUCKET"
    if "uploadId" in params:
        kind = "PART" if "partNumber" in params else "UPLOAD"
    else:
        marks = [name for name in params if name.isalpha() and not params[name]]
        if marks:
            kind = _RESOURCES.get(marks[0], marks[0].upper()[:40])
    verb = "COPY" if "x-amz-copy-source" in headers else method
    return f"REST.{_word(verb)}.{kind}"


def _key(text: str) -> str:
    return quote(text, safe="/", errors="surrogateescape")[: 3 * TEXT_MAX] or "-"


def _word(text: str) -> str:
    """A field without quotes."""
    return "".join(c if 32 < ord(c) < 127 and c != '"' else f"%{ord(c):02X}" for c in text[:TEXT_MAX]) or "-"


def _quoted(text: str) -> str:
    """A field in quotes."""
    clean = "".join(c if 32 <= ord(c) < 127 and c != '"' else f"%{ord(c):02X}" for c in text[:TEXT_MAX])
    return f'"{clean or "-"}"'


def _ms(seconds: float) -> str:
    return str(max(0, round(seconds * 1000)))
