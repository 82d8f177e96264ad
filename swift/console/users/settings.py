"""The settings of a bucket: versions, lifecycle, CORS, object lock, quota, policy, and who may use it."""

from __future__ import annotations

from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.console.core.api import ApiError
from swift.console.core.visit import Route, Visit
from swift.console.core.web import BadForm, Fields, StaleForm
from swift.console.users.documents import (
    digest_of,
    indented,
    indented_json,
    make_document,
    parse_document,
    rules_of,
    with_rule,
    without_rule,
)
from swift.console.users.names import bucket_of
from swift.http.headers import HeaderMap
from swift.http.response import Response

#: Users whose rights one page shows.
_USERS_PAGE = 50
_DAYS_MAX = 100_000
BUCKET_ACTIONS = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject")
XML = "application/xml"


class Setting(NamedTuple):
    """A document of a bucket: the subresource, its root element, and that of a rule."""

    subresource: str
    root: str = ""
    rule: str = ""


SETTINGS = {
    "lifecycle": Setting("lifecycle", "LifecycleConfiguration", "Rule"),
    "cors": Setting("cors", "CORSConfiguration", "CORSRule"),
    "policy": Setting("policy"),
}


class ReadSetting(NamedTuple):
    """A setting as the page shows it, or the sentence why it cannot be shown."""

    document: bytes | None = None
    problem: str = ""

    @property
    def digest(self) -> str:
        """The digest that forms carry, see ``digest_of``."""
        return digest_of(self.document)


def show_bucket(visit: Visit) -> Response:
    """Show the settings of a bucket."""
    bucket = visit.query.text("bucket")
    facts = visit.api.read("HEAD", bucket).headers
    found = {name: _read(visit, bucket, name) for name in SETTINGS}
    lock = _read(visit, bucket, "object-lock")
    versioning = _read(visit, bucket, "versioning")
    return visit.page(
        "bucket.html",
        bucket=bucket,
        facts=_facts(facts),
        read_acl=facts.get("x-container-read", ""),
        write_acl=facts.get("x-container-write", ""),
        acl_seen=_acl_digest(facts),
        quota={name: facts.get(f"x-container-meta-quota-{name}", "") for name in ("bytes", "count")},
        settings=found,
        lifecycle_rules=rules_of(found["lifecycle"].document, "Rule"),
        lifecycle_text=indented(found["lifecycle"].document),
        cors_rules=rules_of(found["cors"].document, "CORSRule"),
        cors_text=indented(found["cors"].document),
        policy_text=indented_json(found["policy"].document),
        versioning=_text_of(versioning.document, "Status") or "Off",
        versioning_problem=versioning.problem,
        lock=_lock(lock),
    )


def _facts(headers: HeaderMap) -> JsonObject:
    return {
        "objects": int(headers.get("x-container-object-count", "0")),
        "size": int(headers.get("x-container-bytes-used", "0")),
        "policy": headers.get("x-storage-policy", ""),
    }


def _read(visit: Visit, bucket: str, subresource: str) -> ReadSetting:
    try:
        return ReadSetting(visit.api.s3_document(bucket, **{subresource: ""}))
    except ApiError as error:
        if error.status == 401:
            raise
        return ReadSetting(problem=visit.sentence_of(error))


def _text_of(document: bytes | None, tag: str) -> str:
    if not document:
        return ""
    found = parse_document(document).iter(f"{{*}}{tag}")
    return next((element.text or "" for element in found), "")


def _lock(read: ReadSetting) -> JsonObject:
    """Return the default retention of a bucket's object lock."""
    document = read.document
    return {
        "enabled": _text_of(document, "ObjectLockEnabled") == "Enabled",
        "mode": _text_of(document, "Mode"),
        "days": _text_of(document, "Days"),
        "years": _text_of(document, "Years"),
        "problem": read.problem,
    }


# --- changes ------------------------------------------------------------------------------------------


def set_versioning(visit: Visit) -> Response:
    """Enable or suspend versions."""
    status = visit.form.text("status")
    if status not in ("Enabled", "Suspended"):
        raise BadForm("form.versions")
    return _put(visit, "versioning", make_document("VersioningConfiguration", [("Status", status)]))


def set_lock(visit: Visit) -> Response:
    """Set the default retention of new versions, or remove it."""
    form = visit.form
    mode = form.text("mode")
    parts = [("ObjectLockEnabled", "Enabled")]
    if mode:
        if mode not in ("GOVERNANCE", "COMPLIANCE"):
            raise BadForm("form.lock_mode")
        days = form.number("days", 0, 1, _DAYS_MAX)
        parts += [("Rule/DefaultRetention/Mode", mode), ("Rule/DefaultRetention/Days", str(days))]
    return _put(visit, "object-lock", make_document("ObjectLockConfiguration", parts))


def set_quota(visit: Visit) -> Response:
    """Set or remove the quotas of a bucket."""
    form = visit.form
    headers: HeaderMap = {}
    for name in ("bytes", "count"):
        number = form.number(name, 0, 0, 10**18)
        headers[f"x-container-meta-quota-{name}"] = str(number) if form.text(name).strip() else ""
    return _post(visit, headers)


def set_acl(visit: Visit) -> Response:
    """Set the access control lists of Swift's API."""
    form = visit.form
    if _acl_digest(visit.api.read("HEAD", bucket_of(form)).headers) != form.text("seen"):
        raise StaleForm
    return _post(
        visit,
        {
            "x-container-read": form.text("read").strip(),
            "x-container-write": form.text("write").strip(),
        },
    )


def _acl_digest(headers: HeaderMap) -> str:
    """Return the digest of both lists that forms carry, see ``digest_of``."""
    both = [headers.get(f"x-container-{kind}", "") for kind in ("read", "write")]
    return digest_of("\n".join(both).encode("utf-8", "replace"))


def set_document(visit: Visit) -> Response:
    """Replace the document of a setting; an empty text removes it."""
    name = _setting_name(visit.form)
    text = visit.form.text("document").strip().replace("\r\n", "\n")
    _require_unchanged(visit, name)
    return _put(visit, name, text.encode()) if text else _delete(visit, name)


def add_rule(visit: Visit) -> Response:
    """Add a rule to the lifecycle or the CORS document."""
    name = _setting_name(visit.form)
    document = _require_unchanged(visit, name)
    setting = SETTINGS[name]
    parts = _lifecycle_parts(visit.form) if name == "lifecycle" else _cors_parts(visit.form)
    return _put(visit, name, with_rule(document, setting.root, setting.rule, parts))


def delete_rule(visit: Visit) -> Response:
    """Delete a rule of the lifecycle or the CORS document."""
    name = _setting_name(visit.form)
    document = _require_unchanged(visit, name)
    if document is None or not SETTINGS[name].rule:
        raise BadForm("form.no_rule")
    left = without_rule(document, SETTINGS[name].rule, visit.form.number("rule", 0, 0, 10_000))
    return _delete(visit, name) if left is None else _put(visit, name, left)


def _lifecycle_parts(form: Fields) -> list[tuple[str, str]]:
    parts = [("ID", form.text("id").strip())] if form.text("id").strip() else []
    parts += [("Status", "Enabled"), ("Filter/Prefix", form.text("prefix"))]
    days = {
        "days": "Expiration/Days",
        "noncurrent_days": "NoncurrentVersionExpiration/NoncurrentDays",
        "abort_days": "AbortIncompleteMultipartUpload/DaysAfterInitiation",
    }
    actions = [
        (path, str(form.number(name, 0, 1, _DAYS_MAX))) for name, path in days.items() if form.text(name)
    ]
    if form.text("markers") == "yes":
        actions.append(("Expiration/ExpiredObjectDeleteMarker", "true"))
    if not actions:
        raise BadForm("form.rule_days")
    return parts + actions


def _cors_parts(form: Fields) -> list[tuple[str, str]]:
    parts = [
        (element, word)
        for name, element in (
            ("origins", "AllowedOrigin"),
            ("headers", "AllowedHeader"),
            ("expose", "ExposeHeader"),
        )
        for word in form.text(name).split()
    ]
    parts += [("AllowedMethod", method) for method in form.all("method")]
    if form.text("age").strip():
        parts.append(("MaxAgeSeconds", str(form.number("age", 0, 0, 10**9))))
    return parts


def _setting_name(form: Fields) -> str:
    name = form.text("setting")
    if name not in SETTINGS:
        raise BadForm("form.no_setting")
    return name


def _require_unchanged(visit: Visit, name: str) -> bytes | None:
    """Return the present document; raises ``BadForm`` if it is not the one that the form was made of."""
    document = visit.api.s3_document(visit.form.text("bucket"), **{SETTINGS[name].subresource: ""})
    if digest_of(document) != visit.form.text("seen"):
        raise StaleForm
    return document


def _put(visit: Visit, subresource: str, document: bytes) -> Response:
    bucket = visit.form.text("bucket")
    visit.api.s3("PUT", bucket, query={subresource: ""}, body=document)
    return visit.redirect("/bucket", bucket=bucket, done="setting_saved")


def _delete(visit: Visit, subresource: str) -> Response:
    bucket = visit.form.text("bucket")
    visit.api.s3("DELETE", bucket, query={subresource: ""})
    return visit.redirect("/bucket", bucket=bucket, done="setting_removed")


def _post(visit: Visit, headers: HeaderMap) -> Response:
    if any(not value.isprintable() for value in headers.values()):
        raise BadForm("form.control")
    bucket = visit.form.text("bucket")
    sent = {name: value.encode("utf-8", "replace").decode("latin-1") for name, value in headers.items()}
    visit.api.read("POST", bucket, headers=sent)
    return visit.redirect("/bucket", bucket=bucket, done="setting_saved")


# --- rights -------------------------------------------------------------------------------------------


def show_access(visit: Visit) -> Response:
    """Show who may list, read, write and delete in a bucket."""
    query, session = visit.query, visit.session
    bucket, key, marker = query.text("bucket"), query.text("key"), query.text("marker")
    facts = visit.api.read("HEAD", bucket).headers
    found = visit.api.identity("ListUsers", tenant=session.tenant, marker=marker, limit=float(_USERS_PAGE))
    names = next(value for value in found.values() if isinstance(value, list))
    rows = [(name, _rights(visit, f"{session.tenant}:{name}", bucket, key)) for name in names]
    status = _read(visit, bucket, "policyStatus")
    return visit.page(
        "access.html",
        bucket=bucket,
        key=key,
        actions=BUCKET_ACTIONS,
        rows=rows,
        more=names[-1] if found["more"] and names else "",
        is_public=_text_of(status.document, "IsPublic").lower() == "true",
        read_acl=facts.get("x-container-read", ""),
        write_acl=facts.get("x-container-write", ""),
    )


def _rights(visit: Visit, user: str, bucket: str, key: str) -> list[JsonObject]:
    """Return the verdicts of a user's actions; a disabled or damaged user has none."""
    answers = []
    for action in BUCKET_ACTIONS:
        resource = bucket if action == "s3:ListBucket" else f"{bucket}/{key or '-'}"
        try:
            answers.append(visit.api.identity("CheckPolicy", user=user, action=action, resource=resource))
        except ApiError as error:
            if error.status != 400:
                raise
            answers.append({"allowed": False, "allowed_by_acl": False, "reasons": [error.reason]})
    return answers


ROUTES = (
    Route("GET", "/bucket", show_bucket),
    Route("GET", "/bucket/access", show_access),
    Route("POST", "/bucket/versioning", set_versioning),
    Route("POST", "/bucket/lock", set_lock),
    Route("POST", "/bucket/quota", set_quota),
    Route("POST", "/bucket/acl", set_acl),
    Route("POST", "/bucket/document", set_document),
    Route("POST", "/bucket/rule", add_rule),
    Route("POST", "/bucket/rule/delete", delete_rule),
)
