"""People who open /info in a browser see a page; programs see JSON (public-api.md §4)."""

import pytest

from swift.proxy.discovery import accepts_html, info_page


@pytest.mark.parametrize(
    ("accept", "page"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("text/html", True),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("TEXT/HTML;q=0.1", True),
        ("text/html, application/json", False),
        ("text/htmlx", False),
    ],
)
def test_only_browsers_get_the_page(accept, page):
    assert accepts_html(accept) == page


def test_the_page_has_every_fact_as_text():
    policies = [{"name": "gold", "default": True}]
    facts = {
        "swift": {"version": "1<2", "yes": True, "none": None, "policies": policies},
        "tempurl": {"methods": ["GET", "<script>"], "empty": []},
        "odd": 5,
    }
    page = info_page(facts).decode()
    for text in ("<h2>swift</h2>", "1&lt;2", "<td>yes</td>", "name: gold, default: yes", "<td>5</td>"):
        assert text in page
    assert "GET, &lt;script&gt;" in page
    assert "<script" not in page
