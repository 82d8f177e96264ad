"""The checksums of the parts of multipart objects, which are stored with each of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from swift import green
from swift.http.headers import HeaderMap
from swift.s3.call import Call
from swift.s3.checksums import ALGORITHMS
from swift.s3.storing import stored_checksum
from swift.s3.versions import version_query
from swift.s3.xml import Value

#: Parts that are looked at beside each other.
_LOOKERS = 8


def checksum_elements(headers: HeaderMap) -> dict[str, Value]:
    """The checksum that is stored with an object, as elements of documents."""
    found = stored_checksum(headers)
    value: dict[str, Value] = {
        algorithm.element: found[algorithm.header]
        for algorithm in ALGORITHMS.values()
        if algorithm.header in found
    }
    if value:
        value["ChecksumType"] = found["x-amz-checksum-type"]
    return value


def sums_of_parts(call: Call, places: Sequence[tuple[str, str]]) -> list[dict[str, Value]]:
    """The checksums of parts, each (container, name); nothing for one that has none."""
    found: dict[int, dict[str, Value]] = {}
    left = iter(enumerate(places))

    def look() -> None:
        for at, (container, name) in left:
            sums = checksum_elements(call.account.head(container, name).headers)
            found[at] = {element: text for element, text in sums.items() if element != "ChecksumType"}

    green.gather([look] * min(_LOOKERS, len(places)))
    return [found[at] for at in range(len(places))]


def part_checksum(call: Call, number: int, kind: str) -> HeaderMap:
    """The checksum that is stored with a part, as headers; ``kind`` is the object's. None may be there."""
    version = version_query(call)
    query = f"{version}{'&' if version else ''}multipart-manifest=get"
    with call.account.ask("GET", call.bucket, call.key, query=query) as response:
        entries = json.loads(response.read_body()) if response.status == 200 else []
    if not 1 <= number <= len(entries):
        return {}
    container, _, name = str(entries[number - 1].get("name", "")).lstrip("/").partition("/")
    sums = stored_checksum(call.account.head(container, name).headers)
    return {**sums, "x-amz-checksum-type": kind} if sums else {}
