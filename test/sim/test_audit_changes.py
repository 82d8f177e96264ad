"""Requests that change several objects: the audit log names each of them."""

import ast
import io
import json
import tarfile
from base64 import b64encode
from hashlib import md5
from pathlib import Path

import pytest
from botocore.config import Config
from botocore.session import Session

from swift.base.clock import ManualClock
from swift.http.request import Request
from swift.middleware.audit_log.filter import AuditLog
from swift.middleware.bulk.filter import Bulk, BulkSettings
from swift.middleware.formpost.filter import FormPost, FormPostSettings
from swift.runtime.wsgi import response_or_error
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.functional.api_cases_signed import ONE, TWO, form_body, form_fields

PACKAGE = Path(__file__).parents[2] / "swift"
A = "/v1/AUTH_test"
USER = "test:tester"
S3_CLIENT = {
    "aws_access_key_id": USER,
    "aws_secret_access_key": "testing",
    "region_name": "us-east-1",
}
FORM = {"content-type": "multipart/form-data; boundary=B"}


class Audited:
    """The S3 API's cluster behind the filters for many objects and the audit log."""

    def __init__(self, s3):
        self.s3 = s3
        self.texts = []
        #: Objects of clients for which changes reached the proxy, as container/object.
        self.changed = set()
        form = FormPost(s3.filter, FormPostSettings.parse({}), clock=ManualClock())
        bulk = Bulk(form, BulkSettings.parse({}), 5000, Telemetry(silent_log()))
        s3.filter = self.filter = AuditLog(bulk, self.texts.append)
        s3.bottom.instead = self._observe
        response = s3.raw("GET", "/auth/v1.0", {"x-auth-user": USER, "x-auth-key": "testing"})
        self._token = response.headers["x-auth-token"]

    def _observe(self, request):
        entity = request.entity
        if request.method in ("PUT", "POST", "DELETE") and entity is not None:
            account, container, name = entity.path
            if name is not None and account == "AUTH_test" and not container.startswith("\0"):
                self.changed.add(f"{container}/{name}")

    def __call__(self, method, path, headers=None, body=b"", *, query="", token=True):
        """Return the response to a request of Swift's API, with its body read."""
        sent = {"content-length": str(len(body)), "accept": "application/json", **(headers or {})}
        if token:
            sent["x-auth-token"] = self._token
        env = {"swift.cache": self.s3.sim.cache, "swift.trans_id": "tx1"}
        request = Request(method, path, sent, body, query=query, env=env, remote_addr="10.0.0.9")
        response = response_or_error(self.filter.handle, request)
        response.report_end(len(response.read_body()), True)
        return response

    def clear(self):
        self.texts.clear()
        self.changed.clear()

    @property
    def lines(self):
        return [json.loads(text) for text in self.texts]

    @property
    def changes(self):
        """Return (method, container/object, status) of the audit lines of a request."""
        return sorted(
            (line["method"], "/".join(filter(None, (line["container"], line.get("object")))), line["status"])
            for line in self.lines
            if "part_of" in line
        )


@pytest.fixture
def audited(s3):
    made = Audited(s3)
    for name in ("c", "segments"):
        assert made("PUT", f"{A}/{name}").status == 201
    for path in ("c/a", "c/b", "segments/1", "segments/2", "bucket/x", "bucket/y"):
        assert made("PUT", f"{A}/{path}", body=path.encode()).status == 201
    made.clear()
    return made


def bulk_delete(audited):
    return audited("POST", A, body=b"c/a\nc/b\nc/none\nc\n", query="bulk-delete")


def archive(*names):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
    return data.getvalue()


def extract(audited):
    return audited("PUT", A, body=archive("c/a", "new/d/b"), query="extract-archive=tar")


def form_post(audited):
    audited("POST", A, {"x-account-meta-temp-url-key": "mykey"})
    audited.clear()
    # The clock of the filter stands still.
    return audited("POST", f"{A}/c/pre", FORM, form_body(form_fields(f"{A}/c/pre"), (ONE, TWO)), token=False)


def multi_delete(audited):
    body = b"<Delete><Object><Key>x</Key></Object><Object><Key>none</Key></Object>"
    body += b"<Object><Key>y</Key><ETag>0</ETag></Object></Delete>"
    headers = {"content-md5": b64encode(md5(body).digest()).decode()}
    return audited.s3("POST", "/bucket?delete", headers, body)


def delete_large(audited, query="multipart-manifest=delete"):
    manifest = json.dumps([{"path": "/segments/1"}, {"path": "/segments/2"}]).encode()
    assert audited("PUT", f"{A}/c/large", body=manifest, query="multipart-manifest=put").status == 201
    audited.clear()
    return audited("DELETE", f"{A}/c/large", query=query)


def delete_large_later(audited):
    return delete_large(audited, "multipart-manifest=delete&async=on")


#: A request that changes several objects → its lines, the name of the operation in them, and its user.
CASES = {
    bulk_delete: (
        [("DELETE", "c", 204), ("DELETE", "c/a", 204), ("DELETE", "c/b", 204), ("DELETE", "c/none", 404)],
        "bulk-delete",
        USER,
    ),
    extract: (
        [("PUT", "c/a", 201), ("PUT", "new", 201), ("PUT", "new/d/b", 201)],
        "extract-archive",
        USER,
    ),
    form_post: ([("PUT", "c/prea.txt", 201), ("PUT", "c/preb.txt", 201)], "formpost", ".wsgi.formpost"),
    multi_delete: (
        [("DELETE", "bucket/none", 204), ("DELETE", "bucket/x", 204), ("DELETE", "bucket/y", 412)],
        "DeleteObjects",
        USER,
    ),
    delete_large: (
        [("DELETE", "c/large", 204), ("DELETE", "segments/1", 204), ("DELETE", "segments/2", 204)],
        "multipart-manifest=delete",
        USER,
    ),
    delete_large_later: (
        [("DELETE", "segments/1", 202), ("DELETE", "segments/2", 202)],
        "multipart-manifest=delete",
        USER,
    ),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_audit_log_has_a_line_for_each_changed_object(audited, case):
    expected, part_of, user = CASES[case]
    assert case(audited).status in (200, 201, 204)
    assert audited.changes == expected
    *changes, line = audited.lines
    assert "part_of" not in line and line["changes"] == len(expected)
    assert {each["part_of"] for each in changes} == {part_of}
    assert {(each["user"], each["account"], each["txid"]) for each in audited.lines} == {
        (user, "AUTH_test", "tx1")
    }
    named = {f"{each.get('container')}/{each.get('object')}" for each in audited.lines}
    assert audited.changed - {"c/none"} <= named


def test_the_audit_log_line_of_an_s3_form_names_its_object(audited):
    signer = Session().create_client(
        "s3", endpoint_url="http://h", config=Config(signature_version="s3v4"), **S3_CLIENT
    )
    form = signer.generate_presigned_post(
        "bucket", "in/${filename}", Conditions=[["starts-with", "$key", "in/"]]
    )
    body = form_body([*form["fields"].items()], [('name="file"; filename="f"', b"", b"data")])
    response = audited.s3.raw("POST", "/bucket", FORM, body)
    assert response.status == 204
    assert audited.changed == {"bucket/in/f"}
    (line,) = audited.lines
    assert (line["s3_operation"], line["container"], line["object"]) == ("PostObject", "bucket", "in/f")


#: Modules whose sub-requests change nothing, or only the object that the line of the request names.
NOT_REPORTED = {
    "middleware/copy.py": "reads the source; the line has it in copy",
    "middleware/dlo.py": "reads segments",
    "middleware/segments.py": "makes the sub-requests of slo and dlo",
    "middleware/slo/download.py": "reads segments",
    "middleware/slo/hidden_segments.py": "hidden parts of the object that the line names",
    "middleware/slo/upload.py": "asks for segments",
    "middleware/staticweb/filter.py": "reads pages and listings",
    "middleware/swiftauth/filter.py": "reads the tags of the object that the line names",
    "middleware/symlink.py": "reads targets",
    "middleware/versioned_writes/archive.py": "versions of the object that the line names",
    "middleware/versioned_writes/containers.py": "hidden container of the container that the line names",
    "middleware/versioned_writes/filter.py": "asks for a container",
    "middleware/versioned_writes/links.py": "link of the object that the line names, and its versions",
    "middleware/versioned_writes/objects.py": "versions of the object that the line names",
    "s3/api/parts.py": "parts of the object that the line names",
    "s3/config/access_log.py": "logs that the server delivers",
    "s3/core/privileged.py": "internal objects",
    "s3/core/session.py": "what the operation in the line says",
}
_MAKERS = {
    "make_subrequest",
    "make_privileged_request",
    "make_segment_request",
    "make_bulk_subrequest",
    "internal_client",
}


def names_of(path):
    tree = ast.parse(path.read_text())
    return {
        name
        for node in ast.walk(tree)
        for name in (getattr(node, "id", None), getattr(node, "attr", None))
        if name is not None
    }


def test_every_filter_that_makes_sub_requests_reports_changes_or_says_why_not():
    found, reporting = set(), set()
    for room in ("middleware", "s3"):
        for path in (PACKAGE / room).rglob("*.py"):
            names, where = names_of(path), str(path.relative_to(PACKAGE))
            if "report_change" in names:
                reporting.add(where)
            elif names & _MAKERS:
                found.add(where)
    assert found == set(NOT_REPORTED), "report each change (gateway.subrequest), or add a reason"
    assert reporting == {
        "middleware/bulk/delete.py",
        "middleware/bulk/extract.py",
        "middleware/formpost/filter.py",
        "middleware/slo/deletion.py",
        "s3/api/delete.py",
    }, "add a case above"
