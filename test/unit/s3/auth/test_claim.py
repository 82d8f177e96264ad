"""Signatures as they came, checked by whoever knows the secret."""

import hmac
from base64 import b64encode
from hashlib import sha1, sha256

import pytest

from swift.s3.auth import claim
from swift.s3.auth.claim import Claim, ClaimV4, anonymous, check_access_key
from swift.s3.errors import S3Error

#: The example of a GET in Amazon's description of version 4 ("Examples: Signature Calculations").
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EMPTY = sha256(b"").hexdigest()
CANONICAL = (
    "GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\n"
    f"x-amz-content-sha256:{EMPTY}\nx-amz-date:20130524T000000Z\n\n"
    f"host;range;x-amz-content-sha256;x-amz-date\n{EMPTY}"
).encode()
SIGNATURE = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


def claim_v4(signature=SIGNATURE, region="us-east-1", **changes):
    given = {"stamp": "20130524T000000Z", "canonical": CANONICAL, "payload": EMPTY, "is_presigned": False}
    return ClaimV4("AKIAIOSFODNN7EXAMPLE", signature, region=region, **{**given, **changes})


def test_amazons_own_example_is_right():
    assert claim_v4().check(SECRET)


@pytest.mark.parametrize(
    "wrong",
    [
        {"signature": SIGNATURE[:-1] + "0"},
        {"signature": ""},
        {"signature": "é" * 64},
        {"signature": "\ud800"},
        {"region": "eu-west-1"},
        {"stamp": "20130525T000000Z"},
        {"canonical": CANONICAL.replace(b"test.txt", b"test.tx7")},
    ],
)
def test_nothing_that_was_signed_may_be_different(wrong):
    assert not claim_v4(**wrong).check(SECRET)


def test_another_secret_is_wrong_also_after_the_right_one():
    signed = claim_v4()
    assert signed.check(SECRET)
    assert not signed.check(SECRET + "x")
    assert signed.check(SECRET)


def test_chunks_are_signed_only_by_a_secret_that_was_right():
    signed = claim_v4()
    assert signed.chunk_signature("KIND", "previous", "digests") is None
    assert not signed.check("guessed")
    assert signed.chunk_signature("KIND", "previous", "digests") is None
    assert signed.check(SECRET)
    found = signed.chunk_signature("KIND", SIGNATURE, "digests")
    assert found != signed.chunk_signature("KIND", "0" * 64, "digests"), "it hangs on the previous one"
    assert len(found) == 64


def test_version_2_is_an_hmac_of_what_was_signed():
    text = b"GET\n\n\nTue, 27 Mar 2007 19:36:42 +0000\n/awsexamplebucket1/photos/puppy.jpg"
    good = b64encode(hmac.digest(SECRET.encode(), text, sha1)).decode()
    assert Claim("key", good, text, is_presigned=False).check(SECRET)
    assert not Claim("key", good, text + b"x", is_presigned=False).check(SECRET)
    assert Claim("key", good, text, is_presigned=True).chunk_signature("", "", "") is None


def test_what_is_told_of_a_wrong_signature_has_no_secret():
    signed = claim_v4()
    signed.check(SECRET)
    assert SECRET not in repr(signed)
    assert SECRET not in str(signed.details)
    assert signed.details["CanonicalRequest"] == CANONICAL.decode()


def test_conditions_of_policies_hear_of_the_kind_and_the_age():
    facts = claim_v4(is_presigned=True).condition_values(1369353600.0 + 60)
    assert facts == {
        "s3:authtype": "REST-QUERY-STRING",
        "s3:signatureversion": "AWS4-HMAC-SHA256",
        "s3:signatureage": "60000",
    }
    assert anonymous().condition_values(0) == {}


def test_a_request_without_a_signature_is_nobodys():
    assert anonymous().access_key == ""


def test_keys_of_days_are_bounded():
    for number in range(claim._DAY_KEYS_MAX + 2):
        claim_v4(region=f"region-{number}").check(SECRET)
    assert len(claim._day_keys) <= claim._DAY_KEYS_MAX


@pytest.mark.parametrize("key", ["", "a/b", "a\nb", "a\x00", "\ud800"])
def test_a_key_that_cannot_stand_in_a_path_is_refused(key):
    with pytest.raises(S3Error) as refused:
        check_access_key(key)
    assert refused.value.code == "InvalidAccessKeyId"


@pytest.mark.parametrize("key", ["test:tester", "AKIAIOSFODNN7EXAMPLE", "zoë"])
def test_others_are_not(key):
    check_access_key(key)
