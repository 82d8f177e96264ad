"""The list of buckets; making and deleting one."""

from __future__ import annotations

from swift.console.core.api import ApiError
from swift.console.core.visit import Route, Visit
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
        return visit.page("buckets.html", rows=None, more="", prefix=prefix, marker=marker)
    more = str(rows[PAGE - 1]["name"]) if len(rows) > PAGE else ""
    return visit.page("buckets.html", rows=rows[:PAGE], more=more, prefix=prefix, marker=marker)


def make_bucket(visit: Visit) -> Response:
    """Make a bucket."""
    name = visit.form.text("bucket")
    if not name or "/" in name or len(name.encode("utf-8", "replace")) > 256:
        return visit.refusal(visit.text("buckets.bad_name"))
    if visit.api.read("HEAD", name, also=(404,)).status != 404:
        return visit.refusal(visit.text("buckets.exists"), 409)
    visit.api.read("PUT", name)
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
