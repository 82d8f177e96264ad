"""The documents of errors: which error is told, and nothing of the client's in it is markup."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.s3.core.call import as_s3_error, error_document, late_error_document
from swift.s3.core.errors import RejectedBody, S3Error


class Heard:
    def __init__(self):
        self.told = []

    def exception(self, text, error, *, txid=None):
        self.told.append((text, error, txid))


def request():
    return Request("GET", "/b/k", {}, env={"swift.trans_id": "tx1"})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (S3Error("NoSuchKey"), "NoSuchKey"),
        (RejectedBody(S3Error("BadDigest")), "BadDigest"),
        (HTTPError(503), "ServiceUnavailable"),
    ],
)
def test_what_carries_an_answer_is_told_as_it(error, code):
    assert as_s3_error(error).code == code


def test_a_body_that_broke_is_the_clients_and_not_ours():
    assert 400 <= as_s3_error(BodyError("x")).status < 500


@pytest.mark.parametrize("error", [ValueError("secret"), KeyError("k")])
def test_a_fault_is_nobodys_answer_and_told_to_the_log_alone(error):
    assert as_s3_error(error) is None
    log = Heard()
    call = SimpleNamespace(
        request=request(), log=log, endpoint=SimpleNamespace(operation=SimpleNamespace(name="GetObject"))
    )
    document = late_error_document(call, error)
    assert b"<Code>InternalError</Code>" in document and b"secret" not in document
    assert log.told == [("unexpected error in GetObject", error, "tx1")]


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=40))
def test_a_detail_is_text_whatever_stands_in_it(text):
    document = error_document(request(), S3Error("NoSuchKey", details={"Key": text}))
    inner = document.partition(b"<Key>")[2].rpartition(b"</Key>")[0]
    assert b"<" not in inner and b">" not in inner and not any(c < 32 and c not in b"\t\n" for c in inner)


@given(
    st.text(alphabet=st.characters(min_codepoint=32, blacklist_categories=["Cs", "Cn", "Cc"]), max_size=40)
)
def test_it_comes_back_as_it_was(text):
    root = etree.fromstring(error_document(request(), S3Error("NoSuchKey", details={"Key": text})))
    assert (root.findtext("Key") or "") == text
    assert root.findtext("RequestId") == "tx1"


def test_half_of_a_character_is_no_fault():
    assert b"<Key>" in error_document(request(), S3Error("NoSuchKey", details={"Key": "\udcff"}))
