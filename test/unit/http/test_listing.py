"""Listings as text and XML, byte for byte (public-api.md §7.2)."""

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from swift.http import listing
from swift.http.negotiate import ListingFormat

OBJECT = {
    "bytes": 5,
    "hash": "5d41",
    "name": 'a&<>"é',
    "content_type": "text/plain",
    "last_modified": "2026-11-21T02:15:24.604670",
    "slo_etag": "not shown",
}
CONTAINER = {
    "name": "c1",
    "count": 0,
    "bytes": 0,
    "last_modified": "2026-11-21T02:15:23.960100",
    "storage_policy": "gold",
}
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def test_text_has_a_line_for_every_entry():
    assert listing.as_text([OBJECT, {"subdir": "é/"}]) == 'a&<>"é\né/\n'.encode()
    assert listing.as_text([]) == b""


def test_json_is_ascii_with_spaces():
    assert listing.as_json([{"subdir": "é/"}]) == b'[{"subdir": "\\u00e9/"}]'


def test_container_xml():
    expected = (
        f'{HEAD}<container name="c1"><object><name>a&amp;&lt;&gt;"é</name><hash>5d41</hash><bytes>5</bytes>'
        "<content_type>text/plain</content_type><last_modified>2026-11-21T02:15:24.604670</last_modified>"
        '</object><subdir name="a/"><name>a/</name></subdir></container>'
    )
    assert listing.container_xml([OBJECT, {"subdir": "a/"}], "c1") == expected.encode()
    assert listing.container_xml([], 'c"') == f'{HEAD}<container name="c&quot;" />'.encode()


def test_account_xml():
    expected = (
        f'{HEAD}<account name="AUTH_test">\n<container><name>c1</name><count>0</count><bytes>0</bytes>'
        "<last_modified>2026-11-21T02:15:23.960100</last_modified><storage_policy>gold</storage_policy>"
        '</container>\n<subdir name="y-" />\n</account>'
    )
    assert listing.account_xml([CONTAINER, {"subdir": "y-"}], "AUTH_test") == expected.encode()
    assert listing.account_xml([], "AUTH_test") == f'{HEAD}<account name="AUTH_test">\n</account>'.encode()


def test_an_unknown_policy_leaves_its_element_out():
    row = {name: value for name, value in CONTAINER.items() if name != "storage_policy"}
    assert b"storage_policy" not in listing.account_xml([row], "a")


def test_rendering_picks_the_shape():
    for shape, start in (
        (ListingFormat.JSON, b"["),
        (ListingFormat.TEXT_XML, b"<?xml"),
        (ListingFormat.PLAIN, b"c1\n"),
    ):
        assert listing.render_account(shape, [CONTAINER], "a").startswith(start)
    assert listing.render_container(ListingFormat.XML, [OBJECT], "c").startswith(b"<?xml")
    assert listing.render_container(ListingFormat.JSON, [], "c") == b"[]"
    assert listing.render_container(ListingFormat.PLAIN, [OBJECT], "c") == 'a&<>"é\n'.encode()


xml_text = st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cn", "Cc")), max_size=8)


@given(xml_text, xml_text)
def test_xml_reads_back_what_was_said(name, container):
    tree = ElementTree.fromstring(listing.container_xml([{**OBJECT, "name": name}], container))
    assert tree.get("name") == container
    assert (tree.findtext("object/name") or "") == name


def test_line_breaks_in_attributes_survive_parsing():
    tree = ElementTree.fromstring(listing.account_xml([{"subdir": "a\n\t\r/"}], "x"))
    assert tree.find("subdir").get("name") == "a\n\t\r/"
