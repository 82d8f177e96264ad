"""Public access blocks and ownership controls of buckets."""

import pytest

NAMES = "BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"


def block(**choices):
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in choices.items())
    return f"<PublicAccessBlockConfiguration>{inner}</PublicAccessBlockConfiguration>".encode()


def controls(*kinds):
    rules = "".join(f"<Rule><ObjectOwnership>{kind}</ObjectOwnership></Rule>" for kind in kinds)
    return f"<OwnershipControls>{rules}</OwnershipControls>".encode()


def test_a_public_access_block_returns_all_its_settings(s3):
    path = "/bucket?publicAccessBlock"
    assert s3("GET", path).code == "NoSuchPublicAccessBlockConfiguration"
    assert s3("PUT", path, {}, block(BlockPublicAcls="TRUE", BlockPublicPolicy="false")).status == 200
    told = {element.tag: element.text for element in s3("GET", path).tree}
    assert told == dict.fromkeys(NAMES, "false") | {"BlockPublicAcls": "true"}
    assert s3("DELETE", path).status == 204
    assert s3("GET", path).code == "NoSuchPublicAccessBlockConfiguration"


def test_a_public_access_block_can_have_all_settings_off(s3):
    assert s3("PUT", "/bucket?publicAccessBlock", {}, block()).status == 200
    assert s3("GET", "/bucket?publicAccessBlock").texts("BlockPublicAcls") == ["false"]


@pytest.mark.parametrize("text", ["yes", "1", "", "truetrue"])
def test_settings_of_a_block_must_be_true_or_false(s3, text):
    response = s3("PUT", "/bucket?publicAccessBlock", {}, block(BlockPublicAcls=text))
    assert response.code == "MalformedXML"
    assert s3("GET", "/bucket?publicAccessBlock").code == "NoSuchPublicAccessBlockConfiguration"


def test_public_acls_are_refused_when_blocked(s3):
    s3("PUT", "/bucket?publicAccessBlock", {}, block(BlockPublicAcls="true"))
    assert s3("PUT", "/bucket?acl", {"x-amz-acl": "public-read"}).code == "AccessDenied"
    assert s3("PUT", "/bucket?acl", {"x-amz-acl": "private"}).status == 200


@pytest.mark.parametrize("kind", ["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"])
def test_ownership_controls_are_returned(s3, kind):
    path = "/bucket?ownershipControls"
    assert s3("GET", path).code == "OwnershipControlsNotFoundError"
    assert s3("PUT", path, {}, controls(kind)).status == 200
    assert s3("GET", path).texts("ObjectOwnership") == [kind]
    assert s3("DELETE", path).status == 204
    assert s3("GET", path).code == "OwnershipControlsNotFoundError"


@pytest.mark.parametrize("kinds", [(), ("Odd",), ("",), ("ObjectWriter", "ObjectWriter")])
def test_ownership_controls_need_one_known_rule(s3, kinds):
    assert s3("PUT", "/bucket?ownershipControls", {}, controls(*kinds)).code == "MalformedXML"


def test_acls_must_be_private_before_ownership_is_enforced(s3):
    assert s3("PUT", "/bucket?acl", {"x-amz-acl": "public-read"}).status == 200
    response = s3("PUT", "/bucket?ownershipControls", {}, controls("BucketOwnerEnforced"))
    assert response.code == "InvalidBucketAclWithObjectOwnership"
    s3("PUT", "/bucket?acl", {"x-amz-acl": "private"})
    assert s3("PUT", "/bucket?ownershipControls", {}, controls("BucketOwnerEnforced")).status == 200
    assert s3("PUT", "/bucket?acl", {"x-amz-acl": "public-read"}).code == "AccessControlListNotSupported"


@pytest.mark.parametrize("path", ["publicAccessBlock", "ownershipControls"])
def test_a_missing_bucket_has_neither_block_nor_controls(s3, path):
    body = block() if path == "publicAccessBlock" else controls("ObjectWriter")
    for method, data in (("GET", b""), ("PUT", body), ("DELETE", b"")):
        assert s3(method, f"/no-bucket?{path}", {}, data).code == "NoSuchBucket"
