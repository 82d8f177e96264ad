"""Deletion of many objects, in steps: checked ones, and all below a prefix.

A step deletes up to ``STEP`` objects and says what is left. A script of the page repeats it to the end;
without scripts each step is a form that goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from swift import green
from swift.base.truth import is_true
from swift.console.core.api import Api, ApiError
from swift.console.core.rendering import visible
from swift.console.core.visit import Route, Visit
from swift.console.users.names import bucket_of, quoted_names
from swift.http.response import Response

STEP = 500
#: Deletions at the same time.
_CONCURRENCY = 8
_FAILURES_SHOWN = 100
#: Headers of buckets that keep versions, or kept them before.
_VERSIONING_HEADERS = frozenset(("x-versions-enabled", "x-versions-location", "x-history-location"))


class Failure(NamedTuple):
    """An object that could not be deleted, and why, as pages show them."""

    name: str
    reason: str


@dataclass
class Deletion:
    """The state of a deletion: the objects that are left, then all below each of the prefixes."""

    bucket: str
    names: list[str]
    prefixes: list[str]
    with_segments: bool
    #: The name after which the first prefix goes on.
    marker: str = ""
    deleted: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """True if nothing is left."""
        return not self.names and not self.prefixes


def confirm(visit: Visit) -> Response:
    """Ask before a deletion of what was checked."""
    deletion = _deletion(visit)
    if deletion.is_done:
        return visit.refusal(visit.text("delete.nothing"))
    return visit.page("delete.html", deletion=deletion, has_begun=False, back=visit.query.text("prefix"))


def confirm_prefix(visit: Visit) -> Response:
    """Ask before a deletion of all below a prefix."""
    prefix = visit.query.text("prefix")
    deletion = Deletion(bucket_of(visit.query), [], [prefix], with_segments=True)
    return visit.page("delete.html", deletion=deletion, has_begun=False, back=prefix)


def delete_step(visit: Visit) -> Response:
    """Delete the next objects; say what is left."""
    deletion = _deletion(visit)
    if deletion.is_done:
        return visit.refusal(visit.text("delete.nothing"))
    form = visit.form
    deletion.deleted = form.number("deleted", 0, 0, 10**15)
    deletion.failed = form.number("failed", 0, 0, 10**15)
    _step(visit, deletion)
    if visit.wants_json:
        return visit.json(
            {
                "deleted": deletion.deleted,
                "failed": deletion.failed,
                "failures": [failure._asdict() for failure in deletion.failures],
                "left": {"name": deletion.names, "folder": deletion.prefixes, "marker": deletion.marker},
                "done": deletion.is_done,
            }
        )
    return visit.page("delete.html", deletion=deletion, has_begun=True, back=visit.query.text("prefix"))


def _deletion(visit: Visit) -> Deletion:
    form = visit.form
    marker = quoted_names(form, "marker")
    return Deletion(
        bucket_of(visit.query),
        # Without a name it would be the bucket.
        [name for name in quoted_names(form, "name") if name],
        quoted_names(form, "folder"),
        bool(form.text("segments")),
        marker[0] if marker else "",
    )


def _step(visit: Visit, deletion: Deletion) -> None:
    if deletion.names:
        names, deletion.names = deletion.names[:STEP], deletion.names[STEP:]
        known: dict[str, bool] = {}
    else:
        prefix = deletion.prefixes[0]
        rows = visit.api.listing(deletion.bucket, prefix=prefix, marker=deletion.marker, limit=str(STEP))
        names = [str(row["name"]) for row in rows]
        known = {str(row["name"]): "slo_etag" in row for row in rows}
        deletion.marker = names[-1] if len(rows) == STEP else ""
        if not deletion.marker:
            del deletion.prefixes[0]
    may_have_segments = deletion.with_segments and not _is_versioned(visit.api, deletion.bucket)
    left = iter(names)

    def work() -> None:
        for name in left:
            try:
                with_segments = may_have_segments and known.get(name, True)
                _delete(visit.api, deletion.bucket, name, with_segments=with_segments)
                deletion.deleted += 1
            except ApiError as error:
                if error.status == 401:
                    raise
                deletion.failed += 1
                if len(deletion.failures) < _FAILURES_SHOWN:
                    deletion.failures.append(Failure(visible(name), visit.sentence_of(error)))

    green.gather([work] * min(_CONCURRENCY, len(names)))


def delete_object(api: Api, bucket: str, name: str, *, with_segments: bool) -> None:
    """Delete an object; with its segments, unless a version stays that needs them. Raises ``ApiError``."""
    _delete(api, bucket, name, with_segments=with_segments and not _is_versioned(api, bucket))


def _is_versioned(api: Api, bucket: str) -> bool:
    """Return True if versions of the bucket's objects stay; also if that is not known."""
    try:
        headers = api.read("HEAD", bucket).headers
    except ApiError:
        return True
    return not headers.keys().isdisjoint(_VERSIONING_HEADERS)


def _delete(api: Api, bucket: str, name: str, *, with_segments: bool) -> None:
    query = {}
    if with_segments:
        try:
            head = api.read("HEAD", bucket, name, also=(404,)).headers
        except ApiError:
            # Rights to delete do not include the right to read.
            head = {}
        if is_true(head.get("x-static-large-object", "")):
            # Without heartbeats the status is that of the deletion.
            query = {"multipart-manifest": "delete", "heartbeat": "off"}
    api.read("DELETE", bucket, name, query=query, also=(404,))


ROUTES = (
    Route("GET", "/delete", confirm_prefix),
    Route("POST", "/delete", confirm),
    Route("POST", "/delete/step", delete_step),
)
