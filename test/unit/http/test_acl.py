"""Access control lists: normal form and evaluation (public-api.md §15)."""

import pytest

from swift.http.acl import (
    account_acl_error,
    format_account_acl,
    is_referrer_allowed,
    normalize_acl,
    parse_account_acl,
    parse_acl,
    parse_stored_account_acl,
)
from test.support.checks import every


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (
            " .r:*, .rlistings , test:tester2,.r:-bad.com,.referrer: *.ok.com",
            ".r:*,.rlistings,test:tester2,.r:-bad.com,.r:.ok.com",
        ),
        ("", ""),
        (" , ,", ""),
        (".r:*", ".r:*"),
        (".ref : example.com", ".r:example.com"),
        (".referer:- *.bad.com", ".r:-.bad.com"),
        ("a,b:c, *:*", "a,b:c,*:*"),
        (".rlistings", ".rlistings"),
        ("%C3%BC:u", "%C3%BC:u"),
    ],
)
def test_acls_are_stored_in_a_normal_form(given, stored):
    assert normalize_acl("x-container-read", given) == stored
    assert normalize_acl("x-container-read", stored) == stored


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("X-Container-Write", ".r:*", "Referrers not allowed in write ACL: '.r:*'"),
        ("X-Container-Read", ".r:", "No host/domain value after referrer designation in ACL: '.r:'"),
        ("X-Container-Read", ".r:.", "No host/domain value after referrer designation in ACL: '.r:.'"),
        ("X-Container-Read", ".r:*.", "No host/domain value after referrer designation in ACL: '.r:*.'"),
        ("X-Container-Read", ".r:-", "No host/domain value after referrer designation in ACL: '.r:-'"),
        ("X-Container-Read", ".x:foo", "Unknown designator '.x' in ACL: '.x:foo'"),
    ],
)
def test_bad_elements_are_refused_with_the_peers_text(name, given, error):
    with pytest.raises(ValueError) as caught:
        normalize_acl(name, given)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "referrers", "groups"),
    [
        (None, [], []),
        (".r:*,.rlistings,test:tester2,.r:-bad.com", ["*", "-bad.com"], [".rlistings", "test:tester2"]),
        ("a%2Cb,c%20d", [], ["a,b", "c d"]),
    ],
)
def test_acls_parse_into_referrers_and_groups(text, referrers, groups):
    assert parse_acl(text) == (referrers, groups)


@every(
    ("referer", "rules", "allowed"),
    [
        (None, [], False),
        (None, ["*"], True),
        (None, ["example.com"], False),
        ("http://example.com/x", ["example.com"], True),
        ("http://example.com:8080/x", ["example.com"], True),
        ("http://EXAMPLE.com/x", ["example.com"], True),
        ("http://sub.ok.com/x", [".ok.com"], True),
        ("http://ok.com/x", [".ok.com"], False),
        ("http://bad.com/x", ["*", "-bad.com"], False),
        ("http://bad.com/x", ["-bad.com", "*"], True),
        ("http://sub.bad.com/x", ["*", "-.bad.com"], False),
        ("not a url", ["*"], True),
        ("not a url", ["unknown"], True),
        ("http://[broken", ["*"], True),
        ("http://evil.org\\@example.com/", ["example.com"], False),
        ("http://evil.org\\.example.com/", [".example.com"], False),
        ("http://evil.org%2f.example.com/", [".example.com"], False),
        ("http://evil.org .example.com/", [".example.com"], False),
        ("http://evil.org;.example.com/", [".example.com"], False),
        ("http://user:secret@example.com:8080/", ["example.com"], True),
        ("http://example.com./x", ["example.com"], True),
        ("http://a.example.com./x", [".example.com"], True),
        ("http://example.com/x", ["example.com."], True),
        ("http://evil.org./", ["*", "-evil.org"], False),
        ("http://evil.org../", ["*", "-Evil.org"], False),
        ("http://a.evil.org./", ["*", "-.evil.org"], False),
        ("http://evil.org\\@x/", ["*", "-evil.org"], False),
        ("http://[::1]/", ["::1"], True),
    ],
)
def test_the_last_matching_referrer_rule_wins(referer, rules, allowed):
    assert is_referrer_allowed(referer, rules) is allowed


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", None),
        ("{}", None),
        ('{"admin": ["a"], "read-write": [], "read-only": ["b", "c"]}', None),
        ("{bad", "Syntax error in input ('{bad')"),
        ("[]", "Syntax error in input ('[]')"),
        ('{"bad": []}', 'Key "bad" not recognized'),
        ('{"admin": "a"}', 'Value for key "admin" must be a list'),
        ('{"admin": [1]}', 'Elements of "admin" list must be strings'),
    ],
)
def test_account_acls_are_checked(text, error):
    assert account_acl_error(text) == error


@pytest.mark.parametrize("text", ["[" * 5000, '{"admin": ' * 2000])
def test_an_account_acl_without_bottom_is_a_syntax_error(text):
    assert account_acl_error(text) == f"Syntax error in input ({text!r})"


def test_a_stored_acl_grants_nothing_unless_it_is_well_formed():
    assert parse_stored_account_acl('{"admin": ["a"]}') == {"admin": ["a"]}
    for text in (None, "", "{bad", '{"admin": 5}', '{"admin": [["a"]]}', "[" * 5000):
        assert parse_stored_account_acl(text) == {}


def test_account_acls_have_a_normal_form():
    parsed = parse_account_acl('{ "read-only": ["b"],\n "admin": ["\u00c3\u00bc"]}')
    assert format_account_acl(parsed) == '{"admin":["\\u00c3\\u00bc"],"read-only":["b"]}'
    assert format_account_acl({}) == ""
