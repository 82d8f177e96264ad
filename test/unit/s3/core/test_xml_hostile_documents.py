"""Documents that configure something: whatever is in them, nothing is changed by what is not understood."""

import pytest

from test.support.s3_fixtures import S3Fixture, code_of

DOORS = {
    "/bucket?lifecycle": "LifecycleConfiguration",
    "/bucket?object-lock": "ObjectLockConfiguration",
    "/bucket?encryption": "ServerSideEncryptionConfiguration",
    "/bucket?notification": "NotificationConfiguration",
    "/bucket?inventory&id=a": "InventoryConfiguration",
    "/bucket?logging": "BucketLoggingStatus",
    "/bucket/key?retention": "Retention",
    "/bucket/key?legal-hold": "LegalHold",
}
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
FILE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
BODIES = {
    "json": lambda root: b'{"Rules": []}',
    "no xml": lambda root: b"\x00\xff\xfe",
    "another root": lambda root: b"<Other/>",
    "another namespace": lambda root: f'<{root} xmlns="urn:x"/>'.encode(),
    "an unknown element": lambda root: f"<{root}><Surprise/></{root}>".encode(),
    "a bomb": lambda root: f"{BOMB}<{root}>&b;</{root}>".encode(),
    "a file": lambda root: f"{FILE}<{root}>&a;</{root}>".encode(),
    "depth": lambda root: f"<{root}>{'<a>' * 20_000}{'</a>' * 20_000}</{root}>".encode(),
    "size": lambda root: f"<{root}>{' ' * (5 << 20)}</{root}>".encode(),
    "cut short": lambda root: f"<{root}><Rule>".encode(),
    "text for elements": lambda root: f"<{root}><Rule>text</Rule><Status><a/></Status></{root}>".encode(),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", DOORS)
def test_hostile_documents_are_refused_and_change_nothing(path, body):
    front = S3Fixture()
    answer = front("PUT", path, {}, BODIES[body](DOORS[path]))
    assert code_of(answer) in ("MalformedXML", "InvalidRequest"), answer.body
    assert answer.status == 400
    assert not [request for request in front.store.seen if request.method in ("PUT", "POST", "DELETE")]


@pytest.mark.parametrize("path", sorted(set(DOORS) - {"/bucket?notification"}))
def test_no_document_is_no_change(path):
    front = S3Fixture()
    assert code_of(front("PUT", path, {}, b"")) == "MissingRequestBodyError"
    assert not [request for request in front.store.seen if request.method in ("PUT", "POST", "DELETE")]
