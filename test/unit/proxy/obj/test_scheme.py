"""How a policy codes its objects, and what the headers of archives say of them."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.http.response import HTTPError
from swift.policy.policy import ErasureCode, Policy
from swift.proxy.obj.scheme import Schemes, match_object_etag, object_headers
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry

MIB = 1 << 20


def policy(ec_type="liberasurecode_rs_vand", segment_size=MIB):
    return Policy(3, "ec42", ec=ErasureCode(ec_type, 4, 2, segment_size))


@pytest.fixture(scope="module")
def schemes():
    return Schemes(SimpleNamespace(telemetry=Telemetry(silent_log())))


@pytest.fixture(scope="module")
def scheme(schemes):
    return schemes.for_policy(policy())


def test_a_policy_has_one_scheme(schemes, scheme):
    assert schemes.for_policy(policy()) is scheme


def test_a_code_that_this_machine_lacks_is_503():
    with pytest.raises(HTTPError) as caught:
        Schemes(SimpleNamespace(telemetry=Telemetry(silent_log()))).for_policy(policy("no_such_code"))
    assert caught.value.response.status == 503


def test_an_object_of_another_segment_size_is_read_by_its_own(scheme):
    size = "x-object-sysmeta-ec-segment-size"
    assert scheme.geometry_for({size: str(MIB // 2)}).segment_size == MIB // 2
    assert scheme.geometry_for({size: str(MIB)}) is scheme.geometry
    assert scheme.geometry_for({}) is scheme.geometry


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "1.5", "\u0661", "9" * 5000, " 5", "2147483648"])
def test_a_segment_size_that_is_none_is_that_of_the_policy(scheme, text):
    assert scheme.geometry_for({"x-object-sysmeta-ec-segment-size": text}) is scheme.geometry


@given(length=st.integers(0, 64 * MIB))
def test_archives_together_are_half_as_long_again_and_a_little(scheme, length):
    archive = scheme.archive_length(length)
    assert archive * 4 >= length
    assert archive * 4 <= length + (length // MIB + 1) * 4096


def test_an_archives_headers_become_the_objects():
    headers = {
        "etag": "of-the-archive",
        "content-length": "300",
        "x-object-meta-a": "1",
        "x-object-sysmeta-ec-etag": "of-the-object",
        "x-object-sysmeta-ec-content-length": "1000",
        "x-object-sysmeta-ec-scheme": "a code",
        "x-object-sysmeta-ec-segment-size": "1048576",
    }
    object_headers(headers)
    assert headers == {"etag": "of-the-object", "content-length": "1000", "x-object-meta-a": "1"}


def test_an_answer_without_length_gets_none():
    headers = {"x-object-sysmeta-ec-content-length": "1000"}
    object_headers(headers)
    assert headers == {}


def test_conditions_are_about_the_object_and_what_others_asked_for_goes_first():
    headers = {}
    match_object_etag(headers)
    assert headers == {"x-backend-etag-is-at": "X-Object-Sysmeta-Ec-Etag"}
    headers = {"x-backend-etag-is-at": "X-Object-Sysmeta-Crypto-Etag-Mac"}
    match_object_etag(headers)
    assert headers["x-backend-etag-is-at"] == "X-Object-Sysmeta-Crypto-Etag-Mac,X-Object-Sysmeta-Ec-Etag"
