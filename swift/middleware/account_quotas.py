"""Quotas of accounts: bytes or objects, in total or per policy (spec: middleware.md §12).

Only administrators of the reseller set quotas, and quotas do not apply to them. They are system metadata of
the account with the policy's index; clients see headers with the policy's name.
"""

from __future__ import annotations

from swift.config.schema import Settings
from swift.gateway.info import AccountInfo, account_info, container_info
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import AUTHORIZED_BEFORE, App, Filter, FilterDeclaration
from swift.middleware.quota import exceeds_quota, is_valid_quota, parse_quota, quota_exceeded_response
from swift.policy.policy import Policies

#: Legacy quota in the account's ordinary metadata.
_LEGACY_QUOTA = "meta-quota-bytes"
#: Kind of quota → its key in an account's statistics.
_STATISTICS_BY_QUOTA = {"bytes": "bytes", "count": "object_count"}


class AccountQuotas(Filter):
    """Protects and lists account quotas, and checks uploads against them."""

    def __init__(self, app: App, policies: Policies):
        super().__init__(app)
        # Ends of a client's header and of the stored one; a policy's own name comes before its aliases.
        scopes = [("", "")]
        for policy in policies:
            names = (policy.name, *policy.aliases)
            scopes += [(f"-policy-{name.lower()}", f"-policy-{policy.index}") for name in names]
        pairs = [
            (f"quota-{quota_kind}{client}", f"{fields.SYSMETA_QUOTA}{quota_kind}{stored}")
            for client, stored in scopes
            for quota_kind in _STATISTICS_BY_QUOTA
        ]
        #: Client's header without ``x-account-`` → stored header; later ones win.
        self._stored_headers = {_LEGACY_QUOTA: f"{fields.SYSMETA_QUOTA}bytes", **dict(pairs)}
        self._client_headers = {stored: f"x-account-{client}" for client, stored in reversed(pairs)}

    def handle(self, request: Request) -> Response:
        """Accept quotas from administrators; refuse uploads of others that exceed a quota."""
        entity = request.entity
        if entity is None:
            return self.forward(request)
        account, container, obj = entity.path
        if container is None:
            return self._handle_account(request)
        if obj is None or request.method != "PUT" or request.env.get(environkeys.RESELLER_REQUEST):
            return self.forward(request)
        return self._check_upload(request, account, container)

    def _handle_account(self, request: Request) -> Response:
        if request.method in ("PUT", "POST"):
            problem = self._store_quotas(request)
            if problem is not None:
                return problem
        response = self.forward(request)
        if request.method in ("GET", "HEAD"):
            headers = response.headers
            for stored_header, client_header in self._client_headers.items():
                if stored_header in headers:
                    headers[client_header] = headers[stored_header]
        return response

    def _store_quotas(self, request: Request) -> Response | None:
        """Convert the client's quota headers to stored headers; return a refusal or None."""
        headers = request.headers
        changes: HeaderMap = {}
        for name, stored in self._stored_headers.items():
            if f"x-account-{name}" in headers:
                changes[stored] = headers[f"x-account-{name}"]
            if headers.get(f"x-remove-account-{name}"):
                changes[stored] = ""
        if not changes:
            return None
        if not request.env.get(environkeys.RESELLER_REQUEST):
            return error_response(403)
        if not all(map(is_valid_quota, changes.values())):
            return error_response(400)
        headers.update(changes)
        return None

    def _check_upload(self, request: Request, account: str, container: str) -> Response:
        info = account_info(request, self.forward, account)
        if not info.exists or not _has_quota(info):
            return self.forward(request)
        size = request.body.length or 0
        more = {"bytes": size, "count": 1}
        container_stats = container_info(request, self.forward, account, container)
        used = {"bytes": info.bytes, "count": info.object_count}
        quotas = {
            quota_kind: parse_quota(info.sysmeta.get(f"quota-{quota_kind}"))
            for quota_kind in _STATISTICS_BY_QUOTA
        }
        if quotas["bytes"] is None:
            quotas["bytes"] = parse_quota(info.meta.get("quota-bytes"))
        if any(
            exceeds_quota(quotas[quota_kind], used[quota_kind], more[quota_kind])
            for quota_kind in _STATISTICS_BY_QUOTA
        ):
            return quota_exceeded_response(request, container_stats, "Upload exceeds quota.")
        if container_stats.exists:
            policy_stats = info.policies.get(str(container_stats.policy_index), {})
            for quota_kind, statistic in _STATISTICS_BY_QUOTA.items():
                quota = parse_quota(
                    info.sysmeta.get(f"quota-{quota_kind}-policy-{container_stats.policy_index}")
                )
                if exceeds_quota(quota, policy_stats.get(statistic, 0), more[quota_kind]):
                    return quota_exceeded_response(request, container_stats, "Upload exceeds policy quota.")
        return self.forward(request)


def _has_quota(info: AccountInfo) -> bool:
    return "quota-bytes" in info.meta or any(name.startswith("quota-") for name in info.sysmeta)


FILTER = FilterDeclaration(
    "account_quotas",
    Settings,
    lambda app, _settings, services: AccountQuotas(app, services.cluster.policies),
    position=220,
    default=True,
    section="account-quotas",
    info=lambda _settings: {},
    right_of=AUTHORIZED_BEFORE,
)
