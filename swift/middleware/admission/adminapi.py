"""Operator API of admission: shows usage and changes rules at run time (doc/explanation/admission.md).

    GET /v1/.admission/cluster/state    capacity, usage and reservations, as JSON
    GET /v1/.admission/cluster/rules    the rules in force, as they were written
    PUT /v1/.admission/cluster/rules    other rules, for all workers of all proxies

They have the paths of objects, because other filters take the answers of accounts and containers for
listings. Only administrators of the reseller are let in. Rules that cannot be used are answered 400 with the
words that the log has for a file, and change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from swift.base.errors import ConfigError
from swift.http import environkeys
from swift.http.body import RequestBody, read_up_to
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.admission.capacityshares import DELIVERED_KEY, UsageReport
from swift.middleware.admission.limiter import UNGUARANTEED_KEY
from swift.middleware.admission.rules import CLASS_PREFIX, LIMIT_PREFIX, AdmissionRules
from swift.middleware.admission.rulesexchange import RULES_BYTES_MAX
from swift.middleware.authorization import unauthorized_response

#: No account has this name.
ACCOUNT = ".admission"
_CONTAINER, _STATE, _RULES = "cluster", "state", "rules"
_JSON = "application/json; charset=utf-8"
_TOML = "application/toml; charset=utf-8"


class RulesNotStored(Exception):
    """The rules could neither be written to the file nor sent to other processes."""


@dataclass(frozen=True, slots=True)
class AdminApi:
    """The operator API of one process. ``change_rules`` raises ``ConfigError`` and ``RulesNotStored``."""

    read_state: Callable[[], dict[str, object]]
    read_rules: Callable[[], str]
    change_rules: Callable[[str], dict[str, object]]

    def handle(self, request: Request) -> Response:
        """Return the response to a request for the account; raises ``HTTPError``."""
        assert request.entity is not None, "it names the account"
        if not request.env.get(environkeys.RESELLER_REQUEST):
            return (
                error_response(403)
                if request.env.get(environkeys.REMOTE_USER)
                else unauthorized_response(request)
            )
        path = request.entity.path
        if path.container != _CONTAINER or path.obj not in (_STATE, _RULES):
            return error_response(404)
        is_rules = path.obj == _RULES
        if request.method in ("GET", "HEAD"):
            return _text_response(self.read_rules(), _TOML) if is_rules else _json_response(self.read_state())
        if request.method == "PUT" and is_rules:
            return self._put(request)
        return error_response(405, headers={"allow": "GET, HEAD, PUT" if is_rules else "GET, HEAD"})

    def _put(self, request: Request) -> Response:
        data = _read_body(request.body)
        try:
            return _json_response(self.change_rules(data.decode("utf-8")))
        except UnicodeDecodeError as error:
            raise HTTPError(400, f"rules: byte {error.start} is no UTF-8\n", content_type=TEXT)
        except ConfigError as error:
            raise HTTPError(400, f"{error}\n", content_type=TEXT)
        except RulesNotStored:
            text = "The rules file cannot be written and memcached is away: other proxies get no rules.\n"
            raise HTTPError(503, text, content_type=TEXT)


def usage_by_name(totals: UsageReport, rules: AdmissionRules) -> dict[str, object]:
    """Return the requested and delivered rates of each class and limit as JSON-able values."""
    guarantees, qos_classes, limits = rules.guarantees(), {}, {}
    for key in sorted(totals):
        size, requests, streams = totals[key]
        use: dict[str, object] = {"bytes": size, "requests": requests, "streams": int(streams)}
        if key in (DELIVERED_KEY, UNGUARANTEED_KEY):
            continue
        if key.startswith(LIMIT_PREFIX):
            limits[key.removeprefix(LIMIT_PREFIX)] = use
            continue
        if key in guarantees:
            use["guaranteed"] = asdict(guarantees[key])
        qos_classes[key.removeprefix(CLASS_PREFIX)] = use
    size, requests, _ = totals.get(DELIVERED_KEY, (0.0, 0.0, 0.0))
    return {"delivered": {"bytes": size, "requests": requests}, "lanes": qos_classes, "limits": limits}


def _read_body(body: RequestBody) -> bytes:
    """Return the whole body; raises ``HTTPError`` 413."""
    is_long = (body.length or 0) > RULES_BYTES_MAX
    data = b"" if is_long else read_up_to(body, RULES_BYTES_MAX + 1)
    if is_long or len(data) > RULES_BYTES_MAX:
        raise HTTPError(413, f"Rules have at most {RULES_BYTES_MAX} bytes.\n", content_type=TEXT)
    return data


def _text_response(text: str, kind: str) -> Response:
    return Response(200, {"content-type": kind}, text.encode("utf-8", "surrogateescape"))


def _json_response(content: dict[str, object]) -> Response:
    return _text_response(json.dumps(content, indent=1) + "\n", _JSON)
