"""What does not fit into an account's quota is refused (middleware.md §12)."""

import pytest

from swift.http.request import Request
from swift.http.response import error_response
from swift.middleware.account_quotas import AccountQuotas
from test.support.filters import POLICIES, QuotaBackend, put, replied, uploads_that_fit_or_not


@pytest.fixture
def app():
    return QuotaBackend()


@uploads_that_fit_or_not
def test_an_upload_has_to_fit(app, word, quota, size, fits):
    app.account[f"x-account-sysmeta-quota-{word}"] = quota
    answer = put(AccountQuotas(app, POLICIES), app, size)
    assert replied(answer) == (None if fits else b"Upload exceeds quota.")


@pytest.mark.parametrize(
    ("word", "index", "quota", "fits"),
    [
        ("bytes", 3, "60", True),
        ("bytes", 3, "59", False),
        ("count", 3, "6", True),
        ("count", 3, "5", False),
        ("bytes", 0, "0", True),
    ],
)
def test_a_policy_has_a_quota_of_its_own(app, word, index, quota, fits):
    app.account[f"x-account-sysmeta-quota-{word}-policy-{index}"] = quota
    answer = put(AccountQuotas(app, POLICIES), app, 10)
    if not fits:
        assert (answer.status, answer.body) == (413, b"Upload exceeds policy quota.")
    else:
        assert answer.status == 204


def test_an_old_quota_counts_until_there_is_a_new_one(app):
    app.account["x-account-meta-quota-bytes"] = "5"
    assert put(AccountQuotas(app, POLICIES), app, 1).status == 413
    app.account["x-account-sysmeta-quota-bytes"] = "500"
    assert put(AccountQuotas(app, POLICIES), app, 1).status == 204


def test_administrators_of_the_reseller_are_exempt(app):
    app.account["x-account-sysmeta-quota-bytes"] = "5"
    assert put(AccountQuotas(app, POLICIES), app, 1, env={"reseller_request": True}).status == 204


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("x-account-quota-bytes", "x-account-sysmeta-quota-bytes"),
        ("x-account-quota-count-policy-silver", "x-account-sysmeta-quota-count-policy-3"),
        ("x-account-quota-bytes-policy-yellow", "x-account-sysmeta-quota-bytes-policy-0"),
    ],
)
def test_only_administrators_set_quotas_of_accounts(app, name, stored):
    filter_ = AccountQuotas(app, POLICIES)
    removal = name.replace("x-", "x-remove-", 1)
    for headers, value in (({name: "5"}, "5"), ({removal: "x"}, ""), ({name: ""}, "")):
        app.seen = None
        assert filter_.handle(Request("POST", "/v1/a", dict(headers))).status == 403
        assert app.seen is None
        env = {"reseller_request": True}
        assert filter_.handle(Request("POST", "/v1/a", dict(headers), env=env)).status == 204
        assert app.seen.headers[stored] == value


def test_the_old_header_is_guarded_too(app):
    filter_ = AccountQuotas(app, POLICIES)
    for name in ("x-account-meta-quota-bytes", "x-remove-account-meta-quota-bytes"):
        assert filter_.handle(Request("POST", "/v1/a", {name: "5"})).status == 403
    assert filter_.handle(Request("POST", "/v1/a", {"x-account-meta-other": "5"})).status == 204


def test_quotas_are_shown_by_the_names_of_policies(app):
    app.account["x-account-sysmeta-quota-bytes"] = "5"
    app.account["x-account-sysmeta-quota-count-policy-3"] = "7"
    headers = AccountQuotas(app, POLICIES).handle(Request("HEAD", "/v1/a")).headers
    assert headers["x-account-quota-bytes"] == "5"
    assert headers["x-account-quota-count-policy-silver"] == "7"


def test_who_may_not_write_is_not_told_of_quotas(app):
    app.account["x-account-sysmeta-quota-bytes"] = "5"
    seen = []

    def authorise(request):
        seen.append(request.acl)
        return error_response(403)

    assert put(AccountQuotas(app, POLICIES), app, 1, env={"swift.authorize": authorise}).status == 403
    assert seen == ["writers"]


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("value", ["x", "-1", "+1", "1.5", "\xb2", "1 0", "9" * 257])
def test_what_is_no_number_is_no_quota(app, method, value):
    for word in ("bytes", "count"):
        request = Request(method, "/v1/a", {f"x-account-quota-{word}": value}, env={"reseller_request": True})
        assert AccountQuotas(app, POLICIES).handle(request).status == 400
    assert app.seen is None
