"""Transaction ids, and no exception ever reaches a client."""

import logging

import pytest

from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.catch_errors import CatchErrors, CatchErrorsSettings
from swift.telemetry.log import Log


class App:
    """Answers, or fails."""

    def __init__(self, error=None):
        self.error = error

    def handle(self, request):
        self.seen = request
        if self.error is not None:
            raise self.error
        return Response(204)


@pytest.fixture
def said():
    return []


@pytest.fixture
def ask(said):
    class Keep(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())

    logger = logging.Logger("x")
    logger.addHandler(Keep())

    def asked(app, headers=None, **options):
        filter_ = CatchErrors(app, CatchErrorsSettings.parse(options), Log(logger))
        return filter_.handle(Request("GET", "/v1/a/c?marker=secretly", headers or {}))

    return asked


def test_request_and_answer_have_the_id_of_the_transaction(ask):
    app = App()
    response = ask(app, {"x-trans-id-extra": "mine", "x-trans-id": "forged"}, trans_id_suffix="-here")
    txid = response.headers["x-trans-id"]
    assert txid == response.headers["x-openstack-request-id"] == app.seen.headers["x-trans-id"]
    assert txid == app.seen.env[environkeys.TRANS_ID]
    assert txid.startswith("tx") and txid.endswith("-here-mine") and "forged" not in txid


def test_an_error_that_nobody_foresaw_tells_the_client_nothing(ask, said):
    response = ask(App(ValueError("a secret of the house")))
    assert (response.status, response.body) == (500, b"An error occurred")
    assert response.headers["x-trans-id"] in said[0]
    assert "ValueError: a secret of the house" in said[0] and "Traceback" in said[0]
