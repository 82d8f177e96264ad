"""The list of buckets; making and deleting one."""

from __future__ import annotations

import json

from swift.console.core.api import ApiError
from swift.console.core.visit import Route, Visit
from swift.console.users.documents import make_document
from swift.http.response import Response

PAGE = 200


def show_buckets(visit: Visit) -> Response:
    """Show a page of the account's buckets."""
    marker = visit.query.text("marker")
    prefix = visit.query.text("prefix")
    try:
        rows = visit.api.listing(limit=str(PAGE + 1), marker=marker, prefix=prefix)
    except ApiError as error:
        if error.status != 403:
            raise
        # Its buckets may still be open to the caller, who has to know their names.
        return visit.page("buckets.html", rows=None, more="", prefix=prefix, marker=marker, policies=[])
    more = str(rows[PAGE - 1]["name"]) if len(rows) > PAGE else ""
    return visit.page(
        "buckets.html",
        rows=rows[:PAGE],
        more=more,
        prefix=prefix,
        marker=marker,
        policies=_policies(visit),
    )


def _policies(visit: Visit) -> list[str]:
    """Return the names of storage policies that new buckets may have, the default first."""
    found = json.loads(visit.api.anonymous("GET", "/info").read_body() or b"{}")
    policies = found.get("swift", {}).get("policies", [])
    ordered = sorted(policies, key=lambda policy: not policy.get("default"))
    return [str(policy["name"]) for policy in ordered]


def make_bucket(visit: Visit) -> Response:
    """Make a bucket, with a storage policy, versions or object lock if wanted."""
    form = visit.form
    name = form.text("bucket")
    if not name or "/" in name or len(name.encode("utf-8", "replace")) > 256:
        return visit.refusal(visit.text("buckets.bad_name"))
    if visit.api.read("HEAD", name, also=(404,)).status != 404:
        return visit.refusal(visit.text("buckets.exists"), 409)
    policy = form.text("policy")
    if form.text("lock") == "yes":
        # Object lock can only be enabled when a bucket is created; it keeps versions.
        visit.api.s3("PUT", name, headers={"x-amz-bucket-object-lock-enabled": "true"})
        return visit.redirect("/browse", bucket=name, done="bucket_made")
    visit.api.read("PUT", name, headers={"x-storage-policy": policy} if policy else None)
    if form.text("versions") == "yes":
        document = make_document("VersioningConfiguration", [("Status", "Enabled")])
        visit.api.s3("PUT", name, query={"versioning": ""}, body=document)
    return visit.redirect("/browse", bucket=name, done="bucket_made")


def delete_bucket(visit: Visit) -> Response:
    """Delete an empty bucket."""
    visit.api.read("DELETE", visit.form.text("bucket"))
    return visit.redirect("/buckets", done="bucket_deleted")


ROUTES = (
    Route("GET", "/", show_buckets),
    Route("GET", "/buckets", show_buckets),
    Route("POST", "/buckets/make", make_bucket),
    Route("POST", "/buckets/delete", delete_bucket),
)
