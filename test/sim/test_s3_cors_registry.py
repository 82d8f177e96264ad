"""Buckets with CORS rules are found by their name in any account."""

from swift.s3.config.cors import REGISTRY_ACCOUNT, REGISTRY_CONTAINER
from test.sim.test_s3_cors_preflight import ASK, SIGNED, rules


def registered(s3):
    return s3.sim("GET", f"/{REGISTRY_ACCOUNT}/{REGISTRY_CONTAINER}").body


def test_a_bucket_is_registered_while_it_has_rules(s3):
    assert s3("PUT", "/bucket?cors", {}, rules()).status == 200
    assert b"bucket/AUTH_test" in registered(s3)
    assert s3("DELETE", "/bucket?cors").status == 204
    assert b"bucket/" not in registered(s3)
    assert s3("DELETE", "/bucket?cors").status == 204


def test_a_preflight_request_finds_the_rules_of_its_bucket(s3):
    s3("PUT", "/bucket?cors", {}, rules())
    response = s3.raw("OPTIONS", "/bucket/key", SIGNED)
    assert (response.status, response.headers["access-control-allow-origin"]) == (200, "http://a.example")


def test_a_change_of_rules_takes_effect_at_once(s3):
    assert s3.raw("OPTIONS", "/bucket/key", SIGNED).headers.get("access-control-allow-origin") is None
    s3("PUT", "/bucket?cors", {}, rules())
    assert s3.raw("OPTIONS", "/bucket/key", SIGNED).status == 200
    s3("DELETE", "/bucket?cors")
    assert "access-control-allow-origin" not in s3.raw("OPTIONS", "/bucket/key", SIGNED).headers


def test_a_stale_registration_allows_nothing(s3):
    s3.sim("PUT", f"/{REGISTRY_ACCOUNT}/{REGISTRY_CONTAINER}")
    s3.sim("PUT", f"/{REGISTRY_ACCOUNT}/{REGISTRY_CONTAINER}/bucket/AUTH_other")
    response = s3.raw("OPTIONS", "/bucket/key", ASK)
    assert "access-control-allow-origin" not in response.headers


def test_rules_that_are_refused_register_nothing(s3):
    assert s3("PUT", "/bucket?cors", {}, b"<CORSConfiguration/>").code == "MalformedXML"
    assert s3("PUT", "/no-bucket?cors", {}, rules()).code == "NoSuchBucket"
    assert b"bucket" not in registered(s3)
