"""The rules for other origins are kept as they were written, and forgotten with their registration."""

from test.support.s3_fixtures import OTHER

RULE = (
    "<CORSRule><AllowedOrigin>https://{origin}</AllowedOrigin><AllowedMethod>{method}</AllowedMethod>"
    "<ExposeHeader>etag</ExposeHeader><MaxAgeSeconds>5</MaxAgeSeconds></CORSRule>"
)
ASKING = {"origin": "https://good.example", "access-control-request-method": "GET"}


def document(*rules):
    return f"<CORSConfiguration>{''.join(rules)}</CORSConfiguration>".encode()


GOOD = document(RULE.format(origin="good.example", method="GET"))


def test_rules_come_back_and_count_until_they_go(s3):
    assert s3("GET", "/bucket?cors").code == "NoSuchCORSConfiguration"
    assert s3("PUT", "/bucket?cors", {}, GOOD).status == 200
    told = s3("GET", "/bucket?cors")
    assert told.texts("AllowedOrigin") == ["https://good.example"]
    assert (told.texts("ExposeHeader"), told.texts("MaxAgeSeconds")) == (["etag"], ["5"])
    answer = s3("GET", "/bucket", {"origin": "https://good.example"})
    assert answer.headers["access-control-allow-origin"] == "https://good.example"
    assert "access-control-allow-origin" not in s3("GET", "/bucket", {"origin": "https://evil"}).headers
    for _ in range(2):
        assert s3("DELETE", "/bucket?cors").status == 204
    assert s3("GET", "/bucket?cors").code == "NoSuchCORSConfiguration"


def test_browsers_are_answered_once_rules_are_registered(s3):
    assert s3.raw("OPTIONS", "/bucket/key", ASKING).status != 200
    s3("PUT", "/bucket?cors", {}, GOOD)
    assert s3.raw("OPTIONS", "/bucket/key", ASKING).headers["access-control-allow-methods"] == "GET"
    evil = {**ASKING, "origin": "https://evil"}
    assert s3.raw("OPTIONS", "/bucket/key", evil).status == 403
    s3("DELETE", "/bucket?cors")
    assert s3.raw("OPTIONS", "/bucket/key", ASKING).status != 200


def test_what_are_no_rules_changes_nothing(s3):
    s3("PUT", "/bucket?cors", {}, GOOD)
    before = s3("GET", "/bucket?cors").body
    for body in (
        b"junk",
        document(),
        document("<CORSRule/>"),
        document(RULE.format(origin="a", method="BREW")),
        document(RULE.format(origin="*.*", method="GET")),
        document(*[RULE.format(origin="a", method="GET")] * 101),
    ):
        assert 400 <= s3("PUT", "/bucket?cors", {}, body).status < 500, body[:200]
        assert s3("GET", "/bucket?cors").body == before


def test_only_the_owner_reads_and_sets_them(s3):
    s3("PUT", "/bucket?cors", {}, GOOD)
    s3("PUT", "/bucket?acl", {"x-amz-acl": "public-read-write"})
    for method, body in (("GET", b""), ("PUT", GOOD), ("DELETE", b"")):
        assert s3(method, "/bucket?cors", {}, body, **OTHER).code == "AccessDenied"
    assert s3("GET", "/bucket?cors").status == 200
