"""What does not fit into a quota is refused (middleware.md §12)."""

import pytest

from swift.http.body import BytesBody
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.account_quotas import AccountQuotas
from swift.middleware.container_quotas import ContainerQuotas
from swift.policy.policies import Policies
from swift.policy.policy import Policy

POLICIES = Policies((Policy(0, "gold", is_default=True, aliases=("yellow",)), Policy(3, "Silver")))


class App:
    """An account and a container that hold something."""

    def __init__(self):
        self.account = {
            "x-account-bytes-used": "90",
            "x-account-object-count": "9",
            "x-account-storage-policy-silver-bytes-used": "50",
            "x-account-storage-policy-silver-object-count": "5",
        }
        self.container = {
            "x-container-bytes-used": "90",
            "x-container-object-count": "9",
            "x-backend-storage-policy-index": "3",
            "x-container-write": "writers",
        }
        self.container_status = 204
        self.seen = None

    def handle(self, request):
        path = request.entity.path
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            status = 204 if path.container is None else self.container_status
            headers = dict(self.account if path.container is None else self.container)
            if path.container is None:
                request.env["swift.infocache"][f"account/{path.account}"] = {
                    "status": 204,
                    "bytes": "90",
                    "total_object_count": "9",
                    "storage_policies": {"3": {"bytes": 50, "object_count": 5}},
                    "sysmeta": self.stripped("x-account-sysmeta-"),
                    "meta": self.stripped("x-account-meta-"),
                }
            return Response(status, headers)
        self.seen = request
        return Response(204, dict(self.account) if request.method in ("GET", "HEAD") else {})

    def stripped(self, prefix):
        return {name[len(prefix) :]: value for name, value in self.account.items() if name.startswith(prefix)}


@pytest.fixture
def app():
    return App()


def put(filter_, app, size, *, chunked=False, env=None):
    app.seen = None
    body = BytesBody(b"x" * size, chunked=chunked)
    response = filter_.handle(Request("PUT", "/v1/a/c/o", {}, body, env=env or {}))
    assert (response.status == 204) == (app.seen is not None)
    return response


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


@pytest.mark.parametrize("make", [ContainerQuotas, lambda app: AccountQuotas(app, POLICIES)])
def test_who_may_not_write_is_not_told_of_quotas(app, make):
    app.container["x-container-meta-quota-bytes"] = app.account["x-account-sysmeta-quota-bytes"] = "5"
    seen = []

    def authorise(request):
        seen.append(request.acl)
        return error_response(403)

    assert put(make(app), app, 1, env={"swift.authorize": authorise}).status == 403
    assert seen == ["writers"]


def test_a_container_that_is_not_there_has_no_quota(app):
    app.container["x-container-meta-quota-bytes"] = "0"
    app.container_status = 404
    assert put(ContainerQuotas(app), app, 10).status == 204


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
