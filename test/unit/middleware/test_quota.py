"""What does not fit into a quota is refused, of accounts and containers alike (middleware.md §12)."""

import pytest

from swift.http.request import Request
from swift.http.response import error_response
from swift.middleware.account_quotas import AccountQuotas
from swift.middleware.container_quotas import ContainerQuotas
from test.support.quotas import POLICIES, App, put


@pytest.fixture
def app():
    return App()


@pytest.mark.parametrize("make", ["container", "account"])
@pytest.mark.parametrize(
    ("word", "quota", "size", "fits"),
    [
        ("bytes", "100", 10, True),
        ("bytes", "100", 11, False),
        ("bytes", "0", 0, False),
        ("bytes", "90", 0, True),
        ("bytes", "", 1000, True),
        ("bytes", "junk", 1000, True),
        ("bytes", "9" * 256, 1000, True),
        ("count", "10", 1000, True),
        ("count", "9", 0, False),
    ],
)
def test_an_upload_has_to_fit(app, make, word, quota, size, fits):
    if make == "container":
        filter_ = ContainerQuotas(app)
        app.container[f"x-container-meta-quota-{word}"] = quota
    else:
        filter_ = AccountQuotas(app, POLICIES)
        app.account[f"x-account-sysmeta-quota-{word}"] = quota
    answer = put(filter_, app, size)
    if not fits:
        assert (answer.status, answer.body) == (413, b"Upload exceeds quota.")
    else:
        assert answer.status == 204


@pytest.mark.parametrize("make", [ContainerQuotas, lambda app: AccountQuotas(app, POLICIES)])
def test_who_may_not_write_is_not_told_of_quotas(app, make):
    app.container["x-container-meta-quota-bytes"] = app.account["x-account-sysmeta-quota-bytes"] = "5"
    seen = []

    def authorise(request):
        seen.append(request.acl)
        return error_response(403)

    assert put(make(app), app, 1, env={"swift.authorize": authorise}).status == 403
    assert seen == ["writers"]


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("value", ["x", "-1", "+1", "1.5", "\xb2", "1 0", "9" * 257])
def test_what_is_no_number_is_no_quota(app, method, value):
    for word in ("bytes", "count"):
        request = Request(method, "/v1/a/c", {f"x-container-meta-quota-{word}": value})
        answer = ContainerQuotas(app).handle(request)
        assert (answer.status, answer.body) == (400, f"Invalid {word} quota.".encode())
        request = Request(method, "/v1/a", {f"x-account-quota-{word}": value}, env={"reseller_request": True})
        assert AccountQuotas(app, POLICIES).handle(request).status == 400
    assert app.seen is None
