"""Authorization by groups: owners, ACLs of containers and accounts (spec: middleware.md §1.2).

The group string of a caller has its account, ``account:user``, its groups, and the accounts that it owns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from swift.gateway.info import account_info
from swift.http import environkeys, fields
from swift.http.acl import (
    account_acl_error,
    format_account_acl,
    normalize_acl,
    parse_account_acl,
    parse_acl,
    parse_stored_account_acl,
)
from swift.http.headers import utf8_value, wire_value
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.authorization import (
    has_valid_sync_key,
    is_request_referrer_allowed,
    match_prefix,
    respond_to_identity_question,
    unauthorized_response,
)
from swift.middleware.filter import App, Filter
from swift.telemetry.events import Event
from swift.telemetry.statsd import Statsd

ADMIN, RESELLER_ADMIN, RESELLER_READER = ".admin", ".reseller_admin", ".reseller_reader"
ACL_HEADER = "x-account-access-control"


class RefusalEvents(NamedTuple):
    """The metrics of refused requests."""

    unauthorized: Event
    forbidden: Event


class GroupAuthorization(Filter):
    """A filter whose callers have groups, and the callback that authorizes their requests."""

    def __init__(
        self,
        app: App,
        prefixes: list[str],
        required_groups: dict[str, str],
        statsd: Statsd,
        events: RefusalEvents,
    ):
        super().__init__(app)
        self._prefixes = prefixes
        self._required_groups = required_groups
        self._statsd = statsd
        self._events = events
        self._metric_prefix = prefixes[0] or "NONE"

    def _count(self, event: Event) -> None:
        event.count(self._statsd, prefix=self._metric_prefix)

    def _set_identity(self, request: Request, groups: str) -> Response:
        env = request.env
        names = groups.split(",")
        env[environkeys.REMOTE_USER] = groups
        env[environkeys.AUTHORIZE] = self.authorise
        env[environkeys.CLEAN_ACL] = normalize_acl
        if len(names) > 1:
            env[environkeys.ACCESS_LOGGING] = {"user_id": names[1]}
        if RESELLER_ADMIN in names:
            env[environkeys.RESELLER_REQUEST] = True
        return respond_to_identity_question(request) or self._forward_with_account_acl(request)

    def _forward_anonymous(self, request: Request) -> Response:
        env = request.env
        account = _request_account(request)
        if account is not None and match_prefix(account, self._prefixes) is not None:
            env[environkeys.AUTHORIZE] = self.authorise
            env[environkeys.CLEAN_ACL] = normalize_acl
        elif environkeys.AUTHORIZE not in env:
            env[environkeys.AUTHORIZE] = self._denial
        return self._forward_with_account_acl(request)

    def _forward_with_account_acl(self, request: Request) -> Response:
        """Forward the request; convert the account ACL of the response from system metadata to a header."""
        response = self.forward(request)
        stored = response.headers.pop(fields.SYSMETA_ACCOUNT_ACL, None)
        if stored and request.env.get(environkeys.OWNER):
            parsed = parse_account_acl(stored)
            if parsed:
                response.headers[ACL_HEADER] = format_account_acl(parsed)
        return response

    def authorise(self, request: Request) -> Response | None:
        """Return None for an allowed request, else the denial (the contract of ``swift.authorize``)."""
        entity = request.entity
        if entity is None:
            return error_response(404)
        account, container, obj = entity.path
        prefix = match_prefix(account, self._prefixes)
        if prefix is None:
            return self._denial(request)
        problem = self._check_account_acl(request, container)
        if problem is not None:
            return problem
        groups = [group for group in (request.env.get(environkeys.REMOTE_USER) or "").split(",") if group]
        if self._is_owner(request, groups, account, prefix, container):
            request.env[environkeys.OWNER] = True
            return None
        is_dot_account = account[len(prefix) :].startswith(".")
        if RESELLER_READER in groups and not is_dot_account and request.method in ("GET", "HEAD"):
            return None
        if self._is_allowed_by_acl(request, groups, obj):
            return None
        if self._is_allowed_by_account_acl(request, groups, account, container):
            return None
        return self._denial(request)

    def _is_owner(
        self, request: Request, groups: list[str], account: str, prefix: str, container: str | None
    ) -> bool:
        name = account[len(prefix) :]
        if RESELLER_ADMIN in groups and name and not name.startswith("."):
            return True
        if account not in groups or (container is None and request.method in ("PUT", "DELETE")):
            return False
        required = self._required_groups.get(prefix)
        return not required or required in groups

    def _is_allowed_by_acl(self, request: Request, groups: list[str], obj: str | None) -> bool:
        if has_valid_sync_key(request) or request.method == "OPTIONS":
            return True
        referrers, acl_groups = parse_acl(utf8_value(request.acl or ""))
        if is_request_referrer_allowed(request, referrers) and (obj or ".rlistings" in acl_groups):
            return True
        return any(group in acl_groups for group in groups)

    def _is_allowed_by_account_acl(
        self, request: Request, groups: list[str], account: str, container: str | None
    ) -> bool:
        acls = self._account_acls(request, account)
        if not acls:
            return False
        # Stored lists are Latin-1 views of the header's bytes.
        user_groups = {wire_value(group) for group in groups}
        if user_groups & set(acls.get("admin", ())):
            request.env[environkeys.OWNER] = True
            return True
        reading = request.method in ("GET", "HEAD")
        if user_groups & set(acls.get("read-write", ())) and (container or reading):
            return True
        return bool(user_groups & set(acls.get("read-only", ()))) and reading

    def _account_acls(self, request: Request, account: str) -> dict[str, list[str]]:
        info = account_info(request, self.forward, account)
        return parse_stored_account_acl(info.sysmeta.get("core-access-control"))

    def _check_account_acl(self, request: Request, container: str | None) -> Response | None:
        """Validate a new account ACL and convert it to system metadata."""
        value = request.headers.get(ACL_HEADER)
        if value is None or container is not None or request.method not in ("PUT", "POST"):
            return None
        problem = account_acl_error(value)
        if problem is not None:
            text = f"X-Account-Access-Control invalid: {problem}\n\nInput: {value}\n"
            return error_response(
                400, text.encode("latin-1", "replace"), content_type="text/plain; charset=UTF-8"
            )
        request.headers[fields.SYSMETA_ACCOUNT_ACL] = format_account_acl(parse_account_acl(value) or {})
        return None

    def _denial(self, request: Request) -> Response:
        if request.env.get(environkeys.REMOTE_USER):
            self._count(self._events.forbidden)
            return error_response(403)
        self._count(self._events.unauthorized)
        return unauthorized_response(request)


def _request_account(request: Request) -> str | None:
    entity = request.entity
    return None if entity is None else entity.path.account


def required_groups(conf: Mapping[str, object], prefixes: list[str]) -> dict[str, str]:
    """Return the ``require_group`` of each prefix; ``<PREFIX>_require_group`` overrides the general one."""
    general = str(conf.get("require_group", "")).strip()
    groups = {}
    for prefix in prefixes:
        groups[prefix] = str(conf.get(f"{prefix}require_group", general)).strip()
    return groups
