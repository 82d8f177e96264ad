"""Where an update goes whose container was sharded."""

import pytest

from swift.base.timestamp import Timestamp
from swift.cluster.redirect import Redirect, redirect_of
from swift.cluster.transport import BackendResponse

MOMENT = "1700000000.00000"


def reply(location, status=301, **more):
    headers = {"location": location, "x-backend-redirect-timestamp": MOMENT}
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    return BackendResponse(status, headers)


@pytest.mark.parametrize(
    "location", ["/.shards_a/c-1/object", ".shards_a/c-1/object/with/slashes", "/.shards_a/c-1"]
)
def test_a_redirect_names_a_shard_and_since_when(location):
    assert redirect_of(reply(location)) == Redirect(Timestamp(MOMENT), ".shards_a/c-1")


def test_a_quoted_location_is_unquoted_when_it_says_so():
    plain = reply("/.shards_a/c%20x/o")
    quoted = reply("/.shards_a/c%20x/o", x_backend_location_is_quoted="true")
    assert redirect_of(plain).container == ".shards_a/c%20x"
    assert redirect_of(quoted).container == ".shards_a/c x"


def test_a_location_that_is_not_quoted_is_utf8():
    assert redirect_of(reply("/.shards_a/\xc5\x82/o")).container == ".shards_a/\u0142"


@pytest.mark.parametrize(
    "response",
    [
        None,
        reply("/.shards_a/c/o", status=302),
        reply(""),
        reply("/only"),
        reply("/a//o"),
        reply("/a/c/o", x_backend_redirect_timestamp="soon"),
        BackendResponse(301, {"location": "/a/c/o"}),
    ],
)
def test_what_cannot_be_followed_is_no_redirect(response):
    assert redirect_of(response) is None
