"""The page of accounts: their usage, by the Swift API with the rights of the operator, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from swift import green
from swift.console.core.api import ApiError
from swift.console.core.rendering import inert_cell
from swift.console.core.visit import Access, Route, Visit
from swift.http.body import ResponseBody
from swift.http.response import Response

PAGE = 100
#: Requests for accounts at a time.
_AT_ONCE = 8
_POLICY = "x-account-storage-policy-"


@dataclass(frozen=True)
class AccountUsage:
    """The usage of a tenant's account; figures are None if they could not be read."""

    tenant: str
    account: str
    containers: int | None = None
    objects: int | None = None
    bytes: int | None = None
    #: Policy → objects and bytes.
    policies: Mapping[str, tuple[int, int]] | None = None
    #: The reason for unknown figures.
    error: str = ""


def _tenants(visit: Visit) -> list[str]:
    """Return the names of all tenants. Raises ``ApiError``."""
    return sorted(str(tenant) for tenant in visit.api.identity("ListTenants")["tenants"])


def read_usage(visit: Visit, tenant: str) -> AccountUsage:
    """Return the usage of a tenant's account, of nothing if there is none yet."""
    account = account_of(visit, tenant)
    try:
        found = visit.api.read("HEAD", account=account, also=(404,))
    except ApiError as error:
        return AccountUsage(tenant, account, error=visit.sentence_of(error))
    if found.status == 404:
        return AccountUsage(tenant, account, 0, 0, 0, {})
    headers = found.headers

    def count(name: str) -> int:
        value = headers.get(name, "")
        return int(value) if value.isascii() and value.isdigit() else 0

    names = [
        name.removeprefix(_POLICY).removesuffix("-bytes-used")
        for name in headers
        if name.startswith(_POLICY) and name.endswith("-bytes-used")
    ]
    policies = {
        name: (count(f"{_POLICY}{name}-object-count"), count(f"{_POLICY}{name}-bytes-used")) for name in names
    }
    return AccountUsage(
        tenant,
        account,
        count("x-account-container-count"),
        count("x-account-object-count"),
        count("x-account-bytes-used"),
        policies,
    )


def account_of(visit: Visit, tenant: str) -> str:
    """Return the account of a tenant: as that of the operator's own tenant, with another name."""
    return visit.session.account.removesuffix(visit.session.tenant) + tenant


def _read_some(visit: Visit, tenants: list[str]) -> list[AccountUsage]:
    return green.bounded_map(partial(read_usage, visit), tenants, _AT_ONCE)


def show_accounts(visit: Visit) -> Response:
    """Show a page of the accounts."""
    marker, prefix = visit.query.text("marker"), visit.query.text("prefix")
    tenants = [name for name in _tenants(visit) if name.startswith(prefix) and name > marker]
    rows = _read_some(visit, tenants[:PAGE])
    more = tenants[PAGE - 1] if len(tenants) > PAGE else ""
    return visit.page("accounts.html", rows=rows, more=more, prefix=prefix)


class CsvBody(ResponseBody):
    """The usage of all accounts as it is read."""

    def __init__(self, visit: Visit, tenants: list[str]):
        self.length = None
        self._visit = visit
        self._tenants = tenants

    def __iter__(self) -> Iterator[bytes]:
        names = [policy.name for policy in self._visit.parts.cluster.policies]
        heads = [f"{name} {what}" for name in names for what in ("objects", "bytes")]
        yield _csv_lines([["tenant", "account", "containers", "objects", "bytes", *heads, "error"]])
        for place in range(0, len(self._tenants), PAGE):
            rows = _read_some(self._visit, self._tenants[place : place + PAGE])
            yield _csv_lines([_csv_row(row, names) for row in rows])


def _csv_row(row: AccountUsage, names: list[str]) -> list[object]:
    policies = row.policies or {}
    figures = [figure for name in names for figure in policies.get(name.lower(), (0, 0))]
    if row.error:
        return [row.tenant, row.account, *[""] * (3 + len(figures)), row.error]
    return [row.tenant, row.account, row.containers, row.objects, row.bytes, *figures, ""]


def _csv_lines(rows: list[list[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([inert_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def send_csv(visit: Visit) -> Response:
    """Send the usage of all accounts."""
    headers = visit.headers(
        content_type="text/csv; charset=utf-8", content_disposition='attachment; filename="accounts.csv"'
    )
    return Response(200, headers, CsvBody(visit, _tenants(visit)))


ROUTES = (
    Route("GET", "/accounts", show_accounts, Access.OPERATORS),
    Route("GET", "/accounts.csv", send_csv, Access.OPERATORS),
)
