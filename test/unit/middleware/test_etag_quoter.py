"""Quotes around ETags (middleware.md §15)."""

import pytest

from swift.middleware.etag_quoter import EtagQuoter, EtagQuoterSettings
from test.support.filters import SmallBackend, ask


@pytest.mark.parametrize(
    ("default", "account", "container", "etag"),
    [
        (False, None, None, "abc"),
        (True, None, None, '"abc"'),
        (True, "False", None, "abc"),
        (False, "True", None, '"abc"'),
        (False, "True", "False", "abc"),
        (True, "False", "True", '"abc"'),
        (False, "True", "", '"abc"'),
    ],
)
def test_who_is_nearest_decides_about_quotes(default, account, container, etag):
    app = SmallBackend(etag="abc")
    if account is not None:
        app.account["AUTH_a"] = {"x-account-sysmeta-rfc-compliant-etags": account}
    if container is not None:
        app.container = {"x-container-sysmeta-rfc-compliant-etags": container}
    filter_ = EtagQuoter(app, EtagQuoterSettings(enable_by_default=default))
    assert ask(filter_).headers["etag"] == etag


@pytest.mark.parametrize("etag", ['"abc"', 'W/"abc"'])
def test_nothing_is_quoted_twice(etag):
    assert (
        ask(EtagQuoter(SmallBackend(etag=etag), EtagQuoterSettings(enable_by_default=True))).headers["etag"]
        == etag
    )


@pytest.mark.parametrize(("kind", "path"), [("account", "/v1/AUTH_a"), ("container", "/v1/AUTH_a/c")])
def test_the_wish_is_stored_as_yes_or_no(kind, path):
    stored = f"x-{kind}-sysmeta-rfc-compliant-etags"
    for headers, value in (
        ({f"x-{kind}-rfc-compliant-etags": "yes"}, "True"),
        ({f"x-{kind}-rfc-compliant-etags": "junk"}, "False"),
        ({f"x-{kind}-rfc-compliant-etags": ""}, ""),
        ({f"x-remove-{kind}-rfc-compliant-etags": "x"}, ""),
    ):
        app = SmallBackend()
        ask(EtagQuoter(app, EtagQuoterSettings()), "POST", path, headers)
        assert app.seen.headers[stored] == value
