"""Which actions of policies a request needs."""

import pytest

from swift.identity.policy.actions import ACTIONS
from swift.s3.core.router import OPERATIONS
from swift.s3.policy.actions import action_of, actions_of


def test_every_operation_has_an_action_that_policies_may_name():
    for operation in OPERATIONS:
        for versioned in (False, True):
            assert action_of(operation, versioned=versioned).lower() in ACTIONS


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("HeadObject", "s3:GetObject"),
        ("CopyObject", "s3:PutObject"),
        ("CreateMultipartUpload", "s3:PutObject"),
        ("DeleteObjects", "s3:DeleteObject"),
        ("ListParts", "s3:ListMultipartUploadParts"),
        ("DeleteBucketLifecycle", "s3:PutLifecycleConfiguration"),
    ],
)
def test_operations_that_do_the_same_need_the_same(operation, action):
    assert action_of(operation) == action


def test_a_version_of_an_object_has_an_action_of_its_own():
    assert actions_of("GetObject", {"versionId": "1"}, {}) == ("s3:GetObjectVersion",)
    assert actions_of("DeleteObject", {"versionId": "1"}, {}) == ("s3:DeleteObjectVersion",)
    assert actions_of("PutObject", {"versionId": "1"}, {}) == ("s3:PutObject",)


@pytest.mark.parametrize(
    ("headers", "more"),
    [
        ({"x-amz-acl": "private"}, "s3:PutObjectAcl"),
        ({"x-amz-grant-read": "id=a"}, "s3:PutObjectAcl"),
        ({"x-amz-tagging": "a=b"}, "s3:PutObjectTagging"),
        ({"x-amz-object-lock-mode": "COMPLIANCE"}, "s3:PutObjectRetention"),
        ({"x-amz-object-lock-legal-hold": "ON"}, "s3:PutObjectLegalHold"),
    ],
)
def test_what_is_set_beside_the_bytes_needs_its_own_permission(headers, more):
    assert actions_of("PutObject", {}, headers) == ("s3:PutObject", more)
    assert actions_of("UploadPart", {}, headers) == ("s3:PutObject",), "a part sets nothing"


@pytest.mark.parametrize("said", ["true", "True"])
def test_passing_governance_by_is_asked_for(said):
    found = actions_of("DeleteObject", {}, {"x-amz-bypass-governance-retention": said})
    assert found == ("s3:DeleteObject", "s3:BypassGovernanceRetention")
    assert actions_of("DeleteObject", {}, {"x-amz-bypass-governance-retention": "false"}) == found[:1]


def test_attributes_are_no_way_around_the_permission_to_read():
    found = actions_of("GetObjectAttributes", {"versionId": "1"}, {})
    assert found == ("s3:GetObjectVersionAttributes", "s3:GetObjectVersion")


@pytest.mark.parametrize(
    "operation", ["GetObjectAcl", "PutObjectAcl", "GetObjectTagging", "DeleteObjectTagging"]
)
def test_versions_are_named_as_amazon_names_them(operation):
    expected = "s3:" + operation.replace("Object", "ObjectVersion")
    assert action_of(operation, versioned=True) == expected
