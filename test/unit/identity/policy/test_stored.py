"""The policy of a bucket is read from its container, and a damaged one denies."""

import json

import pytest

from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.stored import STORED_BYTES_MAX, stored_bucket_policy
from swift.s3.core.codec import POLICY, sysmeta_key
from test.support.policies import statement


def stored(document):
    return {sysmeta_key(name): text for name, text in POLICY.encode(document).items()}


def test_what_the_s3_api_stores_is_read():
    document = json.dumps({"Statement": [statement(), statement("Deny")]}).encode()
    policy = stored_bucket_policy(stored(document), "photos")
    assert [one.allows for one in policy.statements] == [True, False]
    assert stored_bucket_policy({}, "photos") is None
    assert stored_bucket_policy(stored(b""), "photos") is None
    assert POLICY.bytes_max == STORED_BYTES_MAX and len(POLICY.headers) == 5


@pytest.mark.parametrize("text", ["garbage", "####", "eJw=", "eJyrVkpUslKqBQAMVgKU"])
def test_a_damaged_policy_is_an_error(text):
    with pytest.raises(InvalidPolicy):
        stored_bucket_policy({"s3api-policy": text}, "photos")
