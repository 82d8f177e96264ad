"""What does not fit into a container's quota is refused (middleware.md §12)."""

import pytest

from swift.http.request import Request
from swift.http.response import error_response
from swift.middleware.container_quotas import ContainerQuotas
from test.support.filters import QuotaBackend, put, replied, uploads_that_fit_or_not


@pytest.fixture
def app():
    return QuotaBackend()


@uploads_that_fit_or_not
def test_an_upload_has_to_fit(app, word, quota, size, fits):
    app.container[f"x-container-meta-quota-{word}"] = quota
    answer = put(ContainerQuotas(app), app, size)
    assert replied(answer) == (None if fits else b"Upload exceeds quota.")


def test_a_container_that_is_not_there_has_no_quota(app):
    app.container["x-container-meta-quota-bytes"] = "0"
    app.container_status = 404
    assert put(ContainerQuotas(app), app, 10).status == 204


def test_who_may_not_write_is_not_told_of_quotas(app):
    app.container["x-container-meta-quota-bytes"] = "5"
    seen = []

    def authorise(request):
        seen.append(request.acl)
        return error_response(403)

    assert put(ContainerQuotas(app), app, 1, env={"swift.authorize": authorise}).status == 403
    assert seen == ["writers"]


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("value", ["x", "-1", "+1", "1.5", "\xb2", "1 0", "9" * 257])
def test_what_is_no_number_is_no_quota(app, method, value):
    for word in ("bytes", "count"):
        request = Request(method, "/v1/a/c", {f"x-container-meta-quota-{word}": value})
        answer = ContainerQuotas(app).handle(request)
        assert (answer.status, answer.body) == (400, f"Invalid {word} quota.".encode())
    assert app.seen is None


@pytest.mark.parametrize("kind", ["versions", "segments"])
@pytest.mark.parametrize("size, fits", [(5, True), (6, False)])
def test_bytes_in_hidden_containers_count_too(app, kind, size, fits):
    app.container["x-container-meta-quota-bytes"] = "185"
    app.container[f"x-container-sysmeta-{kind}-container"] = "%00versions%00c"
    assert put(ContainerQuotas(app), app, size).status == (204 if fits else 413)


def test_hidden_containers_are_looked_at_only_where_bytes_are_bounded(app):
    app.container["x-container-sysmeta-versions-container"] = "%00versions%00c"
    app.container["x-container-meta-quota-count"] = "10"
    looked = []
    inner = app.handle
    app.handle = lambda request: looked.append(request.entity.path.container) or inner(request)
    assert put(ContainerQuotas(app), app, 1).status == 204
    assert set(looked) <= {None, "c"}
