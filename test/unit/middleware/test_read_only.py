"""Accounts that are not written to (middleware.md §15)."""

import pytest

from swift.middleware.read_only import ReadOnly, ReadOnlySettings
from test.support.filters import SmallBackend, ask


@pytest.mark.parametrize(
    ("default", "own", "writable"),
    [
        (False, None, True),
        (True, None, False),
        (True, "false", True),
        (False, "true", False),
        (True, "", False),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "COPY"])
def test_an_account_says_itself_whether_it_is_written_to(default, own, writable, method):
    app = SmallBackend()
    if own is not None:
        app.account["AUTH_a"] = {"x-account-sysmeta-read-only": own}
    filter_ = ReadOnly(app, ReadOnlySettings(read_only=default))
    for path in ("/v1/AUTH_a", "/v1/AUTH_a/c", "/v1/AUTH_a/c/o"):
        app.seen = None
        answer = ask(filter_, method, path)
        assert answer.status == (200 if writable else 405)
        assert (app.seen is not None) == writable
        assert writable or answer.body == b"Writes are disabled for this account."
        assert ask(filter_, "GET", path).status == 200


def test_deletes_can_be_let_through():
    filter_ = ReadOnly(SmallBackend(), ReadOnlySettings(read_only=True, allow_deletes=True))
    assert [ask(filter_, method).status for method in ("DELETE", "PUT")] == [200, 405]


@pytest.mark.parametrize(("target", "status"), [("AUTH_b", 405), ("AUTH%5Fb", 405), ("AUTH_c", 200)])
def test_a_copy_writes_to_its_destination(target, status):
    app = SmallBackend()
    app.account = {name: {"x-account-sysmeta-read-only": "true"} for name in ("AUTH_a", "AUTH_b")}
    headers = {"destination-account": target}
    assert ask(ReadOnly(app, ReadOnlySettings()), "COPY", headers=headers).status == status
