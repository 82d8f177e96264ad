"""Every request of the Swift API has its actions, and its values for conditions."""

import re
from pathlib import Path

import pytest

from swift.base.entity import EntityPath
from swift.http import fields
from swift.http.request import Request
from swift.identity.policy.actions import ACTION_NAMES
from swift.identity.policy.resources import resource_of
from swift.identity.policy.swiftrequests import (
    GET_OWNER_HEADERS,
    PUT_OWNER_HEADERS,
    RULES,
    PathLevel,
    SwiftContext,
    swift_access,
)
from swift.proxy.settings import OWNER_HEADERS

ACCOUNT, CONTAINER, OBJECT = PathLevel
SPEC = Path(__file__).parents[4] / "doc" / "spec"

REQUESTS = [
    # level, method, query parameters, headers, actions
    (ACCOUNT, "GET", "", "", "s3:ListAllMyBuckets"),
    (ACCOUNT, "HEAD", "", "", "s3:ListAllMyBuckets"),
    (ACCOUNT, "PUT", "", "", "swift:PutAccount"),
    (ACCOUNT, "POST", "", "", "swift:PutAccountMetadata"),
    (ACCOUNT, "POST", "", "x-account-meta-color", "swift:PutAccountMetadata"),
    (ACCOUNT, "POST", "", "x-remove-account-meta-color", "swift:PutAccountMetadata"),
    (ACCOUNT, "POST", "", "x-account-meta-temp-url-key-2", "swift:PutTempURLKeys"),
    (ACCOUNT, "POST", "", "x-remove-account-meta-temp-url-key", "swift:PutTempURLKeys"),
    (ACCOUNT, "POST", "", "x-account-access-control", "swift:PutAccountAcl"),
    (ACCOUNT, "POST", "", "x-account-meta-quota-bytes", "swift:PutAccountQuota"),
    (ACCOUNT, "POST", "", "x-account-quota-bytes-policy-gold", "swift:PutAccountQuota"),
    (ACCOUNT, "POST", "", "x-remove-account-quota-count", "swift:PutAccountQuota"),
    (ACCOUNT, "POST", "", "x-account-rfc-compliant-etags", "swift:PutAccountMetadata"),
    (ACCOUNT, "POST", "", "x-account-project-domain-id", "swift:PutAccountMetadata"),
    (ACCOUNT, "PUT", "", "x-account-meta-a", "swift:PutAccount swift:PutAccountMetadata"),
    (ACCOUNT, "POST", "reserve", "", "swift:CreateReservation"),
    (ACCOUNT, "POST", "reserve", "x-account-meta-a", "swift:CreateReservation swift:PutAccountMetadata"),
    (ACCOUNT, "DELETE", "", "", "swift:DeleteAccount"),
    (ACCOUNT, "OPTIONS", "", "", ""),
    (ACCOUNT, "REPLICATE", "", "", "swift:OtherRequest"),
    (CONTAINER, "GET", "", "", "s3:ListBucket"),
    (CONTAINER, "HEAD", "", "", "s3:ListBucket"),
    (CONTAINER, "GET", "versions", "", "s3:ListBucketVersions"),
    (CONTAINER, "HEAD", "versions", "", "s3:ListBucket"),
    (CONTAINER, "PUT", "", "", "s3:CreateBucket"),
    (CONTAINER, "PUT", "", "x-storage-policy", "s3:CreateBucket"),
    (CONTAINER, "PUT", "", "x-container-read", "s3:CreateBucket s3:PutBucketAcl"),
    (CONTAINER, "PUT", "", "x-container-meta-a", "s3:CreateBucket swift:PutContainerMetadata"),
    (CONTAINER, "POST", "", "", "swift:PutContainerMetadata"),
    (CONTAINER, "POST", "", "x-container-meta-a", "swift:PutContainerMetadata"),
    (CONTAINER, "POST", "", "x-container-read", "s3:PutBucketAcl"),
    (CONTAINER, "POST", "", "x-container-write", "s3:PutBucketAcl"),
    (CONTAINER, "POST", "", "x-remove-container-read", "s3:PutBucketAcl"),
    (
        CONTAINER,
        "POST",
        "",
        "x-container-read x-container-meta-a",
        "s3:PutBucketAcl swift:PutContainerMetadata",
    ),
    (CONTAINER, "POST", "", "x-container-sync-to", "swift:PutContainerSync"),
    (CONTAINER, "POST", "", "x-container-sync-key", "swift:PutContainerSync"),
    (CONTAINER, "POST", "", "x-container-meta-temp-url-key", "swift:PutTempURLKeys"),
    (CONTAINER, "POST", "", "x-container-meta-temp-url-key-2", "swift:PutTempURLKeys"),
    (CONTAINER, "POST", "", "x-versions-enabled", "s3:PutBucketVersioning"),
    (CONTAINER, "POST", "", "x-versions-location", "s3:PutBucketVersioning"),
    (CONTAINER, "POST", "", "x-remove-versions-location", "s3:PutBucketVersioning"),
    (CONTAINER, "POST", "", "x-history-location", "s3:PutBucketVersioning"),
    (CONTAINER, "POST", "", "x-container-meta-access-control-allow-origin", "s3:PutBucketCORS"),
    (CONTAINER, "POST", "", "x-container-meta-web-index", "s3:PutBucketWebsite"),
    (CONTAINER, "POST", "", "x-container-meta-quota-count", "swift:PutContainerQuota"),
    (CONTAINER, "POST", "", "x-container-sharding", "swift:PutContainerSharding"),
    (CONTAINER, "POST", "", "x-container-rfc-compliant-etags", "swift:PutContainerMetadata"),
    (CONTAINER, "DELETE", "", "", "s3:DeleteBucket"),
    (CONTAINER, "OPTIONS", "", "", ""),
    (CONTAINER, "UPDATE", "", "", "swift:OtherRequest"),
    (OBJECT, "GET", "", "", "s3:GetObject"),
    (OBJECT, "HEAD", "", "", "s3:GetObject"),
    (OBJECT, "GET", "version-id", "", "s3:GetObjectVersion"),
    (OBJECT, "HEAD", "version-id", "", "s3:GetObjectVersion"),
    (OBJECT, "GET", "multipart-manifest", "x-newest", "s3:GetObject"),
    (OBJECT, "PUT", "", "", "s3:PutObject"),
    (OBJECT, "PUT", "multipart-manifest", "", "s3:PutObject"),
    (OBJECT, "PUT", "upload-id", "", "s3:PutObject"),
    (OBJECT, "PUT", "version-id", "", "s3:PutObject s3:GetObjectVersion"),
    (OBJECT, "PUT", "", "x-object-meta-a x-delete-at x-copy-from", "s3:PutObject"),
    (OBJECT, "POST", "", "x-object-meta-a x-delete-after", "s3:PutObject"),
    (OBJECT, "DELETE", "", "", "s3:DeleteObject"),
    (OBJECT, "DELETE", "version-id", "", "s3:DeleteObjectVersion"),
    (OBJECT, "DELETE", "upload-id", "", "s3:AbortMultipartUpload"),
    (OBJECT, "DELETE", "multipart-manifest", "", "s3:DeleteObject"),
    (OBJECT, "COPY", "", "", "s3:GetObject"),
    (OBJECT, "COPY", "version-id", "", "s3:GetObjectVersion"),
    (OBJECT, "OPTIONS", "", "", ""),
    (OBJECT, "SSYNC", "", "", "swift:OtherRequest"),
]


def access(level, method, params="", headers=""):
    return swift_access(
        method, level, dict.fromkeys(params.split(), "x"), dict.fromkeys(headers.split(), "x")
    )


@pytest.mark.parametrize(("level", "method", "params", "headers", "actions"), REQUESTS)
def test_a_request_needs_its_actions(level, method, params, headers, actions):
    assert set(access(level, method, params, headers).actions) == set(actions.split())


def test_every_row_of_the_table_has_a_request_here():
    tried = [
        (level, method, set(params.split()), headers.split())
        for level, method, params, headers, _ in REQUESTS
    ]
    missing = [
        rule
        for rule in RULES
        if rule.action
        and not any(
            level is rule.level
            and method in rule.methods
            and (not rule.parameter or rule.parameter in params)
            and (
                not rule.header or any(h.replace("x-remove-", "x-").startswith(rule.header) for h in headers)
            )
            for level, method, params, headers in tried
        )
    ]
    assert not missing


def test_the_table_names_actions_that_there_are():
    named = {rule.action for rule in RULES if rule.action} | {GET_OWNER_HEADERS, PUT_OWNER_HEADERS}
    assert named <= set(ACTION_NAMES)


#: Headers of the specification by which no client changes something at the proxy: of responses, of log-in,
#: between servers, of all requests, of S3.
ELSEWHERE = re.compile(
    r"x-(backend|timestamp|trans-id|openstack|auth|storage-(user|pass|token|url)|user|tenant|project|roles|service"
    r"|identity|amz|put-timestamp|account-status|copied-from|manifest-etag|parts-count|if-delete-at|etag"
    r"|(account|container|object)-(sysmeta|transient|bytes-used|(object|container)-count|storage-policy|version-id"
    r"|current-version-id)|newest|open-expired|web-mode|allow-reserved-names|remove-$|container-sync-auth)"
)


def test_every_header_of_the_specification_has_a_row():
    text = "".join((SPEC / name).read_text() for name in ("public-api.md", "middleware.md"))
    names = {name.lower() for name in re.findall(r"\bX-[A-Z][A-Za-z0-9-]+", text)}
    rows = {rule.header for rule in RULES if rule.header}

    def has_row(name):
        if name.startswith("x-remove-"):
            name = "x-" + name.removeprefix("x-remove-")
        return any(name == row or (row.endswith("-") and f"{name}-".startswith(row)) for row in rows)

    assert len(names) > 80
    assert {name for name in names if not has_row(name) and not ELSEWHERE.match(name)} == set()


# --- rights of an owner -------------------------------------------------------------------------------


def test_every_header_of_owners_is_one_in_the_table():
    assert {rule.header for rule in RULES if rule.is_owner_header} == set(OWNER_HEADERS)


@pytest.mark.parametrize(
    ("level", "method", "headers", "owner_action"),
    [
        (ACCOUNT, "GET", "", GET_OWNER_HEADERS),
        (CONTAINER, "HEAD", "", GET_OWNER_HEADERS),
        (CONTAINER, "POST", "x-container-meta-a", PUT_OWNER_HEADERS),
        (CONTAINER, "POST", "x-container-read", ""),
        (CONTAINER, "PUT", "x-remove-container-write", ""),
        (ACCOUNT, "POST", "x-account-meta-temp-url-key", ""),
        (OBJECT, "PUT", "", PUT_OWNER_HEADERS),
    ],
)
def test_a_request_that_may_set_a_header_of_owners_sets_it(level, method, headers, owner_action):
    assert access(level, method, "", headers).owner_action == owner_action


@pytest.mark.parametrize("name", [fields.SYSMETA_VERSIONS_ENABLED, fields.SYSMETA_VERSIONS_LOCATION])
def test_a_header_that_a_filter_has_replaced_needs_the_same_action(name):
    for method in ("PUT", "POST"):
        assert "s3:PutBucketVersioning" in swift_access(method, CONTAINER, {}, {name: ""}).actions


#: The id of an upload.
UPLOAD = "Y2RiYmU2MmYtYjY0MS00YjE0LWE4ZGItZjE2OWI5ZTQzNmZi"

# --- resources ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "bucket", "key"),
    [
        (EntityPath("a"), "", ""),
        (EntityPath("a", "c"), "c", ""),
        (EntityPath("a", "c", "o/p"), "c", "o/p"),
        (EntityPath("a", "\0versions\0c", "\0o/p\0v123"), "c", "o/p"),
        (EntityPath("a", "\0segments\0c", "\0o\0id\0n1"), "c", "o"),
        (EntityPath("a", "c+segments"), "c", ""),
        (EntityPath("a", "c+segments", f"o/p/{UPLOAD}"), "c", "o/p"),
        (EntityPath("a", "c+COLD+segments", f"o/p/{UPLOAD}/12"), "c", "o/p"),
        (EntityPath("a", "c+segments", f"o/{UPLOAD}/1/{UPLOAD}/2"), "c", f"o/{UPLOAD}/1"),
        (EntityPath("a", "c+segments", "o/p"), "c", "o/p"),
        (EntityPath("a", "+segments", "o/p"), "+segments", "o/p"),
    ],
)
def test_what_is_hidden_belongs_to_what_clients_see(path, bucket, key):
    assert resource_of(path) == (bucket, key)


# --- values -------------------------------------------------------------------------------------------


def context(query="", path="a/c", headers=None, tags=dict, **more):
    request = Request("GET", f"/v1/{path}", headers or {}, query=query, remote_addr="10.1.2.3", **more)
    return SwiftContext(request, EntityPath(*path.split("/", 2)), tags)


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ("prefix=a/&delimiter=/&limit=10", "s3:prefix", "a/"),
        ("prefix=a/&delimiter=/&limit=10", "s3:delimiter", "/"),
        ("prefix=a/&delimiter=/&limit=10", "s3:max-keys", "10"),
        ("prefix=%C3%BC", "s3:prefix", "\u00fc"),
        ("limit=many", "s3:max-keys", None),
        ("", "s3:prefix", None),
        # The path overrides both: it must not show what the prefix hides.
        ("prefix=a/&path=secret", "s3:prefix", "secret/"),
        ("prefix=a/&path=secret//", "s3:prefix", "secret/"),
        ("prefix=a/&path=", "s3:prefix", ""),
        ("prefix=a/&delimiter=x&path=b", "s3:delimiter", "/"),
        ("version-id=7", "s3:versionid", "7"),
        ("", "s3:resourceaccount", "a"),
        ("", "aws:sourceip", "10.1.2.3"),
        ("", "aws:securetransport", "false"),
        ("", "aws:useragent", "curl"),
        ("", "aws:referer", None),
        ("", "aws:username", None),
        ("", "s3:existingobjecttag/team", None),
        ("", "s3:x-amz-acl", None),
    ],
)
def test_a_request_has_its_values(query, key, value):
    found = context(query, headers={"user-agent": "curl"}).values(key)
    assert found == (None if value is None else (value,))


def test_a_listing_of_an_account_has_no_path():
    assert context("prefix=a&path=b", "a").values("s3:prefix") == ("a",)


def test_an_object_has_no_values_of_a_listing():
    found = context("prefix=a", "a/c/o", {"if-match": "x"})
    assert found.values("s3:prefix") is None and found.values("s3:if-match") == ("x",)


def test_times_are_those_of_the_server():
    found = context(scheme="https")
    [seconds], [text] = found.values("aws:epochtime"), found.values("aws:currenttime")
    assert int(seconds) > 1_700_000_000 and text.endswith("Z")
    assert found.values("aws:securetransport") == ("true",)


def test_tags_of_an_object_are_read_once_and_only_if_asked_for():
    reads = []
    found = context(path="a/c/o", tags=lambda: reads.append(1) or {"Team": "red"})
    assert found.values("s3:prefix") is None and not reads
    assert found.values("s3:existingobjecttag/Team") == ("red",)
    assert found.values("s3:existingobjecttag/team") is None
    assert reads == [1]
