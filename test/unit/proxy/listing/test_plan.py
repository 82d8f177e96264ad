"""Which rows a listing has, and the query strings that backends get."""

import itertools
import re

import pytest

from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.listing.plan import (
    Finding,
    ListingInfo,
    ListingRequest,
    Root,
    Rows,
    Shards,
    Strong,
    decide,
    listing_query,
)

#: The first row that applies decides: the facts that it needs, "!" for their absence, and the plan.
TABLE = """
request        container               root                        plan
-              cached !strong !denied  -                           shards of the cache
-              cached !strong denied   -                           deny
-              -                       -                           rows
-              denied                  response                    deny
get !internal  strong                  shards !PEER !split !SPLIT  strong
get !internal  strong                  rows !PEER !split !SPLIT    strong
get !internal  strong                  shards !PEER                strong, split
get !internal  strong                  rows !PEER                  strong, split
get !internal  strong                  rows PEER !split            shards of the first primary that knows them
text           -                       shards !second              shards of the root, requested again as JSON
-              -                       shards                      shards of the root's response
-              -                       second !rows                deny
-              -                       response                    rows
"""


def situations():
    """Yield every request, container and root, each with the words that describe it."""
    flags = (True, False)
    requests = [(True, True), (True, False), (False, False)]
    for (is_get, takes), text, internal in itertools.product(requests, flags, flags):
        request = ListingRequest(is_get, takes, text, internal)
        for cached, denied, strong in itertools.product(flags, flags, flags):
            info = ListingInfo(cached, denied, strong)
            words = {"get": is_get, "text": text, "internal": internal}
            words |= {"cached": cached, "denied": denied, "strong": strong}
            yield request, info, None, {word for word, holds in words.items() if holds}
            for root in roots():
                found = {finding.name for finding in root.findings}
                found |= {"response"} | ({"split"} if root.state != "unsharded" else set())
                found |= {"second"} if root.is_second else set()
                if root.status == 200 and root.record_type == "object":
                    found.add("rows")
                if root.status == 200 and root.record_type == "shard" and takes:
                    found.add("shards")
                yield request, info, root, found | {word for word, holds in words.items() if holds}


def roots():
    for status, record_type, state, second, *found in itertools.product(
        (200, 404),
        ("object", "shard", "replica-rows"),
        ("unsharded", "sharded"),
        (True, False),
        *[(True, False)] * 2,
    ):
        findings = itertools.compress((Finding.SPLIT, Finding.PEER), found)
        yield Root(status, record_type, state, second, frozenset(findings))


def rows_of_table():
    """Yield the needed facts and the plan of each row; one without a root needs that there is none."""
    lines = TABLE.strip().splitlines()[1:]
    for line in lines:
        *cells, plan = (cell.strip() for cell in re.split(r"\s{2,}", line))
        needed = {word for cell in cells for word in cell.split() if word != "-"}
        yield needed | ({"!response"} if cells[2] == "-" and line in lines[:3] else set()), plan


def text_of(plan):
    """Return a plan as the table has it."""
    match plan:
        case Rows():
            return "rows"
        case Shards(bounds):
            return f"shards of {bounds.value}"
        case Strong(is_split):
            return "strong, split" if is_split else "strong"
    return "deny"


def test_the_table_of_decisions():
    table, used = list(rows_of_table()), set()
    for request, info, root, words in situations():
        number, plan = next(
            (number, plan)
            for number, (needed, plan) in enumerate(table)
            if all((word[1:] not in words) if word[0] == "!" else word in words for word in needed)
        )
        used.add(number)
        assert text_of(decide(request, info, root)) == plan, f"{request}, {info}, {root}\n{TABLE}"
    assert used == set(range(len(table)))


def query(text, kind="container", method="GET", **env):
    return listing_query(Request(method, "/v1/a/c", {}, query=text, env=env), kind)


@pytest.mark.parametrize(
    ("asked", "kind", "sent"),
    [
        ("", "container", "format=json"),
        ("prefix=a%2Fb&limit=3", "container", "prefix=a%2Fb&limit=3&format=json"),
        ("format=xml", "container", "format=xml"),
        ("path=a", "container", "path=a&format=json"),
        ("path=a&marker=b", "account", "marker=b&format=json"),
        ("marker=%C5%82", "container", "marker=%C5%82&format=json"),
        ("marker=a%26b%3Dc", "container", "marker=a%26b%3Dc&format=json"),
    ],
)
def test_what_a_client_asks_is_passed_on_as_json(asked, kind, sent):
    assert query(asked, kind) == sent


def test_text_is_asked_for_where_it_is_wanted():
    assert query("format=json", **{environkeys.LISTING_TEXT: True}) == "format=plain"
    assert query("format=json", method="HEAD", **{environkeys.LISTING_TEXT: True}) == "format=json"


@pytest.mark.parametrize(
    ("name", "kind"), [("marker", "account"), ("prefix", "container"), ("path", "container")]
)
def test_a_parameter_that_is_no_utf8_is_refused(name, kind):
    with pytest.raises(HTTPError, match="400"):
        query(f"{name}=%ff", kind)


def test_nobody_minds_what_does_not_count():
    assert query("path=%ff", "account") == "format=json"
    assert query("marker=%ff", method="HEAD") == "marker=%FF&format=json"
