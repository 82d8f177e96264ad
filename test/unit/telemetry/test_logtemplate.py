"""Formats of access lines: what a template may hold, and how moments and hashes are written."""

import hashlib

import pytest

from swift.base.errors import ConfigError
from swift.telemetry.logtemplate import Anonymizer, LogTemplate, TemplateFields, with_txid

FIELDS = TemplateFields(plain=("method", "trans_time"), anonymous=("path",), moments=("time",))
#: 2026-11-25 21:56:04.007577325 UTC
AT = 1795643764.007577


def line(text, **values):
    return LogTemplate(text, FIELDS, option="log_format", anonymize=Anonymizer()).line(values)


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("", "1795643764.007576942"),
        (".datetime", "25/Nov/2026/21/56/04"),
        (".iso8601", "2026-11-25T21:56:04"),
        (".asctime", "Wed Nov 25 21:56:04 2026"),
        (".s", "1795643764"),
        (".ms", "007"),
        (".us", "007576"),
        (".ns", "007576942"),
        (".d", "25"),
        (".H", "21"),
        (".x", "11/25/26"),
    ],
)
def test_a_moment_has_the_attributes_of_the_peer(attribute, text):
    assert line(f"{{time{attribute}}}", time=AT) == text


def test_missing_values_are_dashes():
    assert line("{method} {path} {path.anonymized} {trans_time:.4f} {time.s}", path="") == "- - - - -"


def test_a_number_takes_a_precision():
    assert line("{trans_time:.4f} {trans_time:.1f}", trans_time=0.25) == "0.2500 0.2"


def test_a_hash_names_its_method_and_whether_it_is_salted():
    assert Anonymizer("md5")("/v1/a") == "{MD5}" + hashlib.md5(b"/v1/a").hexdigest()
    assert Anonymizer("sha256", "salt")("x") == "{SSHA256}" + hashlib.sha256(b"saltx").hexdigest()


@pytest.mark.parametrize("method", ["", "md6", "shake_128"])
def test_a_method_that_is_no_hash_is_refused(method):
    with pytest.raises(ConfigError, match="log_anonymization_method"):
        Anonymizer(method)


@pytest.mark.parametrize(
    "text",
    [
        "{nothing}",
        "{method.anonymized}",
        "{path.s}",
        "{time.anonymized}",
        "{time.q}",
        "{method!r}",
        "{method",
        "{0}",
        "{}",
        "{method:q}",
    ],
)
def test_a_template_that_no_request_could_fill_stops_the_start(text):
    with pytest.raises(ConfigError, match="log_format"):
        line(text)


def test_the_transaction_is_added_once():
    assert with_txid("a", "tx1") == "a (txn: tx1)"
    assert with_txid("a tx1", "tx1") == "a tx1"
    assert with_txid("a", None) == "a"
