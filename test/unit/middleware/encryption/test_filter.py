"""Encryption over the simulated cluster: what is stored, and what comes back."""

import json

import pytest

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.http import environkeys, fields
from swift.http.cryptokeys import EncryptionKeysUnavailable
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.middleware.copy import Copy, CopySettings
from swift.middleware.symlink import Symlink, SymlinkSettings
from swift.telemetry.log import silent_log
from test.support.filters import ONE, TWO, EncryptionFixture, FilterFixture, as_stored, bare, md5_of
from test.support.sim import Answer

EMPTY = md5_of(b"")


@pytest.fixture
def front(sim):
    return EncryptionFixture(sim)


def test_listings_show_plain_hashes_or_say_that_they_cannot(front, sim):
    front("PUT", "/a/c/o", {}, b"data")
    assert json.loads(front("GET", "/a/c?format=json").body)[0]["hash"] == md5_of(b"data")
    assert "swift_meta" in json.loads(sim("GET", "/a/c?format=json").body)[0]["hash"]
    other = EncryptionFixture(sim, encryption_root_secret_two=TWO, active_root_secret_id="two")
    assert json.loads(other("GET", "/a/c?format=json").body)[0]["hash"] == "<unknown>"
    assert other("GET", "/a/c/o").status == 500
    assert other("GET", "/a/c/o").body == b"Unable to retrieve encryption keys."


@pytest.mark.parametrize("data", [b"data", b""])
def test_conditions_look_at_plain_etags_under_every_secret(sim, data):
    EncryptionFixture(sim)("PUT", "/a/c/o", {}, data)
    both = {"encryption_root_secret": ONE, "encryption_root_secret_two": TWO, "active_root_secret_id": "two"}
    front = EncryptionFixture(sim, **both)
    etag = f'"{md5_of(data)}"'
    assert front("GET", "/a/c/o", {"if-none-match": etag}).status == 304
    assert bare(front("GET", "/a/c/o", {"if-none-match": etag}).headers["etag"]) == md5_of(data)
    assert front("GET", "/a/c/o", {"if-match": f'"x", {etag}'}).body == data
    assert front("GET", "/a/c/o", {"if-match": '"other"'}).status == 412
    assert front("GET", "/a/c/o", {"if-none-match": '"other"'}).body == data
    assert front("GET", "/a/c/o", {"if-match": "*"}).body == data
    assert front("GET", "/a/c/o", {"if-none-match": "*"}).status == 304


def test_objects_of_an_older_secret_and_of_no_secret_are_read(sim):
    sim("PUT", "/a/c/plain", {"x-object-meta-a": "1"}, b"plain")
    EncryptionFixture(sim)("PUT", "/a/c/old", {}, b"old")
    both = {"encryption_root_secret": ONE, "encryption_root_secret_two": TWO, "active_root_secret_id": "two"}
    front = EncryptionFixture(sim, **both)
    front("PUT", "/a/c/new", {}, b"new")
    for name in ("plain", "old", "new"):
        assert front("GET", f"/a/c/{name}").body == name.encode()
    assert EncryptionFixture(sim)("GET", "/a/c/new").status == 500
    off = EncryptionFixture(sim, disable=True, **both)
    off("PUT", "/a/c/off", {"x-object-meta-a": "1"}, b"off")
    assert (sim("GET", "/a/c/off").body, off("GET", "/a/c/new").body) == (b"off", b"new")


def test_a_copy_is_encrypted_with_its_own_key(sim):
    front = EncryptionFixture(sim, [lambda app: Copy(app, CopySettings(), 1 << 30, silent_log())])
    front("PUT", "/a/c/o", {"x-object-meta-a": "blue"}, b"some data")
    assert front("PUT", "/a/c/copy", {"x-copy-from": "/c/o", "content-length": "0"}).status == 201
    front("DELETE", "/a/c/o")
    answer = front("GET", "/a/c/copy")
    assert (answer.body, answer.headers["x-object-meta-a"]) == (b"some data", "blue")
    assert bare(answer.headers["etag"]) == md5_of(b"some data")
    rows = json.loads(front("GET", "/a/c?format=json").body)
    assert [(row["name"], row["hash"]) for row in rows] == [("copy", md5_of(b"some data"))]


def test_where_a_link_leads_is_encrypted_in_the_listing(sim):
    front = EncryptionFixture(sim, [lambda app: Symlink(app, SymlinkSettings())])
    front("PUT", "/a/c/target", {}, b"data")
    assert front("PUT", "/a/c/link", {"x-symlink-target": "c/target"}).status == 201
    assert front("GET", "/a/c/link").body == b"data"
    assert "target" not in json.loads(sim("GET", "/a/c?format=json").body)[0]["hash"]
    row = json.loads(front("GET", "/a/c?format=json").body)[0]
    assert (row["hash"], row["symlink_path"]) == (EMPTY, "/v1/a/c/target")


def test_an_override_leaves_everything_as_it_is(sim):
    front = EncryptionFixture(sim)
    front("PUT", "/a/c/o", {}, b"data")
    env = {"swift.cache": sim.cache, "swift.crypto.override": True}
    answer = Answer(front.filter.handle(Request("GET", "/v1/a/c/o", {}, env=env)))
    assert answer.body == as_stored(sim, "GET", "/a/c/o").body != b"data"


def test_ciphertext_is_refused_where_no_filter_decrypts_it(front, sim):
    front("PUT", "/a/c/o", {"x-object-meta-a": "1"}, b"data")
    # The metadata alone may be encrypted.
    sim("PUT", "/a/c/plain", {}, b"plain")
    front("POST", "/a/c/plain", {"x-object-meta-a": "1"})
    without = FilterFixture(sim, Copy(sim.app, CopySettings(), 1 << 30, silent_log()))
    for name in ("o", "plain"):
        for method in ("GET", "HEAD"):
            for headers in ({}, {"range": "bytes=1-2"}, {"range": "bytes=0-0,2-2"}, {"if-none-match": "*"}):
                answer = without(method, f"/a/c/{name}", headers)
                assert answer.status == 500, (name, method, headers)
                assert method == "HEAD" or b"no keymaster and encryption to decrypt it" in answer.body
        copied = without("PUT", "/a/c/copy", {"x-copy-from": f"/c/{name}", "content-length": "0"})
        assert copied.status == 500 and front("GET", "/a/c/copy").status == 404
        assert front("GET", f"/a/c/{name}").headers["x-object-meta-a"] == "1"
    # Daemons move objects as they are stored.
    with InternalClient(sim.app.handle, "test", tries=1).get(EntityPath("a", "c", "o")) as response:
        assert response.read_body() == as_stored(sim, "GET", "/a/c/o").body != b"data"


def test_a_filter_without_keys_leaves_everything_as_it_is(sim):
    encryption = EncryptionFixture(sim).filter.app
    env = {"swift.cache": sim.cache, "swift_owner": True}
    sent = {"content-length": "4", "x-object-meta-a": "1"}
    assert Answer(encryption.handle(Request("PUT", "/v1/a/c/o", sent, b"data", env=env))).status == 201
    assert sim("GET", "/a/c/o").body == b"data"


def test_an_upload_without_keys_stores_nothing(sim):
    def none(key_id=None):
        raise EncryptionKeysUnavailable("the secret is away")

    encryption = EncryptionFixture(sim).filter.app
    for method in ("PUT", "POST"):
        env = {"swift.cache": sim.cache, "swift_owner": True, environkeys.FETCH_CRYPTO_KEYS: none}
        with pytest.raises(HTTPError) as caught:
            encryption.handle(Request(method, "/v1/a/c/o", {"content-length": "4"}, b"data", env=env))
        assert caught.value.response.status == 500
    assert sim("GET", "/a/c/o").status == 404


def test_a_refusal_does_not_say_how_the_body_is_encrypted(front):
    front("PUT", "/a/c/o", {"x-object-meta-a": "1"}, b"data")
    for headers, status in (({"if-match": '"x"'}, 412), ({"range": "bytes=9-"}, 416)):
        answer = front("GET", "/a/c/o", headers)
        assert answer.status == status
        assert not [name for name in answer.headers if name.startswith(fields.SYSMETA_CRYPTO)]
        plain = front("HEAD", "/a/c/o").headers
        assert answer.headers["etag"] == plain["etag"], "the stored one is that of the encrypted bytes"
        assert answer.headers["x-object-meta-a"] == "1"


def test_a_request_is_given_back_as_it_came(sim):
    front = EncryptionFixture(sim)
    env = {"swift.cache": sim.cache, "swift_owner": True}
    request = Request("PUT", "/v1/a/c/o", {"content-length": "4"}, b"data", env=env)
    body = request.body
    assert Answer(front.filter.handle(request)).status == 201
    assert request.body is body and environkeys.UPDATE_FOOTERS not in request.env


@pytest.mark.parametrize("name", ["\xc3\xa8", "\xc3\x89a", "\xff", "n" * 128])
@pytest.mark.parametrize("in_footers", [False, True])
def test_names_of_metadata_stay_as_they_are(sim, name, in_footers):
    front, header = EncryptionFixture(sim), f"x-object-meta-{name}"
    env = {"swift.cache": sim.cache, "swift_owner": True}
    sent = {"content-length": "4"}
    if in_footers:
        env[environkeys.UPDATE_FOOTERS] = lambda footers: footers.update({header: "v"})
    else:
        sent[header] = "v"
    assert Answer(front.filter.handle(Request("PUT", "/v1/a/c/o", sent, b"data", env=env))).status == 201
    assert front("HEAD", "/a/c/o").headers[header] == "v"
    assert header not in as_stored(sim, "HEAD", "/a/c/o").headers
