"""Load balancers learn whether a server wants to be asked."""

import pytest

from swift.http.request import Request
from swift.http.response import TEXT, Response
from swift.middleware.healthcheck import Healthcheck, HealthcheckSettings


class Rest:
    """What is behind the filter."""

    def handle(self, request):
        return Response(204, {}, b"")


def ask(path, **options):
    return Healthcheck(Rest(), HealthcheckSettings(**options)).handle(Request("GET", path, {}))


@pytest.mark.parametrize("path", ["/healthcheck", "/%68ealthcheck"])
def test_a_server_that_runs_is_ok(path):
    answer = ask(path)
    assert (answer.status, answer.body, answer.headers["content-type"]) == (
        200,
        b"OK",
        TEXT,
    )


@pytest.mark.parametrize("path", ["/", "/healthcheck/", "/healthchecks", "/v1/a", "/%ff"])
def test_everything_else_goes_on(path):
    assert ask(path).status == 204


def test_an_operator_takes_a_server_out_by_a_file(tmp_path):
    mark = tmp_path / "disabled"
    assert ask("/healthcheck", disable_path=str(mark)).status == 200
    mark.touch()
    answer = ask("/healthcheck", disable_path=str(mark))
    assert (answer.status, answer.body) == (503, b"DISABLED BY FILE")
