"""Accounts that take only so many bytes or objects, in all or of one policy (spec: middleware.md §12).

Only administrators of the reseller set them, and they are exempt from them. Quotas are system metadata of the
account, by the policy's index; clients see headers with its name.
"""

from __future__ import annotations

from swift.config.schema import Settings
from swift.gateway.info import AccountInfo, account_info, container_info
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.quota import exceeds, is_quota, quota_of, too_large
from swift.policy.policy import Policies

#: A quota that is ordinary metadata too, from before there was system metadata.
_OLD = "meta-quota-bytes"
#: Client's word → its key among an account's figures.
_WORDS = {"bytes": "bytes", "count": "object_count"}


class AccountQuotas(Filter):
    """Guards quotas, shows them, and checks uploads against them."""

    def __init__(self, app: App, policies: Policies):
        super().__init__(app)
        #: Header that clients use, without ``x-account-`` → the header that is stored; later ones win.
        self._stored = {_OLD: f"{fields.SYSMETA_QUOTA}bytes"}
        self._stored |= {f"quota-{word}": f"{fields.SYSMETA_QUOTA}{word}" for word in _WORDS}
        for policy in policies:
            for word in _WORDS:
                for name in (policy.name, *policy.aliases):
                    shown = f"quota-{word}-policy-{name.lower()}"
                    self._stored[shown] = f"{fields.SYSMETA_QUOTA}{word}-policy-{policy.index}"
        self._shown = {
            f"{fields.SYSMETA_QUOTA}{word}-policy-{policy.index}": (
                f"x-account-quota-{word}-policy-{policy.name.lower()}"
            )
            for policy in policies
            for word in _WORDS
        } | {f"{fields.SYSMETA_QUOTA}{word}": f"x-account-quota-{word}" for word in _WORDS}

    def handle(self, request: Request) -> Response:
        """Accept quotas from administrators, and uploads below the quota from all users."""
        entity = request.entity
        if entity is None:
            return self.forward(request)
        account, container, obj = entity.path
        if container is None:
            return self._account(request)
        if obj is None or request.method != "PUT" or request.env.get(environkeys.RESELLER_REQUEST):
            return self.forward(request)
        return self._upload(request, account, container)

    def _account(self, request: Request) -> Response:
        if request.method in ("PUT", "POST"):
            problem = self._translate(request)
            if problem is not None:
                return problem
        response = self.forward(request)
        if request.method in ("GET", "HEAD"):
            headers = response.headers
            for stored, shown in self._shown.items():
                if stored in headers:
                    headers[shown] = headers[stored]
        return response

    def _translate(self, request: Request) -> Response | None:
        """Turn the client's headers into what is stored; a refusal when they may not."""
        headers = request.headers
        changes: HeaderMap = {}
        for name, stored in self._stored.items():
            if f"x-account-{name}" in headers:
                changes[stored] = headers[f"x-account-{name}"]
            if headers.get(f"x-remove-account-{name}"):
                changes[stored] = ""
        if not changes:
            return None
        if not request.env.get(environkeys.RESELLER_REQUEST):
            return error_response(403)
        if not all(map(is_quota, changes.values())):
            return error_response(400)
        headers.update(changes)
        return None

    def _upload(self, request: Request, account: str, container: str) -> Response:
        info = account_info(request, self.forward, account)
        if not info.exists or not _has_quota(info):
            return self.forward(request)
        size = request.body.length or 0
        more = {"bytes": size, "count": 1}
        place = container_info(request, self.forward, account, container)
        used = {"bytes": info.bytes, "count": info.object_count}
        quotas = {word: quota_of(info.sysmeta.get(f"quota-{word}")) for word in _WORDS}
        if quotas["bytes"] is None:
            quotas["bytes"] = quota_of(info.meta.get("quota-bytes"))
        if any(exceeds(quotas[word], used[word], more[word]) for word in _WORDS):
            return too_large(request, place, "Upload exceeds quota.")
        if place.exists:
            figures = info.policies.get(str(place.policy_index), {})
            for word, figure in _WORDS.items():
                quota = quota_of(info.sysmeta.get(f"quota-{word}-policy-{place.policy_index}"))
                if exceeds(quota, figures.get(figure, 0), more[word]):
                    return too_large(request, place, "Upload exceeds policy quota.")
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
    right_of={
        "tempauth": "the user would not be authorized yet",
        "keystoneauth": "the user would not be authorized yet",
    },
)
