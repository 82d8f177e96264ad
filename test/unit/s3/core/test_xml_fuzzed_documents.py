"""Documents that are nearly right: refused with a 4xx or taken, and what is refused changes nothing."""

import random

import pytest

from test.support.s3_fixtures import S3Fixture

#: Where something may be changed: the caller's own account, and where its buckets are registered.
_ACCOUNTS = ("AUTH_test", ".s3_lifecycle", ".s3_cors")
DOORS = {
    "/bucket?inventory&id=a": (
        "<InventoryConfiguration><Destination><S3BucketDestination><Bucket>arn:aws:s3:::bucket</Bucket>"
        "<Format>CSV</Format><Prefix>p</Prefix></S3BucketDestination></Destination><IsEnabled>true</IsEnabled>"
        "<Filter><Prefix>f</Prefix></Filter><Id>a</Id><IncludedObjectVersions>All</IncludedObjectVersions>"
        "<OptionalFields><Field>Size</Field></OptionalFields><Schedule><Frequency>Daily</Frequency></Schedule>"
        "</InventoryConfiguration>"
    ),
    "/bucket?logging": (
        "<BucketLoggingStatus><LoggingEnabled><TargetBucket>bucket</TargetBucket><TargetPrefix>l/</TargetPrefix>"
        "</LoggingEnabled></BucketLoggingStatus>"
    ),
    "/bucket?lifecycle": (
        "<LifecycleConfiguration><Rule><ID>r</ID><Filter><And><Prefix>a</Prefix><Tag><Key>k</Key>"
        "<Value>v</Value></Tag></And></Filter><Status>Enabled</Status><Expiration><Days>9</Days></Expiration>"
        "</Rule></LifecycleConfiguration>"
    ),
    "/bucket?cors": (
        "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>http://*.a</AllowedOrigin>"
        "<AllowedHeader>*</AllowedHeader><MaxAgeSeconds>5</MaxAgeSeconds></CORSRule></CORSConfiguration>"
    ),
    "/bucket?website": (
        "<WebsiteConfiguration><IndexDocument><Suffix>i</Suffix></IndexDocument><RoutingRules><RoutingRule>"
        "<Condition><KeyPrefixEquals>a</KeyPrefixEquals></Condition><Redirect><HostName>h</HostName></Redirect>"
        "</RoutingRule></RoutingRules></WebsiteConfiguration>"
    ),
    "/bucket?policy": (
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"test:tester3"},'
        '"Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/*",'
        '"Condition":{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}}]}'
    ),
    "/bucket?tagging": "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
    "/made": (
        "<CreateBucketConfiguration><LocationConstraint>us-east-1</LocationConstraint><Tags><Tag><Key>a</Key>"
        "<Value>b</Value></Tag></Tags></CreateBucketConfiguration>"
    ),
}
STRANGE = (
    *(b"", b"\x00", b"\xff\xfe", b"&a;", b"&#0;", b"-1", b"9" * 30, b"1e999", b"NaN", b"null", b"[]", b"{}"),
    *(b'{"a":' * 2000, b"<a>" * 3000, "\u202e\u0661\ufdd0".encode(), b"\xed\xa0\x80", b"${aws:username}"),
    *(b"\r\nX: y", b"*" * 500, b"arn:aws:s3:::other", b"A" * 5000, b"0001-01-01T00:00:00Z", b"2030-13-45"),
)


def spoilt(document, chance):
    """A document with some of it cut, doubled or replaced."""
    data = bytearray(document.encode())
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1)
        end = at + chance.choice((0, 1, 5, 30))
        kind = chance.randrange(3)
        if kind == 0:
            data[at:end] = chance.choice(STRANGE)
        elif kind == 1:
            data[at:at] = data[chance.randrange(len(data) + 1) :][:60]
        else:
            texts = bytes(data).split(b">")
            n = chance.randrange(len(texts))
            texts[n] = chance.choice(STRANGE) + b"<" + texts[n].partition(b"<")[2]
            data = bytearray(b">".join(texts))
    return bytes(data)


@pytest.mark.parametrize("path", DOORS)
def test_what_is_nearly_a_document_harms_nobody(path):
    chance = random.Random(path)
    front = S3Fixture()
    statuses = set()
    for _ in range(60):
        body = spoilt(DOORS[path], chance)
        front.store.seen.clear()
        status = front("PUT", path, {}, body).status
        statuses.add(status)
        assert status < 500 or status == 501, body
        changed = [request for request in front.store.seen if request.method in ("PUT", "POST", "DELETE")]
        assert not changed or status < 300, body
        assert all(request.entity.path.account in _ACCOUNTS for request in changed), body
    assert 400 in statuses and front("PUT", path, {}, DOORS[path].encode()).status < 300
