"""What an identity service is asked for a token, and where the store is in its catalog."""

import json

import pytest

from swift.base.errors import InvalidValue
from swift.wire.keystone import password_login, storage_url_in, tokens_url


def catalog(*points):
    services = [{"type": "image", "endpoints": []}, {"type": "object-store", "endpoints": list(points)}]
    return json.dumps({"token": {"catalog": services}}).encode()


ONE = {"interface": "public", "region": "one", "url": "http://one/"}
TWO = {"interface": "public", "region_id": "two", "url": "http://two/"}
INSIDE = {"interface": "internal", "region": "one", "url": "http://inside/"}


@pytest.mark.parametrize("given", ["http://h/v3", "http://h/v3/", "http://h/v3/auth/tokens"])
def test_tokens_are_asked_for_in_one_place(given):
    assert tokens_url(given) == "http://h/v3/auth/tokens"


def test_a_login_names_user_project_and_their_domains():
    asked = json.loads(password_login("üser", "key", "p", project_domain={"name": "D"}))["auth"]
    user = {"name": "üser", "domain": {"id": "default"}, "password": "key"}
    assert asked["identity"] == {"methods": ["password"], "password": {"user": user}}
    assert asked["scope"] == {"project": {"name": "p", "domain": {"name": "D"}}}


def test_the_store_is_found_by_interface_and_region():
    body = catalog(ONE, TWO, INSIDE)
    assert storage_url_in(body) == "http://one/"
    assert storage_url_in(body, region="two") == "http://two/"
    assert storage_url_in(body, interface="internal") == "http://inside/"
    with pytest.raises(InvalidValue, match="no public object-store in region three"):
        storage_url_in(body, region="three")
    with pytest.raises(InvalidValue, match="no admin object-store"):
        storage_url_in(body, interface="admin")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"token": 1}',
        b'{"token": {"catalog": [1]}}',
        b'{"token": {"catalog": [{"type": "object-store"}]}}',
        b'{"token": {"catalog": [{"type": "object-store", "endpoints": [{"interface": "public"}]}]}}',
    ],
)
def test_what_is_no_catalog_is_refused(body):
    with pytest.raises(InvalidValue):
        storage_url_in(body)
