"""Names that are not wanted (middleware.md §15)."""

import pytest

from swift.base.errors import ConfigError
from swift.middleware.name_check import NameCheck, NameCheckSettings
from test.support.filters import SmallBackend, ask


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v1/a/c/o%22", "Object/Container/Account name contains forbidden chars from '\"`<>"),
        ("/v1/a/c/" + "x" * 248, "Object/Container/Account name longer than the allowed maximum 255"),
        ("/v1/a/c/" + "%C3%A9" * 124, "Object/Container/Account name longer than the allowed maximum 255"),
        ("/v1/a/c/%2e%2e/o", "Object/Container/Account name contains a forbidden substring"),
        ("/v1/a/c/..", "Object/Container/Account name contains a forbidden substring"),
    ],
)  # fmt: skip
def test_names_that_are_not_wanted_are_refused(path, text):
    app = SmallBackend()
    answer = ask(NameCheck(app, NameCheckSettings()), "PUT", path)
    assert answer.status == 400
    assert answer.body.decode().startswith(text)
    assert app.seen is None


@pytest.mark.parametrize(
    "path", ["/v1/a/c/o", "/v1/a/c/" + "x" * 247, "/v1/a/c/.o", "/v1/a/c/..o", "/v1/a/c/%ff"]
)
def test_other_names_pass(path):
    assert ask(NameCheck(SmallBackend(), NameCheckSettings()), "PUT", path).status == 200


def test_a_pattern_that_is_none_is_an_error_at_the_start():
    with pytest.raises(ConfigError, match="forbidden_regexp"):
        NameCheck(SmallBackend(), NameCheckSettings(forbidden_regexp="("))
