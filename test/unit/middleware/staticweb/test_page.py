"""Pages show what clients named as text, never as markup (middleware.md §11)."""

import pytest

from swift.middleware.staticweb.page import (
    format_size,
    render_disabled_page,
    render_listing_page,
    render_style_link,
)

EVIL = "\"><script>alert('x')</script>&"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1Ki"),
        (1500, "1Ki"),
        (1536, "2Ki"),
        (1048064, "1Mi"),
        (1 << 40, "1Ti"),
    ],
)
def test_sizes_are_for_people(size, text):
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("css", "depth", "href"),
    [
        ("a.css", 0, "a.css"),
        ("a.css", 2, "../../a.css"),
        ("/a.css", 2, "/a.css"),
        ("https://h/a.css", 2, "https://h/a.css"),
        ('x" onload="y', 0, "x%22%20onload%3D%22y"),
        ("javascript:alert(1)", 0, "javascript:alert%281%29"),
    ],
)
def test_a_style_sheet_is_linked_from_where_the_page_is(css, depth, href):
    assert render_style_link(css, depth) == f'  <link rel="stylesheet" type="text/css" href="{href}" />\n'


def test_a_page_without_a_listing_has_the_style_sheet_of_listings():
    page = render_disabled_page(title="t", prefix="a/b/", css="x.css", index="")
    assert render_style_link("x.css", 2).encode() in page
    assert b"<style" not in page
    assert b"<style" in render_disabled_page(title="t", prefix="a/b/", css="", index="")


def test_no_name_type_label_or_index_becomes_markup():
    row = {"name": EVIL, "bytes": 1, "content_type": EVIL, "last_modified": "2026-11-21T02:15:24.604670"}
    page = render_listing_page([row, {"subdir": EVIL}], title=EVIL, prefix="", css=EVIL)
    page += render_disabled_page(title=EVIL, prefix="", css=EVIL, index=EVIL)
    assert b"<script" not in page
    assert b'"><' not in page.replace(b'"></', b"").replace(b'"><a', b"")


def test_links_never_lead_upwards_or_elsewhere():
    rows = [{"subdir": f"p/{name}"} for name in ("../", "//evil/", "javascript:x/", "?a=b/", "#/")]
    page = render_listing_page(rows, title="t", prefix="p/", css="").decode()
    for link in ("./%2E%2E/", ".///evil/", "./javascript%3Ax/", "./%3Fa%3Db/", "./%23/"):
        assert f'<a href="{link}">' in page


def hrefs(**options):
    rows = [{"subdir": "p/q/r/"}, {"name": "p/q/x&", "content_type": "a/b", "last_modified": "", "bytes": 1}]
    page = render_listing_page(rows, title="t", prefix="p/q/", css="", **options).decode()
    return [line.partition('href="')[2].partition('"')[0] for line in page.splitlines() if "href=" in line]


def test_every_link_of_a_page_has_the_query():
    assert hrefs(query="a=1&b=2") == [f"{path}?a=1&amp;b=2" for path in ("../", "./r/", "./x%26")]


@pytest.mark.parametrize(
    ("top", "has_parent"), [("", True), ("p", True), ("p/", True), ("p/q", False), ("p/q/", False)]
)
def test_no_link_of_a_page_leads_above_its_top(top, has_parent):
    assert ("../" in hrefs(top=top)) is has_parent
