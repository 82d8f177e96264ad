"""Reports of operations on many objects (swift/http/report.py)."""

import json

from swift.http.negotiate import ListingFormat, accepted_format
from swift.http.report import plain_explanation, render_report, status_line

VALUES = {"Response Status": "400 Bad Request", "Number Deleted": 1}
PROBLEMS = [("/c/a%20b", "404 Not Found"), ("/c/<", "x & y")]


def test_text_sorts_the_values_and_ends_with_the_errors():
    assert render_report(ListingFormat.PLAIN, "delete", VALUES, PROBLEMS) == (
        b"Number Deleted: 1\nResponse Status: 400 Bad Request\nErrors:\n"
        b"/c/a%20b, 404 Not Found\n/c/<, x & y\n"
    )


def test_json_keeps_the_order():
    text = render_report(ListingFormat.JSON, "delete", VALUES, PROBLEMS)
    assert list(json.loads(text)) == ["Response Status", "Number Deleted", "Errors"]
    assert json.loads(text)["Errors"][0] == ["/c/a%20b", "404 Not Found"]


def test_xml_escapes_what_clients_named():
    text = render_report(ListingFormat.XML, "delete", VALUES, PROBLEMS).decode()
    assert text.startswith("<delete>\n<number_deleted>1</number_deleted>\n<response_status>")
    assert "<object><name>/c/&lt;</name><status>x &amp; y</status></object>\n</errors>\n</delete>\n" in text


def test_statuses_are_said_in_words():
    assert status_line(404) == "404 Not Found"
    assert plain_explanation(422) == "Unprocessable Entity\nUnable to process the contained instructions"


def test_reports_are_text_unless_something_else_is_accepted():
    assert accepted_format(None) is ListingFormat.PLAIN
    assert accepted_format("text/xml") is ListingFormat.TEXT_XML
    assert accepted_format("image/png") is None
    assert accepted_format("nonsense") is None
