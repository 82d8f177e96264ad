"""Inventories: lists a bucket into compressed files, and stores a manifest that names them.

The manifest is stored last, so its readers find all files. Names depend on configuration and day only: the
next try overwrites an interrupted inventory, and an existing one is not taken again.
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
from swift.identity.policy.document import BUCKET_ARN_PREFIX
from swift.s3.config.inventory import Inventory
from swift.s3.core.call import iso_time_of_row
from swift.s3.core.metadata import DELETE_MARKER_TYPE, row_etag, row_storage_class, row_version_id
from swift.s3.daemons.walk import RegisteredBucket

DAY_S = 86400
SUNDAY = 6
#: Compressed bytes after which another file is begun.
FILE_BYTES = 8 << 20
TAKEN, ALREADY_EXISTS, NO_DESTINATION, INTERRUPTED = "taken", "there", "refused", "broken-off"


class DueInventories(NamedTuple):
    """The inventories of one bucket that are due."""

    entry: RegisteredBucket
    inventories: Sequence[Inventory]
    #: True if the bucket has versions.
    is_versioned: bool


def is_due(inventory: Inventory, now_s: float) -> bool:
    """Return True if an inventory is due on this day (UTC)."""
    if not inventory.is_enabled:
        return False
    return not inventory.is_weekly or time.gmtime(now_s).tm_wday == SUNDAY


#: The result of an inventory: one of the words above, or the error that ended it.
InventoryOutcome = str | UnexpectedResponse


class InventoryRun:
    """Takes the inventories of buckets in one pass until ``stops`` returns True.

    Inventories of one bucket with the same filter share a listing, and each destination is checked once.
    """

    def __init__(
        self, client: InternalClient, now: Callable[[], float], stops: Callable[[], bool], page_size: int
    ):
        self._client = client
        self._now = now
        self._is_stopped = stops
        self._page_size = page_size
        self._destinations: dict[EntityPath, bool] = {}

    def take(self, due: DueInventories) -> list[tuple[Inventory, InventoryOutcome]]:
        """Take the inventories of a bucket and return the outcome of each."""
        outcomes: list[tuple[Inventory, InventoryOutcome]] = []
        listings: dict[tuple[bool, str], list[_InventoryFiles]] = {}
        for inventory in due.inventories:
            files = _InventoryFiles(self._client, due.entry, inventory, self._now())
            try:
                outcome = self._check_existing(files)
            except UnexpectedResponse as error:
                outcomes.append((inventory, error))
                continue
            if outcome:
                outcomes.append((inventory, outcome))
                continue
            versions = due.is_versioned and inventory.has_versions
            listings.setdefault((versions, inventory.filter), []).append(files)
        for (versions, prefix), targets in listings.items():
            outcomes += self._list_bucket(due.entry, prefix, targets, versions=versions)
        return outcomes

    def _check_existing(self, files: _InventoryFiles) -> str:
        """Return the outcome of an inventory that cannot be taken or exists already; empty otherwise."""
        if files.destination not in self._destinations:
            self._destinations[files.destination] = self._client.head(files.destination) is not None
        if not self._destinations[files.destination]:
            return NO_DESTINATION
        return ALREADY_EXISTS if self._client.head(files.manifest) is not None else ""

    def _list_bucket(
        self, entry: RegisteredBucket, prefix: str, targets: Sequence[_InventoryFiles], *, versions: bool
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
            for row in self._list_rows(entry, prefix, versions=versions):
                each(partial(_InventoryFiles.add, row=row))
        except UnexpectedResponse as error:
            return [(files.inventory, failed.get(files, error)) for files in targets]
        outcome = INTERRUPTED
        if not self._is_stopped():
            outcome = TAKEN
            each(_InventoryFiles.finish)
        return [(files.inventory, failed.get(files, outcome)) for files in targets]

    def _list_rows(self, entry: RegisteredBucket, prefix: str, *, versions: bool) -> Iterator[JsonObject]:
        for page in self._client.pages(entry.path, size=self._page_size, versions=versions, prefix=prefix):
            yield from page
            if self._is_stopped():
                return


class _InventoryFiles:
    """The compressed files of one inventory, and their manifest."""

    def __init__(self, client: InternalClient, entry: RegisteredBucket, inventory: Inventory, now_s: float):
        self._client = client
        self._bucket = entry.bucket
        self._now_s = now_s
        self.inventory = inventory
        start = f"{inventory.prefix}/" if inventory.prefix else ""
        self._key_prefix = f"{start}{entry.bucket}/{inventory.id}"
        midnight_s = int(now_s // DAY_S * DAY_S)
        self._folder = f"{self._key_prefix}/{time.strftime('%Y-%m-%dT%H-%MZ', time.gmtime(midnight_s))}"
        self.destination = EntityPath(entry.account, inventory.bucket)
        self.manifest = self.destination._replace(obj=f"{self._folder}/manifest.json")
        self._files: list[dict[str, object]] = []
        self._begin_file()

    def _begin_file(self) -> None:
        self._compressed = BytesIO()
        packed = gzip.GzipFile(fileobj=self._compressed, mode="wb", mtime=0)
        self._text = TextIOWrapper(packed, "utf-8", newline="", write_through=True)
        self._csv_writer = csv.writer(self._text, quoting=csv.QUOTE_ALL, lineterminator="\n")
        self._is_empty = True

    def add(self, row: JsonObject) -> None:
        """Add a row of the listing; raise ``UnexpectedResponse``."""
        columns = columns_of(self._bucket, row, self.inventory.kind)
        self._csv_writer.writerow([columns[name] for name in self.inventory.columns])
        self._is_empty = False
        if self._compressed.tell() >= FILE_BYTES:
            self._store_file()
            self._begin_file()

    def _store_file(self) -> None:
        self._text.close()
        content = self._compressed.getvalue()
        name = md5(f"{self._folder}/{len(self._files)}".encode(), usedforsecurity=False).hexdigest()
        key = f"{self._key_prefix}/data/{name}.csv.gz"
        self._client.put(self.destination._replace(obj=key), content, {"content-type": "application/gzip"})
        digest = md5(content, usedforsecurity=False).hexdigest()
        self._files.append({"key": key, "size": len(content), "MD5checksum": digest})

    def finish(self) -> None:
        """Store the last file and then the manifest; raise ``UnexpectedResponse``."""
        if not self._is_empty or not self._files:
            self._store_file()
        text = json.dumps(
            {
                "sourceBucket": self._bucket,
                "destinationBucket": f"{BUCKET_ARN_PREFIX}{self.inventory.bucket}",
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


def columns_of(bucket: str, row: JsonObject, storage_class: str) -> dict[str, str]:
    """Return all columns of a listing row; a delete marker has a name and a time only."""
    is_marker = row.get("content_type") == DELETE_MARKER_TYPE
    etag = "" if is_marker else row_etag(row)
    return {
        "Bucket": bucket,
        "Key": quote(str(row["name"]), safe="/", errors="surrogateescape"),
        "VersionId": row_version_id(row) if "version_id" in row else "",
        "IsLatest": "true" if row.get("is_latest", True) else "false",
        "IsDeleteMarker": "true" if is_marker else "false",
        "Size": "" if is_marker else str(row["bytes"]),
        "LastModifiedDate": iso_time_of_row(str(row["last_modified"])),
        "ETag": etag,
        "StorageClass": "" if is_marker else row_storage_class(row) or storage_class,
        "IsMultipartUploaded": "" if is_marker else "true" if "-" in etag else "false",
    }
