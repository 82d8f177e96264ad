"""Which origins a bucket lets in."""

import pytest

from swift.s3.config.cors import (
    CORS,
    CorsRule,
    cors_headers,
    decode_rules,
    encode_rules,
    parse_rules_document,
    preflight_headers,
    render_rules,
    replace_cors_headers,
)
from swift.s3.core.errors import S3Error
from swift.s3.core.xml import parse, render

ONE = CorsRule(
    ("http://a.example",), ("GET", "PUT"), ("x-amz-*", "Content-Type"), ("ETag", "x-amz-id"), "one", 30
)
TWO = CorsRule(("https://*.example", "null"), ("GET",))
ALL = CorsRule(("*",), ("HEAD", "GET"), ("*",))


def asked(origin, method, names=""):
    return {
        "origin": origin,
        "access-control-request-method": method,
        **({"access-control-request-headers": names} if names else {}),
    }


@pytest.mark.parametrize(
    ("origin", "method", "names", "rule"),
    [
        ("http://a.example", "PUT", "", ONE),
        ("http://a.example", "PUT", "X-Amz-Date, content-type", ONE),
        ("https://b.example", "GET", "", TWO),
        ("null", "GET", "", TWO),
        ("http://elsewhere", "GET", "anything", ALL),
        ("http://a.example", "HEAD", "", ALL),
        ("http://a.example", "DELETE", "", None),
        ("http://elsewhere", "PUT", "", None),
        ("https://.example.org", "PUT", "", None),
    ],
)
def test_the_first_rule_that_allows_all_of_it_answers(origin, method, names, rule):
    if rule is None:
        with pytest.raises(S3Error) as caught:
            preflight_headers((ONE, TWO, ALL), asked(origin, method, names))
        assert (caught.value.code, caught.value.status) == ("AccessForbidden", 403)
        return
    found = preflight_headers((ONE, TWO, ALL), asked(origin, method, names))
    assert found["access-control-allow-methods"] == ", ".join(rule.methods)
    assert found["access-control-allow-origin"] == ("*" if rule is ALL else origin)
    assert ("access-control-allow-credentials" in found) == (rule is not ALL)
    assert ("access-control-max-age" in found) == (rule is ONE)
    if names:
        assert found["access-control-allow-headers"] == names.lower()


@pytest.mark.parametrize("method", ["", "PATCH", "OPTIONS", "get", "\xff"])
def test_other_methods_are_asked_for_in_vain(method):
    with pytest.raises(S3Error) as caught:
        preflight_headers((ALL,), asked("http://x", method))
    assert caught.value.code == "BadRequest"


def test_an_answer_tells_the_browser_what_the_rules_say():
    headers = {"etag": "x", "access-control-allow-origin": "http://old", "access-control-x": "y"}
    replace_cors_headers(headers, cors_headers((ONE,), "http://a.example", "GET"))
    assert headers["access-control-allow-origin"] == "http://a.example"
    assert headers["access-control-expose-headers"] == "ETag, x-amz-id"
    assert "access-control-x" not in headers
    replace_cors_headers(headers, cors_headers((ONE,), "http://b.example", "GET"))
    assert {name for name in headers if name.startswith("access")} == set()
    assert headers["vary"].startswith("Origin")


def rule(**change):
    parts = {"AllowedMethod": ["GET"], "AllowedOrigin": ["*"], **change}
    return "".join(f"<{name}>{text}</{name}>" for name, texts in parts.items() for text in texts)


def document(*rules):
    inner = "".join(f"<CORSRule>{r}</CORSRule>" for r in rules)
    return f"<CORSConfiguration>{inner}</CORSConfiguration>".encode()


def test_rules_come_back_as_they_went():
    rules = (ONE, TWO, ALL)
    assert parse_rules_document(parse(CORS, render(CORS, render_rules(rules)))) == rules
    assert decode_rules(encode_rules(rules)) == rules
    for broken in (b"", b"x", b"[1]", b'[{"surprise": 1}]', b'{"a": 1}'):
        assert decode_rules(broken) == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (document(), "MalformedXML"),
        (document(""), "MalformedXML"),
        (document(rule(AllowedMethod=[])), "MalformedXML"),
        (document(rule(AllowedOrigin=[])), "MalformedXML"),
        (document(rule(AllowedOrigin=[""])), "MalformedXML"),
        (document(rule(AllowedOrigin=["a&#10;b"])), "MalformedXML"),
        (document(rule(AllowedOrigin=["x" * 1025])), "MalformedXML"),
        (document(rule(MaxAgeSeconds=["--1"])), "MalformedXML"),
        (document(rule(MaxAgeSeconds=["9" * 11])), "MalformedXML"),
        (document(rule(ID=["x" * 256])), "MalformedXML"),
        (document(rule(ID=["a", "b"])), "MalformedXML"),
        (document(rule(Surprise=["a"])), "MalformedXML"),
        (document(rule(AllowedMethod=["PATCH"])), "InvalidRequest"),
        (document(rule(AllowedOrigin=["*a*"])), "InvalidRequest"),
        (document(rule(AllowedHeader=["**"])), "InvalidRequest"),
        (document(rule(AllowedHeader=["a b"])), "InvalidRequest"),
        (document(rule(ExposeHeader=["*"])), "InvalidRequest"),
        (document(*[rule()] * 101), "InvalidRequest"),
        (b"<!DOCTYPE a><CORSConfiguration/>", "MalformedXML"),
        (b"<CORSConfiguration>" + b"<CORSRule>" * 5000, "MalformedXML"),
    ],
)
def test_what_is_no_set_of_rules_is_refused(text, code):
    with pytest.raises(S3Error) as caught:
        parse_rules_document(parse(CORS, text))
    assert caught.value.code == code
