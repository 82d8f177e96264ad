"""Callers whom policies allow and deny, through every operation of the S3 API."""

import base64
import hashlib
import json

import pytest
from botocore.config import Config
from botocore.session import Session

from swift.http.request import Request
from swift.http.response import Response
from swift.runtime.wsgi import response_or_error
from test.support.identity import RightsAuth, named_policy, rights_of
from test.support.s3_fixtures import OTHER, STRANGER, Multipart, S3Cluster

BUCKET, KEYS = "arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"
CORS = (
    b"<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin>"
    b"</CORSRule></CORSConfiguration>"
)


class Front:
    """The S3 API for a user that is no owner, and its rights."""

    def __init__(self, sim, **options):
        self.s3 = S3Cluster(sim, auth=RightsAuth, **options)
        # The owner sets things up.
        self.owner = self.s3
        for path in ("/bucket", "/other"):
            assert self.s3("PUT", path).status == 200
        for path in ("/bucket/key", "/bucket/secret", "/other/key"):
            assert self.s3("PUT", path, {}, b"data").status == 200

    def may(self, *statements, **more):
        """Give the user a policy; nothing else."""
        policies = (named_policy(*statements),) if statements else ()
        self.s3.auth.rights = {"test:tester3": rights_of("test", "tester3", *policies, **more)}

    def __call__(self, method, path, headers=None, body=b"", **how):
        return self.s3(method, path, headers, body, **(how or OTHER))

    def set_policy(self, *statements):
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)}).encode()
        assert self.s3("PUT", "/bucket?policy", {}, document).status == 204


@pytest.fixture
def front(sim):
    return Front(sim)


def refused(answer):
    return answer.status == 403 and (not answer.body or answer.code == "AccessDenied")


def delete_keys(front, *names, headers=None):
    objects = "".join(f"<Object><Key>{name}</Key></Object>" for name in names)
    body = f"<Delete>{objects}</Delete>".encode()
    digest = base64.b64encode(hashlib.md5(body).digest()).decode()
    return front("POST", "/bucket?delete", {"content-md5": digest, **(headers or {})}, body)


# --- objects ------------------------------------------------------------------------------------------


def test_a_policy_of_the_caller_is_enough_in_its_account(front):
    front.may()
    assert refused(front("GET", "/bucket/key"))
    front.may({"Action": "s3:GetObject", "Resource": KEYS})
    assert front("GET", "/bucket/key").body == b"data"
    assert front("HEAD", "/bucket/key").status == 200
    assert refused(front("GET", "/other/key")) and refused(front("PUT", "/bucket/key", {}, b"x"))
    front.may(
        {"Action": "s3:*", "Resource": KEYS}, {"Effect": "Deny", "Action": "*", "Resource": f"{BUCKET}/s*"}
    )
    assert front("PUT", "/bucket/new", {}, b"x").status == 200
    assert refused(front("GET", "/bucket/secret")) and refused(front("DELETE", "/bucket/secret"))
    assert front("DELETE", "/bucket/key").status == 204


def test_variables_make_homes(front):
    front.may({"Action": "s3:*", "Resource": f"{BUCKET}/${{aws:username}}/*"})
    assert front("PUT", "/bucket/tester3/x", {}, b"x").status == 200
    assert refused(front("PUT", "/bucket/tester2/x", {}, b"x"))


def test_a_listing_is_limited_to_a_prefix(front):
    front.may(
        {"Action": "s3:ListBucket", "Resource": BUCKET, "Condition": {"StringLike": {"s3:prefix": "k*"}}}
    )
    assert front("GET", "/bucket?list-type=2&prefix=ke").texts("Key") == ["key"]
    assert refused(front("GET", "/bucket?list-type=2")) and refused(front("HEAD", "/bucket"))


def test_policies_ask_for_tags_of_the_object(front):
    owner = front.owner("PUT", "/bucket/red", {"x-amz-tagging": "team=red"}, b"red")
    assert owner.status == 200
    tagged = {"StringEquals": {"s3:ExistingObjectTag/team": "red"}}
    front.may({"Action": "s3:GetObject", "Resource": KEYS, "Condition": tagged})
    assert front("GET", "/bucket/red").body == b"red"
    assert refused(front("GET", "/bucket/key"))


def test_what_an_upload_sets_needs_its_own_action(front):
    front.may({"Action": "s3:PutObject", "Resource": KEYS})
    assert refused(front("PUT", "/bucket/key", {"x-amz-tagging": "a=b"}, b"x"))
    front.may({"Action": ["s3:PutObject", "s3:PutObjectTagging"], "Resource": KEYS})
    assert front("PUT", "/bucket/key", {"x-amz-tagging": "a=b"}, b"x").status == 200


def test_each_key_of_a_deletion_is_decided_by_itself(front):
    front.may(
        {"Action": "s3:DeleteObject", "Resource": KEYS},
        {"Effect": "Deny", "Action": "s3:*", "Resource": f"{BUCKET}/secret"},
    )
    answer = delete_keys(front, "key", "secret")
    assert answer.texts("Key") == ["key", "secret"] and answer.texts("Code") == ["AccessDenied"]
    bypass = {"x-amz-bypass-governance-retention": "true"}
    assert delete_keys(front, "key", "secret", headers=bypass).texts("Code") == ["AccessDenied"] * 2


def test_a_copy_needs_rights_at_both_ends(front):
    source = {"x-amz-copy-source": "/other/key"}
    put = {"Action": "s3:PutObject", "Resource": KEYS}
    front.may(put)
    assert refused(front("PUT", "/bucket/copy", source))
    front.may(put, {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::other/*"})
    assert front("PUT", "/bucket/copy", source).status == 200
    front.may({"Action": "s3:GetObject", "Resource": "*"})
    assert refused(front("PUT", "/bucket/copy", source))
    front.may({"Action": "*", "Resource": "*"}, {"Effect": "Deny", "Action": "s3:Get*", "Resource": "*"})
    assert refused(front("PUT", "/bucket/copy", source))


def test_a_multipart_upload_needs_no_rights_in_the_containers_of_parts(front):
    front.may({"Action": ["s3:PutObject", "s3:AbortMultipartUpload"], "Resource": KEYS})
    upload = Multipart(lambda *args: front(*args), "/bucket/large")
    assert upload.part(1, b"part").status == 200
    assert upload.complete((1, b"part")).status == 200
    assert Multipart(lambda *args: front(*args), "/bucket/large").abort().status == 204
    assert refused(front("GET", "/bucket/large"))


def test_a_policy_is_no_reason_to_follow_a_link_out_of_the_bucket(front):
    link = Request(
        "PUT", "/v1/AUTH_test/bucket/link", {"x-symlink-target": "other/key", "content-length": "0"}
    )
    link.env["swift.cache"] = front.s3.sim.cache
    assert front.s3.app.handle(link).status == 201
    here = {"Action": "s3:GetObject", "Resource": KEYS}
    front.may(here)
    assert refused(front("GET", "/bucket/link"))
    front.may(here, {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::other/key"})
    assert front("GET", "/bucket/link").body == b"data"
    # An ACL opens the link, but no limit of the caller passes for its target.
    acl = {"x-container-read": "test:tester3"}
    for bucket in ("bucket", "other"):
        assert front.s3.sim("POST", f"/AUTH_test/{bucket}", acl).status == 204
    front.s3.sim.cache.values.clear()
    front.may()
    assert front("GET", "/bucket/link").body == b"data"
    front.may(boundaries=(named_policy(here),))
    assert refused(front("GET", "/bucket/link"))


# --- accounts and buckets -----------------------------------------------------------------------------


def test_buckets_are_listed_and_created_by_policies(front):
    front.may()
    assert refused(front("GET", "/")) and refused(front("PUT", "/new"))
    front.may({"Action": ["s3:ListAllMyBuckets", "s3:CreateBucket"], "Resource": "arn:aws:s3:::*"})
    listing = front("GET", "/")
    assert set(listing.texts("Name")) >= {"bucket", "other"} and listing.texts("ID") == ["test:tester3"]
    assert front("PUT", "/new").status == 200
    assert refused(front("PUT", "/newer", {"x-amz-acl": "public-read"}))
    front.may({"Action": "s3:*", "Resource": "*"}, {"Effect": "Deny", "Action": "s3:List*", "Resource": "*"})
    assert refused(front("GET", "/")) and refused(front("GET", "/bucket"))
    assert front("DELETE", "/new").status == 204


def test_values_that_only_s3_knows_count_for_the_account_too(front):
    signed = {"StringEquals": {"s3:authType": "REST-HEADER"}}
    front.may({"Action": "s3:ListAllMyBuckets", "Resource": "*", "Condition": signed})
    assert front("GET", "/").status == 200


def test_denials_hold_for_owners(front):
    front.may({"Effect": "Deny", "Action": "s3:DeleteBucket", "Resource": "*"}, is_owner=True)
    assert refused(front("DELETE", "/other"))
    assert front("GET", "/other/key").status == 200 and front("GET", "/").status == 200
    front.may(is_owner=True)
    assert front("DELETE", "/other/key").status == 204


# --- configurations -----------------------------------------------------------------------------------


DENIAL = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": KEYS}
VERSIONING = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
TAGGING = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
DEFAULT = (
    b"<ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>"
    b"</ApplyServerSideEncryptionByDefault>"
)


@pytest.mark.parametrize(
    ("query", "action", "body", "status"),
    [
        ("cors", "s3:PutBucketCORS", CORS, 200),
        ("versioning", "s3:PutBucketVersioning", VERSIONING, 200),
        ("tagging", "s3:PutBucketTagging", TAGGING, 204),
        ("policy", "s3:PutBucketPolicy", json.dumps({"Statement": DENIAL}).encode(), 204),
        # There is no encryption here.
        (
            "encryption",
            "s3:PutEncryptionConfiguration",
            b"<ServerSideEncryptionConfiguration><Rule>"
            + DEFAULT
            + b"</Rule></ServerSideEncryptionConfiguration>",
            501,
        ),
    ],
)
def test_a_bucket_is_configured_by_those_whom_policies_allow_it(front, query, action, body, status):
    path = f"/bucket?{query}"
    front.may({"Action": "s3:GetObject", "Resource": "*"})
    assert refused(front("PUT", path, {}, body))
    # The right to set metadata of containers in the Swift API gives none in S3.
    front.may({"Action": ["swift:*", "s3:ListBucket"], "Resource": "*"})
    assert refused(front("PUT", path, {}, body))
    front.may({"Action": action, "Resource": BUCKET})
    assert front("PUT", path, {}, body).status == status


def test_acls_of_a_bucket_are_set_by_policies(front):
    front.may({"Action": "s3:PutBucketAcl", "Resource": BUCKET})
    assert front("PUT", "/bucket?acl", {"x-amz-acl": "public-read"}).status == 200
    assert front.s3("GET", "/bucket?acl").texts("URI") == ["http://acs.amazonaws.com/groups/global/AllUsers"]


def test_a_bucket_policy_is_never_a_right_to_change_it(front):
    front.set_policy({"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": [BUCKET, KEYS]})
    front.may()
    assert front("GET", "/bucket/key").status == 200
    assert refused(front("GET", "/bucket?policy")) and refused(front("DELETE", "/bucket?policy"))
    front.may({"Action": "s3:GetBucketPolicy", "Resource": BUCKET})
    assert front("GET", "/bucket?policy").status == 200
    # A policy that denies everything to all callers is removed by the owner.
    front.set_policy({"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": [BUCKET, KEYS]})
    front.may(is_owner=True)
    assert refused(front("GET", "/bucket/key"))
    assert front("DELETE", "/bucket?policy").status == 204
    assert front("GET", "/bucket/key").status == 200


def test_the_target_of_logs_is_a_bucket_whose_policy_the_caller_may_set(front):
    target = (
        "<LoggingEnabled><TargetBucket>other</TargetBucket><TargetPrefix>x</TargetPrefix></LoggingEnabled>"
    )
    body = f"<BucketLoggingStatus>{target}</BucketLoggingStatus>".encode()
    front.may({"Action": "s3:*", "Resource": BUCKET})
    assert front("PUT", "/bucket?logging", {}, body).code == "InvalidTargetBucketForLogging"
    front.may({"Action": "s3:*", "Resource": [BUCKET, "arn:aws:s3:::other"]})
    assert front("PUT", "/bucket?logging", {}, body).status == 200


# --- policies of buckets, ACLs, boundaries ------------------------------------------------------------


def test_policies_of_buckets_name_groups(front):
    group = {"AWS": "arn:aws:iam::test:group/staff"}
    front.set_policy({"Effect": "Allow", "Principal": group, "Action": "s3:GetObject", "Resource": KEYS})
    front.may()
    assert refused(front("GET", "/bucket/key"))
    front.may(groups=("staff",))
    assert front("GET", "/bucket/key").status == 200
    assert refused(front("GET", "/other/key"))


def test_policies_of_buckets_ask_for_values_of_the_caller(front):
    condition = {"StringEquals": {"aws:userid": "test:tester3", "aws:PrincipalType": "User"}}
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": KEYS}
    front.set_policy({**statement, "Condition": condition})
    front.may()
    assert front("GET", "/bucket/key").status == 200


def test_acls_decide_when_policies_are_silent(front):
    assert front.s3.sim("POST", "/AUTH_test/bucket", {"x-container-read": "test:tester3"}).status == 204
    front.s3.sim.cache.values.clear()
    front.may({"Action": "s3:PutObject", "Resource": "arn:aws:s3:::other/*"})
    assert front("GET", "/bucket/key").status == 200
    assert refused(front("PUT", "/bucket/key", {}, b"x"))
    front.may({"Effect": "Deny", "Action": "s3:*", "Resource": KEYS})
    assert refused(front("GET", "/bucket/key"))
    limit = named_policy({"Action": "s3:*", "Resource": "arn:aws:s3:::other*"}, name="limit")
    front.may(boundaries=(limit,))
    assert refused(front("GET", "/bucket/key"))


def test_boundaries_hold_for_owners(front):
    limit = named_policy({"Action": "s3:GetObject", "Resource": KEYS}, name="limit")
    for standing in ({"is_owner": True}, {"is_operator": True}):
        front.may(boundaries=(limit,), **standing)
        assert front("GET", "/bucket/key").status == 200
        for method, path in (("GET", "/other/key"), ("PUT", "/bucket/key"), ("GET", "/"), ("PUT", "/new")):
            assert refused(front(method, path)), (method, path)


def test_another_account_needs_both_sides(front):
    front.s3.auth.rights = {"test2:stranger": rights_of("test2", "stranger")}
    path = "/AUTH_test%3Abucket/key"
    front.set_policy({"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": KEYS})
    assert refused(front("GET", path, **STRANGER))
    own_side = named_policy({"Action": "s3:*", "Resource": "arn:aws:s3:::AUTH_test:bucket/*"})
    front.s3.auth.rights = {"test2:stranger": rights_of("test2", "stranger", own_side)}
    assert front("GET", path, **STRANGER).status == 200
    assert refused(front("PUT", path, **STRANGER)) and refused(
        front("GET", "/AUTH_test%3Aother/key", **STRANGER)
    )


def test_policies_decide_before_acls_of_s3(sim):
    front = Front(sim, s3_acl="true")
    front.may({"Action": "s3:*", "Resource": [BUCKET, KEYS]})
    assert front("GET", "/bucket/key").status == 200 and front("PUT", "/bucket/mine", {}, b"x").status == 200
    assert front("PUT", "/bucket?cors", {}, CORS).status == 200
    assert refused(front("GET", "/other/key"))
    front.may(is_owner=True)
    assert front("GET", "/other/key").status == 200 and front("DELETE", "/other/key").status == 204
    acl = front.s3("GET", "/bucket/mine?acl")
    assert acl.status == 403 or "test:tester3" in acl.texts("ID")


def test_keys_are_deleted_by_policies_where_acls_of_s3_count(sim):
    front = Front(sim, s3_acl="true")
    front.may({"Action": "s3:DeleteObject", "Resource": f"{BUCKET}/key"})
    answer = delete_keys(front, "key", "secret")
    assert answer.texts("Key") == ["key", "secret"] and answer.texts("Code") == ["AccessDenied"]
    assert front.s3("HEAD", "/bucket/key").status == 404 and front.s3("HEAD", "/bucket/secret").status == 200


# --- forms --------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_form_is_decided_by_the_policies_of_its_signer(front):
    client = Session().create_client(
        "s3",
        endpoint_url="http://h",
        config=Config(signature_version="s3v4"),
        aws_access_key_id="test:tester3",
        aws_secret_access_key="testing3",
        region_name="us-east-1",
    )

    def post(key):
        fields = client.generate_presigned_post("bucket", key)["fields"]
        texts = [
            f'--B\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in fields.items()
        ]
        file = '--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\ndata\r\n--B--\r\n'
        kind = {"content-type": "multipart/form-data; boundary=B"}
        return front.s3.raw("POST", "/bucket", kind, ("".join(texts) + file).encode())

    front.may({"Action": "s3:PutObject", "Resource": f"{BUCKET}/in/*"})
    assert post("in/x").status == 204
    assert refused(post("out/x"))
    assert front.s3("HEAD", "/bucket/out/x").status == 404


# --- what filters read for a request ------------------------------------------------------------------


def put_link(front, path, target):
    """Store a link, as a user of the Swift API can."""
    env = {"swift.cache": front.s3.sim.cache, "swift.trans_id": "tx1"}
    headers = {"host": "h", "content-length": "0", "x-symlink-target": target}
    request = Request("PUT", f"/v1/AUTH_test{path}", headers, b"", env=env)
    assert response_or_error(front.s3.app.handle, request).status == 201


@pytest.mark.parametrize("is_allowed_by_acl", [False, True])
def test_a_link_does_not_lead_round_a_denial_in_its_own_bucket(front, is_allowed_by_acl):
    put_link(front, "/bucket/link", "bucket/secret")
    put_link(front, "/bucket/right", "bucket/key")
    denial = {"Effect": "Deny", "Action": "*", "Resource": f"{BUCKET}/secret"}
    if is_allowed_by_acl:
        grant = {"x-amz-grant-read": 'id="test:tester3"', "x-amz-grant-write": 'id="test:tester3"'}
        assert front.owner("PUT", "/bucket?acl", grant).status == 200
        front.may(denial)
    else:
        front.may({"Action": "s3:*", "Resource": KEYS}, denial)
    assert front("GET", "/bucket/right").body == b"data"
    assert refused(front("GET", "/bucket/link"))
    assert refused(front("PUT", "/bucket/copy", {"x-amz-copy-source": "/bucket/link"}))


def test_parts_of_an_object_belong_to_it_and_not_to_another(front):
    front.may({"Action": "s3:*", "Resource": [BUCKET, f"{BUCKET}/mine*"]})
    for path in ("/bucket/mine", "/bucket/mine/below"):
        upload = Multipart(front, path)
        assert upload.complete((1, upload.part(1, b"part").headers["etag"])).status == 200
        assert front("GET", path).body == b"part"
    upload = Multipart(front.owner, "/bucket/other")
    assert upload.complete((1, upload.part(1, b"part").headers["etag"])).status == 200
    put_link(front, "/bucket/mine-too", f"bucket+segments/other/{upload.id}/1")
    assert refused(front("GET", "/bucket/mine-too"))
    assert front("DELETE", "/bucket/mine").status == 204
    assert front.s3.names("bucket+segments") != []


def test_unreadable_tags_do_not_pass_a_denial(front):
    tagged = {"StringEquals": {"s3:ExistingObjectTag/class": "secret"}}
    denial = {"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": tagged}
    front.may({"Action": "s3:*", "Resource": KEYS}, denial)

    def fail(request):
        if request.method == "HEAD" and request.raw_path.endswith("/bucket/key"):
            return Response(503)
        return None

    front.s3.bottom.instead = fail
    assert front("DELETE", "/bucket/key").status == 503


def test_a_buckets_policy_denies_its_change_to_users_and_not_to_owners(front):
    front.set_policy({"Effect": "Deny", "Principal": "*", "Action": "s3:*BucketPolicy", "Resource": BUCKET})
    front.may({"Action": "s3:*", "Resource": "*"})
    for method in ("GET", "DELETE"):
        assert refused(front(method, "/bucket?policy"))
    front.may(is_owner=True)
    assert front("GET", "/bucket?policy").status == 200
    assert front("DELETE", "/bucket?policy").status == 204
