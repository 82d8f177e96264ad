"""Containers that take only so many bytes or objects (middleware.md §12)."""

import pytest

from swift.http.request import Request
from swift.middleware.container_quotas import ContainerQuotas
from test.support.quotas import App, put


@pytest.fixture
def app():
    return App()


def test_a_container_that_is_not_there_has_no_quota(app):
    app.container["x-container-meta-quota-bytes"] = "0"
    app.container_status = 404
    assert put(ContainerQuotas(app), app, 10).status == 204


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


def test_reading_asks_nobody(app):
    app.container["x-container-meta-quota-bytes"] = "0"
    assert ContainerQuotas(app).handle(Request("GET", "/v1/a/c/o")).status == 204
