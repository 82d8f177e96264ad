"""An inventory is taken: a bucket is listed into compressed files, and a manifest that names them.

The manifest comes last, so who finds it finds all files. Names depend on configuration and day alone: an
inventory that broke off is written over by the next try, and one that is there is not taken again.
"""

from __future__ import annotations

import csv
import gzip
import json
import time
from collections.abc import Callable, Iterator
from hashlib import md5
from io import BytesIO, TextIOWrapper
from typing import NamedTuple
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.s3.api.call import iso_of_row
from swift.s3.api.metadata import row_class, row_etag
from swift.s3.config.inventory import Inventory
from swift.s3.daemons.walk import MARKER_TYPE, RegisteredBucket, page_of
from swift.s3.policy.document import ARN

DAY_S = 86400
SUNDAY = 6
#: Compressed bytes after which another file is begun.
FILE_BYTES = 8 << 20
TAKEN, THERE, REFUSED, BROKEN_OFF = "taken", "there", "refused", "broken-off"


class DueInventory(NamedTuple):
    """An inventory that is to be taken of a bucket."""

    entry: RegisteredBucket
    inventory: Inventory
    #: Whether the bucket has versions.
    is_versioned: bool


def is_due(inventory: Inventory, now_s: float) -> bool:
    """Whether a day (UTC) is one of its days."""
    if not inventory.is_enabled:
        return False
    return not inventory.is_weekly or time.gmtime(now_s).tm_wday == SUNDAY


class InventoryRun:
    """Takes inventories, each at a moment; ``stops`` says that no more should be done."""

    def __init__(
        self, client: InternalClient, now: Callable[[], float], stops: Callable[[], bool], page_size: int
    ):
        self._client = client
        self._now = now
        self._stops = stops
        self._page_size = page_size

    def take(self, due: DueInventory) -> str:
        """What became of it; raises ``UnexpectedAnswer``."""
        inventory, now_s = due.inventory, self._now()
        midnight_s = int(now_s // DAY_S * DAY_S)
        home = EntityPath(due.entry.account, inventory.bucket)
        start = f"{inventory.prefix}/" if inventory.prefix else ""
        base = f"{start}{due.entry.bucket}/{inventory.id}"
        folder = f"{base}/{time.strftime('%Y-%m-%dT%H-%MZ', time.gmtime(midnight_s))}"
        manifest = home._replace(obj=f"{folder}/manifest.json")
        if self._client.head(home) is None:
            return REFUSED
        if self._client.head(manifest) is not None:
            return THERE
        files: list[dict[str, object]] = []
        for number, content in enumerate(self._files(due)):
            name = md5(f"{folder}/{number}".encode(), usedforsecurity=False).hexdigest()
            key = f"{base}/data/{name}.csv.gz"
            self._client.put(home._replace(obj=key), content, {"content-type": "application/gzip"})
            digest = md5(content, usedforsecurity=False).hexdigest()
            files.append({"key": key, "size": len(content), "MD5checksum": digest})
        if self._stops():
            return BROKEN_OFF
        text = json.dumps(
            {
                "sourceBucket": due.entry.bucket,
                "destinationBucket": f"{ARN}{inventory.bucket}",
                "version": "2016-11-30",
                "creationTimestamp": str(int(now_s * 1000)),
                "fileFormat": "CSV",
                "fileSchema": ", ".join(inventory.columns),
                "files": files,
            },
            indent=1,
        ).encode()
        checksum = md5(text, usedforsecurity=False).hexdigest().encode()
        self._client.put(home._replace(obj=f"{folder}/manifest.checksum"), checksum)
        self._client.put(manifest, text, {"content-type": "application/json"})
        return TAKEN

    def _files(self, due: DueInventory) -> Iterator[bytes]:
        """Compressed files with the rows of all that is listed; one at least."""
        inventory = due.inventory
        rows = self._rows(due)
        row = next(rows, None)
        is_first = True
        while row is not None or is_first:
            is_first = False
            target = BytesIO()
            packed = gzip.GzipFile(fileobj=target, mode="wb", mtime=0)
            with packed, TextIOWrapper(packed, "utf-8", newline="", write_through=True) as text:
                out = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
                while row is not None and target.tell() < FILE_BYTES:
                    facts = columns_of(due.entry.bucket, row, inventory.kind)
                    out.writerow([facts[name] for name in inventory.columns])
                    row = next(rows, None)
            yield target.getvalue()

    def _rows(self, due: DueInventory) -> Iterator[JsonObject]:
        flags = "&versions=true" if due.is_versioned and due.inventory.has_versions else ""
        marker = version = ""
        while not self._stops():
            page = page_of(
                self._client,
                due.entry.path,
                self._page_size,
                flags=flags,
                prefix=due.inventory.filter,
                marker=marker,
                version_marker=version,
            )
            if not page:
                return
            yield from page
            marker = str(page[-1]["name"])
            version = str(page[-1].get("version_id", "null")) if flags else ""


def columns_of(bucket: str, row: JsonObject, kind: str) -> dict[str, str]:
    """Every column of a row of a listing; a delete marker has no more than its name and time."""
    is_marker = row.get("content_type") == MARKER_TYPE
    etag = "" if is_marker else row_etag(row)
    return {
        "Bucket": bucket,
        "Key": quote(str(row["name"]), safe="/", errors="surrogateescape"),
        "VersionId": str(row.get("version_id", "")),
        "IsLatest": "true" if row.get("is_latest", True) else "false",
        "IsDeleteMarker": "true" if is_marker else "false",
        "Size": "" if is_marker else str(row["bytes"]),
        "LastModifiedDate": iso_of_row(str(row["last_modified"])),
        "ETag": etag,
        "StorageClass": "" if is_marker else row_class(row) or kind,
        "IsMultipartUploaded": "" if is_marker else "true" if "-" in etag else "false",
    }
