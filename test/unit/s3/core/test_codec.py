"""Documents that a bucket keeps, and what they make of its rules."""

import json
import random
import zlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.http import fields
from swift.s3.core.codec import LIFECYCLE, POLICY, WEBSITE, DamagedConfiguration, rules_codec
from swift.s3.core.errors import S3Error
from swift.s3.core.session import sysmeta_of
from swift.s3.policy.context import BucketRules, parse_bucket_rules


def sysmeta(headers):
    return {name.removeprefix(fields.CONTAINER_SYSMETA): text for name, text in headers.items() if text}


@pytest.mark.parametrize("size", [1, 100, 6000, 20480])
def test_a_document_comes_back_as_it_went(size):
    for document in (b"x" * size, random.Random(size).randbytes(size)):
        headers = POLICY.encode(document)
        assert max(len(name) + len(text) for name, text in headers.items()) < 8000
        assert POLICY.decode(sysmeta(headers)) == document


def test_a_shorter_document_leaves_nothing_of_a_longer_one():
    long, short = POLICY.encode(random.Random(1).randbytes(20000)), POLICY.encode(b"short")
    assert long.keys() == short.keys()
    assert POLICY.decode(sysmeta({**long, **short})) == b"short"
    assert POLICY.decode(sysmeta({**long, **POLICY.encode(b"")})) == b""


def test_what_is_too_large_is_refused():
    for document in (b"x" * (200 << 10), random.Random(1).randbytes(30_000)):
        with pytest.raises(S3Error) as caught:
            POLICY.encode(document)
        assert caught.value.status == 400


@pytest.mark.parametrize("text", ["x", "eA==", "\xff"])
def test_what_cannot_be_read_forbids_everything(text):
    with pytest.raises(S3Error) as caught:
        parse_bucket_rules({"s3api-policy": text}, "bucket")
    assert (caught.value.status, caught.value.text) == (500, "The bucket's policy configuration is damaged.")


@pytest.mark.parametrize("text", ["x", "eA==", "\xff"])
def test_every_kind_of_configuration_fails_closed_and_says_which(text):
    for codec, key in ((WEBSITE, "s3api-website"), (LIFECYCLE, "s3api-lifecycle-0")):
        with pytest.raises(DamagedConfiguration) as caught:
            codec.decode({key: text})
        assert f"bucket's {codec.name} configuration is damaged" in caught.value.text


def test_a_policy_of_another_age_forbids_everything():
    kept = sysmeta(POLICY.encode(b'{"Statement": "later"}'))
    with pytest.raises(S3Error):
        parse_bucket_rules(kept, "bucket")


def test_a_bucket_without_rules_costs_nothing():
    assert parse_bucket_rules({"s3api-acl": "x", "versions-enabled": "true"}, "bucket") is None
    assert parse_bucket_rules({"s3api-public-access-block": "none"}, "bucket") == BucketRules()
    found = parse_bucket_rules({"s3api-public-access-block": "BlockPublicAcls,Odd"}, "bucket")
    assert found.blocks == {"BlockPublicAcls"}


def test_a_policy_is_parsed_once():
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::bucket"}
    kept = sysmeta(POLICY.encode(json.dumps({"Statement": statement}).encode()))
    assert parse_bucket_rules(kept, "bucket").policy is parse_bucket_rules(dict(kept), "bucket").policy
    assert parse_bucket_rules(kept, "bucket").is_public


# --- documents of buckets lie in pieces in the metadata of their containers ---------------------------


RULES = rules_codec("rules")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
)


def noise(size):
    return random.Random(1).randbytes(size).hex()


def _as_it_is(item):
    return item


def unpacked(headers):
    return list(RULES.decode_items(sysmeta_of(headers), _as_it_is))


@pytest.mark.long
@given(st.lists(JSON))
def test_a_list_comes_back_as_it_was(items):
    assert unpacked(RULES.encode_json(items)) == items


def test_every_change_sets_all_pieces_so_that_none_of_a_longer_one_stays():
    long, short = RULES.encode_json([noise(8000)]), RULES.encode_json(["x"])
    assert long.keys() == short.keys()
    assert sum(map(bool, long.values())) > 1
    assert unpacked({**long, **short}) == ["x"]
    assert RULES.read_packed(sysmeta_of({**long, **RULES.encode_json(None)})) == ""


def test_pieces_fit_into_headers_and_there_are_so_many():
    found = RULES.encode_json([noise(8000)])
    assert len(found) == 8
    assert all(len(text) <= 4000 and text.isascii() for text in found.values())
    with pytest.raises(S3Error) as refused:
        RULES.encode_json([noise(40_000)])
    assert refused.value.code == "InvalidRequest"


def test_another_kinds_pieces_are_not_this_ones():
    both = {**RULES.encode_json(["mine"]), **rules_codec("rules2").encode_json(["its"])}
    assert unpacked(both) == ["mine"]


DAMAGED = {
    "no base64": "!",
    "no zlib": "AAAA",
    "not compressed": b64encode(b"[1]").decode(),
    "half a list": b64encode(zlib.compress(b"[1")).decode(),
    "no list": b64encode(zlib.compress(b"{}")).decode(),
    "cut": b64encode(zlib.compress(b"[1]")[:-6]).decode(),
    "bomb": b64encode(zlib.compress(b"[" + b" " * (RULES.bytes_max * 2) + b"]", 9)).decode(),
    "deep": b64encode(zlib.compress(b"[" * 200_000)).decode(),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_list_is_no_list(text):
    assert len(text) < 8 * 4000
    with pytest.raises(DamagedConfiguration) as refused:
        RULES.decode_items({"s3api-rules-0": text}, _as_it_is)
    assert (refused.value.code, refused.value.status) == ("InternalError", 500)
    assert "rules configuration is damaged" in refused.value.text
