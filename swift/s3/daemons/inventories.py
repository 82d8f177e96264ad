"""An inventory is taken: a bucket is listed into compressed files, and a manifest that names them.

The manifest comes last, so who finds it finds all files. Names depend on configuration and day alone: an
inventory that broke off is written over by the next try, and one that is there is not taken again.
"""

from __future__ import annotations

import csv
import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import md5
from io import BytesIO, TextIOWrapper
from typing import NamedTuple
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.s3.api.call import iso_of_row
from swift.s3.api.metadata import DELETE_MARKER_TYPE, row_class, row_etag
from swift.s3.api.uploads import page_of
from swift.s3.config.inventory import Inventory
from swift.s3.daemons.walk import RegisteredBucket
from swift.s3.policy.document import ARN

DAY_S = 86400
SUNDAY = 6
#: Compressed bytes after which another file is begun.
FILE_BYTES = 8 << 20
TAKEN, THERE, REFUSED, BROKEN_OFF = "taken", "there", "refused", "broken-off"


class DueInventories(NamedTuple):
    """The inventories of one bucket that are due."""

    entry: RegisteredBucket
    inventories: Sequence[Inventory]
    #: True if the bucket has versions.
    is_versioned: bool


def is_due(inventory: Inventory, now_s: float) -> bool:
    """Return True if a day (UTC) is one of its days."""
    if not inventory.is_enabled:
        return False
    return not inventory.is_weekly or time.gmtime(now_s).tm_wday == SUNDAY


#: The result of an inventory: one of the words above, or the error that ended it.
InventoryOutcome = str | UnexpectedResponse


class InventoryRun:
    """Takes the inventories of buckets in one pass; ``stops`` returns True if no more should be done.

    Inventories of one bucket with the same filter share a listing, and a destination is looked at once.
    """

    def __init__(
        self, client: InternalClient, now: Callable[[], float], stops: Callable[[], bool], page_size: int
    ):
        self._client = client
        self._now = now
        self._stops = stops
        self._page_size = page_size
        self._destinations: dict[EntityPath, bool] = {}

    def take(self, due: DueInventories) -> list[tuple[Inventory, InventoryOutcome]]:
        """Take the inventories and return the outcome of each."""
        outcomes: list[tuple[Inventory, InventoryOutcome]] = []
        listings: dict[tuple[str, str], list[_InventoryFiles]] = {}
        for inventory in due.inventories:
            files = _InventoryFiles(self._client, due.entry, inventory, self._now())
            try:
                outcome = self._find(files)
            except UnexpectedResponse as error:
                outcomes.append((inventory, error))
                continue
            if outcome:
                outcomes.append((inventory, outcome))
                continue
            flags = "&versions=true" if due.is_versioned and inventory.has_versions else ""
            listings.setdefault((flags, inventory.filter), []).append(files)
        for (flags, prefix), targets in listings.items():
            outcomes += self._list(due.entry, flags, prefix, targets)
        return outcomes

    def _find(self, files: _InventoryFiles) -> str:
        """Return the outcome of an inventory that cannot be taken or is there already, or an empty string."""
        if files.destination not in self._destinations:
            self._destinations[files.destination] = self._client.head(files.destination) is not None
        if not self._destinations[files.destination]:
            return REFUSED
        return THERE if self._client.head(files.manifest) is not None else ""

    def _list(
        self, entry: RegisteredBucket, flags: str, prefix: str, targets: Sequence[_InventoryFiles]
    ) -> list[tuple[Inventory, InventoryOutcome]]:
        """List a bucket once into the files of several inventories."""
        failed: dict[_InventoryFiles, UnexpectedResponse] = {}

        def each(step: Callable[[_InventoryFiles], None]) -> None:
            for files in targets:
                if files not in failed:
                    try:
                        step(files)
                    except UnexpectedResponse as error:
                        failed[files] = error

        try:
            for row in self._rows(entry, flags, prefix):
                each(partial(_InventoryFiles.add, row=row))
        except UnexpectedResponse as error:
            return [(files.inventory, failed.get(files, error)) for files in targets]
        outcome = BROKEN_OFF
        if not self._stops():
            outcome = TAKEN
            each(_InventoryFiles.finish)
        return [(files.inventory, failed.get(files, outcome)) for files in targets]

    def _rows(self, entry: RegisteredBucket, flags: str, prefix: str) -> Iterator[JsonObject]:
        marker = version = ""
        while not self._stops():
            limits = {"prefix": prefix, "marker": marker, "version_marker": version}
            page = page_of(self._client, entry.path, self._page_size, flags=flags, **limits)
            if not page:
                return
            yield from page
            marker = str(page[-1]["name"])
            version = str(page[-1].get("version_id", "null")) if flags else ""


class _InventoryFiles:
    """The compressed files of one inventory, and the manifest that names them."""

    def __init__(self, client: InternalClient, entry: RegisteredBucket, inventory: Inventory, now_s: float):
        self._client = client
        self._bucket = entry.bucket
        self._now_s = now_s
        self.inventory = inventory
        start = f"{inventory.prefix}/" if inventory.prefix else ""
        self._base = f"{start}{entry.bucket}/{inventory.id}"
        midnight_s = int(now_s // DAY_S * DAY_S)
        self._folder = f"{self._base}/{time.strftime('%Y-%m-%dT%H-%MZ', time.gmtime(midnight_s))}"
        self.destination = EntityPath(entry.account, inventory.bucket)
        self.manifest = self.destination._replace(obj=f"{self._folder}/manifest.json")
        self._files: list[dict[str, object]] = []
        self._open()

    def _open(self) -> None:
        self._target = BytesIO()
        packed = gzip.GzipFile(fileobj=self._target, mode="wb", mtime=0)
        self._text = TextIOWrapper(packed, "utf-8", newline="", write_through=True)
        self._out = csv.writer(self._text, quoting=csv.QUOTE_ALL, lineterminator="\n")
        self._is_empty = True

    def add(self, row: JsonObject) -> None:
        """Add a row of the listing; raise ``UnexpectedResponse``."""
        columns = columns_of(self._bucket, row, self.inventory.kind)
        self._out.writerow([columns[name] for name in self.inventory.columns])
        self._is_empty = False
        if self._target.tell() >= FILE_BYTES:
            self._store()
            self._open()

    def _store(self) -> None:
        self._text.close()
        content = self._target.getvalue()
        name = md5(f"{self._folder}/{len(self._files)}".encode(), usedforsecurity=False).hexdigest()
        key = f"{self._base}/data/{name}.csv.gz"
        self._client.put(self.destination._replace(obj=key), content, {"content-type": "application/gzip"})
        digest = md5(content, usedforsecurity=False).hexdigest()
        self._files.append({"key": key, "size": len(content), "MD5checksum": digest})

    def finish(self) -> None:
        """Store the last file and then the manifest; raise ``UnexpectedResponse``."""
        if not self._is_empty or not self._files:
            self._store()
        text = json.dumps(
            {
                "sourceBucket": self._bucket,
                "destinationBucket": f"{ARN}{self.inventory.bucket}",
                "version": "2016-11-30",
                "creationTimestamp": str(int(self._now_s * 1000)),
                "fileFormat": "CSV",
                "fileSchema": ", ".join(self.inventory.columns),
                "files": self._files,
            },
            indent=1,
        ).encode()
        checksum = md5(text, usedforsecurity=False).hexdigest().encode()
        self._client.put(self.destination._replace(obj=f"{self._folder}/manifest.checksum"), checksum)
        self._client.put(self.manifest, text, {"content-type": "application/json"})


def columns_of(bucket: str, row: JsonObject, kind: str) -> dict[str, str]:
    """Return every column of a row of a listing; a delete marker has no more than its name and time."""
    is_marker = row.get("content_type") == DELETE_MARKER_TYPE
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
