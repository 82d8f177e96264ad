"""The pipeline of an internal client is the one that is written down, and nothing more."""

import pytest

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.compose import internal_client
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http.body import BodyError, ResponseBody
from swift.http.response import Response

CONF = """
[pipeline:main]
pipeline = catch_errors proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[app:proxy-server]
paste.app_factory = test.unit.gateway.test_internal_client:app_factory
"""


class App:
    """Answers with the headers it was asked with, internal ones too."""

    def handle(self, request):
        return Response(200, {f"x-object-sysmeta-{name}": value for name, value in request.headers.items()})


def app_factory(global_conf, **local_conf):
    return App()


def test_internal_headers_pass_in_both_directions(tmp_path):
    path = tmp_path / "internal-client.conf"
    path.write_text(CONF)
    client = internal_client(str(path), "object-expirer", use_replication_network=True)
    seen = client.metadata(EntityPath("a", "c", "o"), "x-object-sysmeta-")
    assert seen["user-agent"] == "object-expirer"
    assert seen["x-backend-allow-reserved-names"] == "true"
    assert seen["x-backend-use-replication-network"] == "true"
    assert seen["x-trans-id"].startswith("tx")


def test_a_file_that_cannot_be_loaded_is_named(tmp_path):
    with pytest.raises(ConfigError, match="absent"):
        internal_client(str(tmp_path / "absent.conf"), "x")


class BreaksOff(ResponseBody):
    """A body whose servers go away."""

    length = None

    def __iter__(self):
        yield b'[{"name": "a"}'
        raise BodyError("the servers went away")


@pytest.mark.parametrize(
    "body", [BreaksOff(), b'[{"name": "a"', b"\xff", b'{"name": "a"}', b"[1]", b'[{"bytes": 1}]']
)
def test_a_listing_that_breaks_off_or_is_none_is_an_unexpected_answer(body):
    client = InternalClient(lambda request: Response(200, body=body), "daemon")
    with pytest.raises(UnexpectedResponse, match="GET /a/c responded 200"):
        list(client.objects("a", "c"))
