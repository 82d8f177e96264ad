"""The schemas of documents that several resources share."""

from __future__ import annotations

from urllib.parse import quote

from swift.s3.call import Call
from swift.s3.errors import S3Error
from swift.s3.xml import Element, Group, Text, Value


def person(name: str) -> Element:
    """An owner or initiator."""
    return Group(name, Text("ID"), Text("DisplayName"))


def person_of(name: str) -> Value:
    """Who somebody is, by access key."""
    return {"ID": name, "DisplayName": name}


class Encoding:
    """How names are written in a listing: as they are, or percent-quoted (``encoding-type=url``)."""

    def __init__(self, call: Call):
        wanted = call.params.get("encoding-type")
        if wanted is not None and wanted != "url":
            raise S3Error(
                "InvalidArgument",
                "Invalid Encoding Method specified in Request",
                details={"ArgumentName": "encoding-type", "ArgumentValue": wanted},
            )
        self.is_url = wanted == "url"

    def __call__(self, text: str) -> str:
        """A name as it is written."""
        return quote(text, safe="/-_.~*", errors="surrogateescape") if self.is_url and text else text

    def mark(self, value: dict[str, Value]) -> None:
        """Say in a document how names are written."""
        if self.is_url:
            value["EncodingType"] = "url"
