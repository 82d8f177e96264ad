"""What a client is told at the end of a long piece of work, in each format."""

import json
import xml.etree.ElementTree as ET

import pytest

from swift.http.negotiate import ListingFormat
from swift.middleware.bulk.report import BulkReport


def made(*errors):
    report = BulkReport("delete", {"Number Deleted": 2, "Number Not Found": 1})
    report.errors += [(f"c/{n}", status) for n, status in enumerate(errors)]
    report.set_final_status(success_status=200)
    return report


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        ([], "200 OK"),
        (["404 Not Found"], "400 Bad Request"),
        (["503 Service Unavailable"], "502 Bad Gateway"),
        (["503 Service Unavailable", "500 Internal Error"], "502 Bad Gateway"),
        (["503 Service Unavailable", "403 Forbidden"], "400 Bad Request"),
    ],
)
def test_the_verdict_blames_the_servers_only_when_nobody_else_is_to_blame(errors, status):
    assert made(*errors).status == status


def test_what_failed_as_a_whole_stays_so():
    report = BulkReport("delete", {})
    report.fail(413, "too many")
    report.errors.append(("c/o", "503 Service Unavailable"))
    report.set_final_status(success_status=200)
    assert (report.status, report.body) == ("413 Request Entity Too Large", "too many")


def test_text_has_its_facts_in_the_order_of_their_names_and_errors_last():
    assert made("403 Forbidden").render(ListingFormat.PLAIN).decode().splitlines() == [
        "Number Deleted: 2",
        "Number Not Found: 1",
        "Response Body: ",
        "Response Status: 400 Bad Request",
        "Errors:",
        "c/0, 403 Forbidden",
    ]


def test_json_has_pairs_of_names_and_statuses():
    assert json.loads(made("403 Forbidden").render(ListingFormat.JSON)) == {
        "Response Status": "400 Bad Request",
        "Response Body": "",
        "Number Deleted": 2,
        "Number Not Found": 1,
        "Errors": [["c/0", "403 Forbidden"]],
    }


@pytest.mark.parametrize("shape", [ListingFormat.XML, ListingFormat.TEXT_XML])
def test_xml_cannot_be_broken_out_of(shape):
    report = made()
    report.fail(400, "</response_body><b>&")
    report.errors.append(("c/<x>&", "400 <b>"))
    tree = ET.fromstring(report.render(shape))
    assert tree.tag == "delete"
    assert {e.tag: e.text for e in tree if e.tag != "errors"} == {
        "number_deleted": "2",
        "number_not_found": "1",
        "response_body": "</response_body><b>&",
        "response_status": "400 Bad Request",
    }
    assert [[e.text for e in one] for one in tree.find("errors")] == [["c/<x>&", "400 <b>"]]
