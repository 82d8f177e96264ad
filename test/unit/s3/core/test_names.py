"""Names of buckets and of the containers that belong to them."""

import pytest

from swift.http.request import Request
from swift.identity.policy.resources import bucket_of_container
from swift.s3.core.errors import S3Error
from swift.s3.core.names import (
    S3Target,
    host_bucket_of,
    is_anonymous_bucket_request,
    own_parts,
    parse_target,
    segments_container,
)


@pytest.mark.parametrize("kind", ["", "COLD", "STANDARD_IA"])
def test_a_container_of_parts_tells_its_bucket(kind):
    assert bucket_of_container(segments_container("bucket", kind)) == "bucket"


@pytest.mark.parametrize(
    "name",
    ["bucket", "bucket+", "+segments", "+COLD+segments", "b+cold+segments", "b+C+D+segments", "b+segmentsx"],
)
def test_any_other_container_belongs_to_itself(name):
    assert bucket_of_container(name) == name


def test_of_a_manifest_only_what_is_in_the_containers_of_its_bucket_is_its_own():
    names = [
        "/b+segments/k/id/1",
        "b+COLD+segments/k/id/1",
        "/b/k",
        "/c+segments/k/id/1",
        "/b+x+segments/k",
        "",
    ]
    assert own_parts("b", [{"name": name} for name in names] + [{"data": "AA=="}]) == [
        ("b+segments", "k/id/1"),
        ("b+COLD+segments", "k/id/1"),
    ]


# --- which bucket and key a request names, by its path or by its host ---------------------------------


DOMAINS = ("s3.example.com", "other")


def to(host):
    return Request("GET", "/", {} if host is None else {"host": host})


@pytest.mark.parametrize("path", ["/bucket/%FF", "/bucket/%00", "*"])
def test_a_path_that_names_nothing_is_shown(path):
    with pytest.raises(S3Error) as refused:
        parse_target(Request("GET", path, {}), "")
    assert (refused.value.code, refused.value.details) == ("InvalidURI", {"Uri": path})


@pytest.mark.parametrize(
    ("host", "bucket"),
    [
        ("photos.s3.example.com", "photos"),
        ("photos.s3.example.com:8080", "photos"),
        ("Photos.S3.Example.COM", "photos"),
        ("my.photos.s3.example.com", "my.photos"),
        ("photos.other", "photos"),
        ("s3.example.com", ""),
        (".s3.example.com", ""),
        ("photoss3.example.com", ""),
        ("photos.s3.example.com.evil", ""),
        ("photos.s3.example.comx:80", ""),
        ("photos.s3.example.com:x", ""),
        ("com", ""),
        ("", ""),
        (":80", ""),
        ("[::1]:8080", ""),
        ("[::1]", ""),
        (None, ""),
    ],
)
def test_a_host_names_a_bucket_in_front_of_a_domain_of_ours(host, bucket):
    assert host_bucket_of(to(host), DOMAINS) == bucket


def test_without_domains_no_host_names_one():
    assert host_bucket_of(to("photos.s3.example.com"), ()) == ""


@pytest.mark.parametrize(
    ("path", "host_bucket", "target"),
    [
        ("/", "", S3Target("", "")),
        ("/photos", "", S3Target("photos", "")),
        ("/photos/", "", S3Target("photos", "")),
        ("/photos/a/b/", "", S3Target("photos", "a/b/")),
        ("/photos//", "", S3Target("photos", "/")),
        ("/photos/%C3%BC%2F+", "", S3Target("photos", "ü/+")),
        ("/photos%2Fkey", "", S3Target("photos", "key")),
        ("/photos/../x", "", S3Target("photos", "../x")),
        ("/AUTH_a:photos/key", "", S3Target("photos", "key", "AUTH_a")),
        ("/:photos/key", "", S3Target(":photos", "key")),
        ("/a:b:c/key", "", S3Target("b:c", "key", "a")),
        ("/photos/a:b", "", S3Target("photos", "a:b")),
        ("/", "photos", S3Target("photos", "")),
        ("/a/b", "photos", S3Target("photos", "a/b")),
        ("//a", "photos", S3Target("photos", "/a")),
        ("/AUTH_a:photos/key", "other", S3Target("other", "AUTH_a:photos/key")),
    ],
)
def test_a_path_names_a_bucket_unless_the_host_does(path, host_bucket, target):
    assert parse_target(Request("GET", path), host_bucket) == target


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/photos/%ff", "InvalidURI"),
        ("/%00versions%00photos/key", "InvalidURI"),
        ("/photos/a%00b", "InvalidURI"),
        ("*", "InvalidURI"),
        ("", "InvalidURI"),
        ("photos/key", "InvalidURI"),
        ("//key", "InvalidBucketName"),
    ],
)
def test_what_names_nothing_is_refused(path, code):
    with pytest.raises(S3Error) as refused:
        parse_target(Request("GET", path), "")
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("path", "account", "meant"),
    [
        ("/photos/key", "AUTH_a", True),
        ("/photos", "AUTH_a", True),
        ("/photos/key", "", False),
        ("/AUTH_b:photos/key", "", True),
        ("/:photos/key", "AUTH_a", False),
        ("/AUTH_b:/key", "AUTH_a", False),
        ("/v1/AUTH_a/c", "AUTH_a", False),
        ("/info", "AUTH_a", False),
        ("/healthcheck", "AUTH_a", False),
        ("/auth/v1.0", "AUTH_a", False),
        ("/crossdomain.xml", "AUTH_a", False),
        ("/No_Bucket/x", "AUTH_a", False),
        ("/%ff", "AUTH_a", False),
        ("/", "AUTH_a", False),
        ("", "AUTH_a", False),
    ],
)
def test_what_nobody_signed_is_for_a_bucket_only_when_it_names_one(path, account, meant):
    assert is_anonymous_bucket_request(Request("GET", path), "", account) is meant


def test_a_host_that_names_a_bucket_needs_an_account_for_it():
    assert is_anonymous_bucket_request(Request("GET", "/v1/a"), "photos", "AUTH_a")
    assert not is_anonymous_bucket_request(Request("GET", "/photos"), "photos", "")
