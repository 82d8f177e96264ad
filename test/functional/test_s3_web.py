"""Features of the S3 API for browsers: CORS, web sites, forms."""

from hashlib import md5

import pytest

from test.functional.test_s3 import client_of, refused

ORIGIN = "http://page.example"


@pytest.fixture(scope="module")
def owner(site):
    return client_of(site)


@pytest.fixture
def bucket(owner, request):
    name = f"w-{md5(request.node.name.encode()).hexdigest()[:20]}"
    owner.create_bucket(Bucket=name)
    return name


def code(answer):
    return answer.status, answer.body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()


# --- other origins --------------------------------------------------------------------------------------

RULE = {
    "AllowedOrigins": [ORIGIN],
    "AllowedMethods": ["GET", "PUT"],
    "AllowedHeaders": ["x-amz-*"],
    "ExposeHeaders": ["ETag"],
    "MaxAgeSeconds": 60,
    "ID": "one",
}


def test_cors_rules_are_set_and_deleted(site, owner, bucket):
    with refused("NoSuchCORSConfiguration", 404):
        owner.get_bucket_cors(Bucket=bucket)
    owner.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [RULE]})
    assert owner.get_bucket_cors(Bucket=bucket)["CORSRules"] == [RULE]
    with refused("InvalidRequest", 400):
        owner.put_bucket_cors(
            Bucket=bucket, CORSConfiguration={"CORSRules": [{**RULE, "AllowedMethods": ["PATCH"]}]}
        )
    assert owner.get_bucket_cors(Bucket=bucket)["CORSRules"] == [RULE]
    with refused("AccessDenied", 403):
        client_of(site, "test:tester3").get_bucket_cors(Bucket=bucket)
    owner.delete_bucket_cors(Bucket=bucket)
    with refused("NoSuchCORSConfiguration", 404):
        owner.get_bucket_cors(Bucket=bucket)


def ask(site, path, method="PUT", origin=ORIGIN, names="x-amz-date"):
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": names,
    }
    return site.raw("OPTIONS", path, headers)


def test_cors_headers_are_sent_for_preflight_and_actual_requests(site, owner, bucket):
    owner.put_object(Bucket=bucket, Key="k", Body=b"v")
    owner.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [RULE]})
    for path in (f"/{bucket}/k", f"/AUTH_test:{bucket}/k"):
        response = ask(site, path)
        assert (response.status, response.body) == (200, b"")
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert response.headers["access-control-allow-methods"] == "GET, PUT"
        assert response.headers["access-control-allow-headers"] == "x-amz-date"
        assert response.headers["access-control-max-age"] == "60"
    assert code(ask(site, f"/{bucket}/k", "DELETE")) == (403, "AccessForbidden")
    assert code(ask(site, f"/{bucket}/k", origin="http://evil.example")) == (403, "AccessForbidden")
    assert code(ask(site, f"/{bucket}/k", names="x-other")) == (403, "AccessForbidden")
    assert code(ask(site, f"/{bucket}/k", "NONE")) == (400, "BadRequest")
    url = owner.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "k"}, ExpiresIn=60)
    link = url.removeprefix(f"http://{site.host}")
    assert ask(site, link, "GET").status == 200
    response = site.raw("GET", link, {"Origin": ORIGIN})
    assert (response.status, response.headers["access-control-allow-origin"]) == (200, ORIGIN)
    assert response.headers["access-control-expose-headers"] == "ETag"
    response = site.raw("GET", link, {"Origin": "http://evil.example"})
    assert (response.status, "access-control-allow-origin" in response.headers) == (200, False)
    missing = site.raw("GET", f"/{bucket}/nothing", {"Origin": ORIGIN})
    assert (missing.status, missing.headers["access-control-allow-origin"]) == (403, ORIGIN)


def test_a_bucket_without_cors_rules_sends_no_cors_headers(site, owner, bucket):
    response = ask(site, f"/{bucket}/k")
    assert "access-control-allow-origin" not in response.headers


# --- web sites ------------------------------------------------------------------------------------------


def public(owner, bucket):
    owner.put_bucket_acl(Bucket=bucket, ACL="public-read")


def page(site, bucket, path, method="GET"):
    return site.raw(method, path, {"Host": f"{bucket}.web.test"})


SITE = {
    "IndexDocument": {"Suffix": "index.html"},
    "ErrorDocument": {"Key": "error.html"},
    "RoutingRules": [
        {"Condition": {"KeyPrefixEquals": "old/"}, "Redirect": {"ReplaceKeyPrefixWith": "new/"}},
        {
            "Condition": {"HttpErrorCodeReturnedEquals": "404", "KeyPrefixEquals": "lost/"},
            "Redirect": {"HostName": "found.example", "Protocol": "https", "HttpRedirectCode": "302"},
        },
    ],
}


def test_a_web_site_configuration_is_set_and_deleted(site, owner, bucket):
    with refused("NoSuchWebsiteConfiguration", 404):
        owner.get_bucket_website(Bucket=bucket)
    owner.put_bucket_website(Bucket=bucket, WebsiteConfiguration=SITE)
    got = owner.get_bucket_website(Bucket=bucket)
    assert {name: got[name] for name in SITE} == SITE
    with refused("InvalidArgument", 400):
        owner.put_bucket_website(Bucket=bucket, WebsiteConfiguration={"IndexDocument": {"Suffix": "a/b"}})
    with refused("AccessDenied", 403):
        client_of(site, "test:tester3").get_bucket_website(Bucket=bucket)
    owner.delete_bucket_website(Bucket=bucket)
    with refused("NoSuchWebsiteConfiguration", 404):
        owner.get_bucket_website(Bucket=bucket)
    assert (page(site, bucket, "/").status, page(site, "nowhere", "/").status) == (404, 404)


def test_a_web_site_serves_its_pages(site, owner, bucket):
    public(owner, bucket)
    owner.put_bucket_website(Bucket=bucket, WebsiteConfiguration=SITE)
    for key in ("index.html", "folder/index.html", "new/page"):
        owner.put_object(Bucket=bucket, Key=key, Body=key.encode(), ContentType="text/html")
    assert page(site, bucket, "/").body == b"index.html"
    assert page(site, bucket, "/folder/").body == b"folder/index.html"
    assert page(site, bucket, "/new/page").headers["content-type"] == "text/html"
    head = page(site, bucket, "/", "HEAD")
    assert (head.status, head.headers["content-length"], head.body) == (200, "10", b"")
    moved = page(site, bucket, "/folder")
    assert (moved.status, moved.headers["location"]) == (302, f"http://{bucket}.web.test/folder/")
    moved = page(site, bucket, "/old/page")
    assert (moved.status, moved.headers["location"]) == (301, f"http://{bucket}.web.test/new/page")
    moved = page(site, bucket, "/lost/x%20y")
    assert (moved.status, moved.headers["location"]) == (302, "https://found.example/lost/x%20y")
    missing = page(site, bucket, "/<b>")
    assert (missing.status, b"<h1>404" in missing.body, b"<b>" in missing.body) == (404, True, False)
    owner.put_object(Bucket=bucket, Key="error.html", Body=b"sorry")
    missing = page(site, bucket, "/nothing")
    assert (missing.status, missing.body) == (404, b"sorry")
    assert page(site, bucket, "/", "PUT").status == 405


def test_a_web_site_does_not_serve_private_objects(site, owner, bucket):
    owner.put_bucket_website(Bucket=bucket, WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}})
    owner.put_object(Bucket=bucket, Key="index.html", Body=b"secret")
    response = page(site, bucket, "/")
    assert (response.status, b"secret" in response.body) == (403, False)


def test_a_web_site_can_redirect_to_another_host(site, owner, bucket):
    everything = {"RedirectAllRequestsTo": {"HostName": "elsewhere.example", "Protocol": "https"}}
    owner.put_bucket_website(Bucket=bucket, WebsiteConfiguration=everything)
    moved = page(site, bucket, "/a/b")
    assert (moved.status, moved.headers["location"]) == (301, "https://elsewhere.example/a/b")


# --- documents that say little --------------------------------------------------------------------------


def test_requester_pays_is_stored_and_requires_the_request_header(site, owner, bucket):
    assert owner.get_bucket_request_payment(Bucket=bucket)["Payer"] == "BucketOwner"
    public(owner, bucket)
    owner.put_object(Bucket=bucket, Key="k", Body=b"v")
    assert site.raw("GET", f"/{bucket}/k").status == 200
    owner.put_bucket_request_payment(Bucket=bucket, RequestPaymentConfiguration={"Payer": "Requester"})
    assert owner.get_bucket_request_payment(Bucket=bucket)["Payer"] == "Requester"
    assert code(site.raw("GET", f"/{bucket}/k")) == (403, "AccessDenied")
    assert owner.get_object(Bucket=bucket, Key="k")["Body"].read() == b"v"
    with refused("MalformedXML", 400):
        owner.put_bucket_request_payment(Bucket=bucket, RequestPaymentConfiguration={"Payer": "Nobody"})
    owner.put_bucket_request_payment(Bucket=bucket, RequestPaymentConfiguration={"Payer": "BucketOwner"})
    assert site.raw("GET", f"/{bucket}/k").status == 200


# --- forms ----------------------------------------------------------------------------------------------


def form_of(post, data, *, name="a b.txt", more=(), drop=(), kind="text/x-file"):
    """Return the request body that a browser makes of a signed form."""
    fields = {**post["fields"], **dict(more)}
    parts = [
        f'--B\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{text}\r\n'.encode()
        for field, text in fields.items()
        if field not in drop
    ]
    head = f'--B\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    head += f"Content-Type: {kind}\r\n" if kind else ""
    return b"".join(parts) + head.encode() + b"\r\n" + data + b"\r\n--B--\r\n"


def send(site, path, body):
    return site.raw("POST", path, {"Content-Type": "multipart/form-data; boundary=B"}, body)


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_a_form_uploads_its_file(site, owner, bucket, version):
    s3 = client_of(site, signature_version=version)
    fields = {"acl": "private", "x-amz-meta-colour": "red", "Content-Type": "text/x-said"}
    conditions = [{name: text} for name, text in fields.items()] + [["content-length-range", 1, 100]]
    post = s3.generate_presigned_post(bucket, "in/${filename}", Fields=fields, Conditions=conditions)
    response = send(site, f"/{bucket}", form_of(post, b"hello", name="C:\\x\\a b.txt"))
    assert (response.status, response.body) == (204, b"")
    got = owner.get_object(Bucket=bucket, Key="in/a b.txt")
    assert (got["Body"].read(), got["ContentType"], got["Metadata"]) == (
        b"hello",
        "text/x-said",
        {"colour": "red"},
    )
    assert response.headers["etag"] == got["ETag"]
    assert code(send(site, f"/{bucket}", form_of(post, b""))) == (400, "EntityTooSmall")
    assert code(send(site, f"/{bucket}", form_of(post, b"x" * 101))) == (400, "EntityTooLarge")
    assert owner.get_object(Bucket=bucket, Key="in/a b.txt")["Body"].read() == b"hello"


def test_a_form_chooses_the_status_of_its_response(site, owner, bucket):
    def post(**fields):
        made = owner.generate_presigned_post(
            bucket, "k", Fields=fields, Conditions=[{name: text} for name, text in fields.items()]
        )
        return send(site, f"/{bucket}", form_of(made, b"v"))

    response = post(success_action_status="201")
    assert (response.status, b"<Key>k</Key>" in response.body) == (201, True)
    assert post(success_action_status="200").status == 200
    assert post(success_action_status="500").status == 204
    response = post(success_action_redirect="http://done.example/?a=b")
    assert response.status == 303
    assert response.headers["location"].startswith(f"http://done.example/?a=b&bucket={bucket}&key=k&etag=")
    assert post(success_action_redirect="javascript:alert(1)").status == 204
    response = post(tagging="<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>")
    assert response.status == 204
    assert owner.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == [{"Key": "a", "Value": "b"}]


def test_a_form_with_an_invalid_signature_stores_nothing(site, owner, bucket):
    signer = client_of(site, signature_version="s3v4")
    post = signer.generate_presigned_post(bucket, "user/k", ExpiresIn=60)
    for more, expected in (
        ({"key": "other"}, (403, "AccessDenied")),
        ({"acl": "public-read"}, (403, "AccessDenied")),
        ({"x-amz-meta-a": "b"}, (403, "AccessDenied")),
        ({"x-amz-signature": "0" * 64}, (403, "SignatureDoesNotMatch")),
        ({"policy": post["fields"]["policy"][:-8]}, (403, "SignatureDoesNotMatch")),
        ({"x-amz-credential": "x/y"}, (400, "InvalidArgument")),
        ({"bucket": "other"}, (400, "InvalidArgument")),
        ({"key": ""}, (400, "UserKeyMustBeSpecified")),
    ):
        assert code(send(site, f"/{bucket}", form_of(post, b"v", more=more.items()))) == expected, more
    for name in ("policy", "x-amz-signature", "x-amz-credential", "x-amz-date", "x-amz-algorithm"):
        response = send(site, f"/{bucket}", form_of(post, b"v", drop=(name,)))
        assert response.status in (400, 403), name
    other = owner.generate_presigned_post("another", "user/k", ExpiresIn=60)
    assert code(send(site, f"/{bucket}", form_of(other, b"v"))) == (403, "AccessDenied")
    weak = client_of(site, "test:tester3").generate_presigned_post(bucket, "user/k")
    assert code(send(site, f"/{bucket}", form_of(weak, b"v"))) == (403, "AccessDenied")
    old = owner.generate_presigned_post(bucket, "user/k", ExpiresIn=-5)
    assert code(send(site, f"/{bucket}", form_of(old, b"v"))) == (403, "AccessDenied")
    assert "Contents" not in owner.list_objects_v2(Bucket=bucket)


def test_a_form_without_a_policy_is_anonymous(site, owner, bucket):
    nobody = {"fields": {"key": "k"}}
    assert code(send(site, f"/{bucket}", form_of(nobody, b"v"))) == (403, "AccessDenied")
    policy = (
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:PutObject",'
        f'"Resource":"arn:aws:s3:::{bucket}/public/*"}}]}}'
    )
    owner.put_bucket_policy(Bucket=bucket, Policy=policy)
    assert code(send(site, f"/{bucket}", form_of(nobody, b"v"))) == (403, "AccessDenied")
    assert send(site, f"/{bucket}", form_of({"fields": {"key": "public/k"}}, b"v")).status == 204
    assert owner.get_object(Bucket=bucket, Key="public/k")["Body"].read() == b"v"


def test_a_malformed_form_stores_nothing(site, owner, bucket):
    post = owner.generate_presigned_post(bucket, "k")
    good = form_of(post, b"v" * 1000)
    for body in (
        b"",
        b"--B--\r\n",
        good[:-20],
        good[: len(good) // 3],
        good.replace(b"--B", b"--C"),
        b"\x00" * 500,
    ):
        assert 400 <= send(site, f"/{bucket}", body).status < 500
    large = form_of(post, b"v", more={"x-ignore-this": "x" * 70_000}.items())
    assert code(send(site, f"/{bucket}", large)) == (400, "MaxPostPreDataLengthExceededError")
    twice = good.replace(
        b"--B\r\n", b'--B\r\nContent-Disposition: form-data; name="key"\r\n\r\nx\r\n--B\r\n', 1
    )
    assert code(send(site, f"/{bucket}", twice)) == (400, "InvalidArgument")
    assert "Contents" not in owner.list_objects_v2(Bucket=bucket)


def test_a_large_file_of_a_form_is_streamed(site, owner, bucket):
    data = bytes(range(256)) * (40 << 10)
    post = owner.generate_presigned_post(bucket, "large")
    assert send(site, f"/{bucket}", form_of(post, data)).status == 204
    assert owner.get_object(Bucket=bucket, Key="large")["Body"].read() == data
