"""The ways of people through the console, with Chromium; the API confirms each."""

import json
import re

import pytest
from botocore.exceptions import ClientError

from test.console.conftest import KEY, s3_client
from test.support.chromium import needs_chromium

pytestmark = [pytest.mark.process, needs_chromium]
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "\u202egnp.exe",
    "../../etc/passwd",
    "a//b",
    "a?b#c%2F&d=+",
    "tab\there",
    "\N{GRINNING FACE}",
    "x" * 1024,
]
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c626001000000ffff03000006000557bfabd40000000049454e44ae426082"
)


@pytest.fixture
def bucket(s3, request):
    """A bucket of the test."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-")
    s3.create_bucket(Bucket=name)
    return name


def go(page, cluster, path):
    response = page.goto(f"{cluster.plan.url}/console{path}")
    assert response.status < 400, page.inner_text("main")
    page.wait_for_load_state()


def body_of(s3, bucket, key):
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def upload(page, *files):
    page.locator("#uploads input[type=file]").first.set_input_files(list(files))


def wait_until(page, holds):
    """Wait until the API says what is expected, for half a minute."""
    for _ in range(150):
        if holds():
            return
        page.wait_for_timeout(200)
    raise AssertionError(page.inner_text("main"))


def is_refused(client):
    try:
        client.list_buckets()
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    return False


def a_file(name, data, kind="text/plain"):
    return {"name": name, "mimeType": kind, "buffer": data}


def test_a_bucket_is_made_filled_looked_into_and_emptied(cluster, visit, s3, picture):
    page = visit()
    page.fill("form[action$='/buckets/make'] [name=bucket]", "holiday-photos")
    page.click("form[action$='/buckets/make'] button")
    page.wait_for_url("**/browse?bucket=holiday-photos*")
    upload(
        page,
        a_file("beach.png", PIXEL, "image/png"),
        a_file("notes.txt", b"sun and sand"),
        a_file("empty", b""),
    )
    page.locator("#listing tbody tr").nth(2).wait_for(timeout=60_000)
    assert body_of(s3, "holiday-photos", "beach.png") == PIXEL
    assert body_of(s3, "holiday-photos", "empty") == b""
    picture(page, "browse")
    page.click("text=notes.txt")
    page.wait_for_selector("iframe.preview")
    assert "sun and sand" in page.frame_locator("iframe.preview").locator("body").inner_text()
    with page.expect_download() as download:
        page.click("a[href*='/download?']")
    assert download.value.suggested_filename == "notes.txt"
    go(page, cluster, "/object?bucket=holiday-photos&name=beach.png")
    assert page.evaluate("document.querySelector('img.preview').naturalWidth") == 1
    picture(page, "object")
    go(page, cluster, "/delete?bucket=holiday-photos")
    page.click("main form button.danger")
    wait_until(page, lambda: "Contents" not in s3.list_objects_v2(Bucket="holiday-photos"))


def test_a_large_file_is_uploaded_in_parts(cluster, visit, s3, bucket, tmp_path):
    data = bytes(range(256)) * (40 << 12)
    path = tmp_path / "large.bin"
    path.write_bytes(data)
    page = visit()
    go(page, cluster, f"/browse?bucket={bucket}")
    upload(page, path)
    page.wait_for_selector("#listing a:has-text('large.bin')", timeout=120_000)
    assert body_of(s3, bucket, "large.bin") == data
    assert s3.head_object(Bucket=bucket, Key="large.bin")["ETag"].strip('"').endswith("-3")
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_an_upload_goes_on_after_the_page_was_closed(cluster, visit, s3, bucket, tmp_path):
    path = tmp_path / "large.bin"
    data = bytes(reversed(range(256))) * (64 << 12)
    path.write_bytes(data)
    page = visit()
    go(page, cluster, f"/browse?bucket={bucket}")
    sent = []

    def hold(route):
        sent.append(route.request.url)
        if len(sent) > 2:
            route.abort()
        else:
            route.continue_()

    page.route("**/upload/part?*", hold)
    upload(page, path)
    wait_until(page, lambda: len(sent) > 2)
    page.unroute("**/upload/part?*")
    [begun] = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    go(page, cluster, f"/browse?bucket={bucket}")
    resent = []
    page.on("request", lambda request: resent.append(request.url) if "/upload/part" in request.url else None)
    upload(page, path)
    page.wait_for_selector("#listing a:has-text('large.bin')", timeout=120_000)
    assert body_of(s3, bucket, "large.bin") == data
    assert resent and all(begun["UploadId"] in url for url in resent)
    assert len(resent) < 5, "parts that were there were sent again"


def test_an_upload_goes_on_after_the_session_has_ended(cluster, visit, s3, bucket):
    page = visit()
    go(page, cluster, f"/browse?bucket={bucket}")
    page.context.clear_cookies()
    upload(page, a_file("late.txt", b"late"))
    page.wait_for_selector("[data-part=session]:not([hidden])")
    with page.context.expect_page() as opened:
        page.click("[data-part=session] a")
    login = opened.value
    login.fill("[name=user]", "test:tester")
    login.fill("[name=key]", KEY)
    login.click("main button")
    login.wait_for_selector("header .user")
    login.close()
    page.wait_for_selector("#listing a:has-text('late.txt')", timeout=60_000)
    assert body_of(s3, bucket, "late.txt") == b"late"


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_names_run_no_script_and_work(cluster, visit, s3, bucket, number):
    name = HOSTILE[number]
    s3.put_object(Bucket=bucket, Key=name, Body=b"content", Metadata={"note": "<script>alert(2)</script>"})
    page = visit()
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.accept()))
    go(page, cluster, f"/browse?bucket={bucket}")
    for depth in range(name.count("/")):
        page.locator("#listing tbody a").first.click()
        page.locator(".crumbs li").nth(depth + 1).wait_for()
    page.locator("#listing a[href*='/object?']").first.click()
    page.wait_for_selector("h2")
    assert "<script>alert(2)</script>" in page.inner_text("main")
    with page.expect_download() as download:
        page.click("a[href*='/download?']")
    assert download.value.path().read_bytes() == b"content"
    page.locator(
        "form[action*='/object/delete?'] button, form[action$='/object/delete'] button"
    ).first.click()
    page.wait_for_url("**/browse?*")
    with pytest.raises(ClientError):
        s3.head_object(Bucket=bucket, Key=name)
    assert not [message for message in dialogs if message in ("1", "2")]


def test_pages_of_users_run_no_script_in_the_console(cluster, visit, s3, bucket):
    html = b"<script>document.title='owned';fetch('/console/buckets')</script>"
    for key, kind in [
        ("page.html", "text/html"),
        ("image.svg", "image/svg+xml"),
        ("x.js", "text/javascript"),
    ]:
        s3.put_object(Bucket=bucket, Key=key, Body=html, ContentType=kind)
    page = visit()
    for key in ("page.html", "image.svg", "x.js"):
        go(page, cluster, f"/object?bucket={bucket}&name={key}")
        response = page.context.request.get(f"{cluster.plan.url}/console/content?bucket={bucket}&name={key}")
        if response.status == 200:
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy and response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["content-type"].partition(";")[0] not in ("text/html", "text/javascript")
        assert page.title() != "owned"


def test_an_object_that_is_opened_as_a_page_cannot_use_the_session(visit, s3, bucket):
    script = (
        b"fetch('/console').then(found => found.text()).then("
        b"text => { document.title = 'read'; }, () => { document.title = 'refused'; })"
    )
    body = b"<title>open</title><script>" + script + b"</script>"
    s3.put_object(Bucket=bucket, Key="page.html", Body=body, ContentType="text/html")
    page = visit()
    page.goto(s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "page.html"}))
    page.wait_for_function("document.title != 'open'")
    assert page.title() == "refused"


def test_a_version_is_restored(cluster, visit, s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="plan", Body=b"first")
    s3.put_object(Bucket=bucket, Key="plan", Body=b"second")
    page = visit()
    go(page, cluster, f"/object?bucket={bucket}&name=plan")
    page.click("form[action*='/object/restore'] button")
    page.wait_for_selector(".notice")
    assert body_of(s3, bucket, "plan") == b"first"
    assert len(s3.list_object_versions(Bucket=bucket)["Versions"]) == 2, "none is lost, none is copied"


def test_a_link_opens_the_object_without_a_log_in(cluster, visit, s3, bucket, chromium):
    s3.put_object(Bucket=bucket, Key="shared", Body=b"for you", ContentType="text/plain")
    page = visit()
    go(page, cluster, f"/share?bucket={bucket}&name=shared")
    page.locator("main form button").first.click()
    page.wait_for_load_state()
    address = re.search(r"https?://[^\s\"<>]+(?:Signature|temp_url_sig)[^\s\"<>]*", page.content())[0]
    stranger = chromium.new_context()
    response = stranger.request.get(address.replace("&amp;", "&"))
    assert (response.status, response.body()) == (200, b"for you")
    stranger.close()


def test_two_users_do_not_see_each_other(cluster, visit, s3, bucket):
    page = visit("test:tester3", f"{KEY}3")
    for path in (f"/browse?bucket={bucket}", f"/bucket?bucket={bucket}", "/users", "/health", "/audit"):
        response = page.goto(f"{cluster.plan.url}/console{path}")
        assert response.status == 403, path
    other = visit("test2:tester2", f"{KEY}2")
    assert bucket not in other.inner_text("main")


def test_a_key_of_the_console_serves_clients_until_it_is_deleted(cluster, visit, picture):
    page = visit()
    go(page, cluster, "/keys")
    page.fill("[name=note]", "backup of the laptop")
    page.click("form[action$='/keys/make'] button")
    access_key, secret = page.locator("section.card dd code").all_inner_texts()
    picture(page, "keys")
    client = s3_client(cluster, access_key, secret)
    assert client.list_buckets()["Buckets"] is not None
    go(page, cluster, "/keys")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator(f"tr:has-text('{access_key}') button.danger").click()
    page.wait_for_selector(".notice")
    wait_until(page, lambda: is_refused(client))


def test_an_operator_makes_a_user_who_reads_one_bucket(cluster, visit, s3, bucket, picture):
    s3.put_object(Bucket=bucket, Key="report", Body=b"figures")
    page = visit()
    go(page, cluster, "/users?tenant=test")
    page.fill("[name=user]", "test:reader")
    page.fill("form.stacked [name=password]", "reader-password")
    page.click("form.stacked button.primary")
    page.wait_for_selector(".notice")
    picture(page, "users")
    go(page, cluster, f"/bucket?bucket={bucket}")
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Readers",
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::test:user/reader"},
                "Action": ["s3:ListBucket", "s3:GetObject"],
                "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
            }
        ],
    }
    form = page.locator("form[action$='/bucket/document']").first
    form.locator("textarea").fill(json.dumps(policy))
    form.locator("button").click()
    page.wait_for_selector(".notice")
    picture(page, "bucket")
    go(page, cluster, f"/bucket/access?bucket={bucket}")
    row = page.locator("tr:has-text('reader')").locator("td").all_inner_texts()
    assert row == ["yes", "yes", "no", "no"]
    picture(page, "access")
    reader = visit("test:reader", "reader-password")
    go(reader, cluster, f"/browse?bucket={bucket}")
    assert "report" in reader.inner_text("main")


def test_a_log_out_ends_the_session(cluster, visit):
    page = visit()
    cookies = page.context.cookies()
    page.click("header .user button")
    page.wait_for_url("**/login*")
    page.context.add_cookies(cookies)

    def is_refused_everywhere():
        # Each worker reads the end within its bound of a second.
        page.goto(f"{cluster.plan.url}/console/buckets")
        return "/login" in page.url

    wait_until(page, is_refused_everywhere)


def test_the_health_page_is_kept_fresh(cluster, visit, picture):
    page = visit()
    go(page, cluster, "/health")
    picture(page, "health")
    before = page.inner_text("main")
    assert before
    for path in ("devices", "replication", "rings"):
        go(page, cluster, f"/{path}")
        picture(page, path)
