"""The page of the audit log of this proxy."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from swift.base.errors import SwiftError
from swift.console.core.visit import Access, Route, Visit
from swift.console.core.web import BadForm
from swift.console.operators.auditlog import AuditTerms, Position, path_of, search
from swift.http.response import Response

PAGE = 100
_COLUMNS = ("time", "user", "client", "method", "path", "status", "reason", "more")
#: Keys of a line that have a column, or are said by one.
_IN_COLUMNS = frozenset(
    ("time", "user", "client", "method", "account", "container", "object", "path", "status", "reason")
)


def show_audit(visit: Visit) -> Response:
    """Show a page of the lines that are looked for, newest first."""
    query = visit.query
    terms = AuditTerms(
        user=query.text("user").strip(),
        path=query.text("path").strip(),
        method=query.text("method").strip().upper(),
        status=query.text("status").strip(),
        address=query.text("address").strip(),
        since=_moment(visit, "since"),
        until=_moment(visit, "until"),
    )
    path, found, problem = visit.parts.audit_log, None, ""
    try:
        found = visit.parts.cluster.threads.call(search, path, terms, _position(visit), PAGE)
    except FileNotFoundError:
        problem = visit.text("audit.no_log", path=path)
    except (OSError, SwiftError) as error:
        problem = visit.text("audit.unreadable", path=path, reason=str(error))
    rows = [
        {
            **{name: str(line.get(name, "")) for name in _COLUMNS},
            "time": str(line.get("time", ""))[:19].replace("T", " "),
            "path": path_of(line),
            "more": ", ".join(f"{name} {value}" for name, value in line.items() if name not in _IN_COLUMNS),
        }
        for line in (found.lines if found else ())
    ]
    return visit.page(
        "audit.html", found=found, rows=rows, terms=asdict(terms), columns=_COLUMNS, problem=problem
    )


def _moment(visit: Visit, name: str) -> str:
    """Return a time of the form as the log writes it, without its end; raises ``BadForm``."""
    text = visit.query.text(name).strip()
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadForm("audit.bad_time")
    return moment.strftime("%Y-%m-%dT%H:%M:%S" if moment.second else "%Y-%m-%dT%H:%M")


def _position(visit: Visit) -> Position | None:
    """Return where the search goes on; raises ``BadForm``."""
    inode, mark, offset = visit.query.text("before").partition("-")
    if not inode:
        return None
    if not (
        mark
        and (inode + offset).isascii()
        and inode.isdigit()
        and offset.isdigit()
        and len(inode + offset) < 40
    ):
        raise BadForm("audit.bad_place")
    return Position(int(inode), int(offset))


ROUTES = (Route("GET", "/audit", show_audit, Access.OPERATORS),)
