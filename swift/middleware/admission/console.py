"""Operator API of admission: shows usage and changes rules at run time (doc/explanation/admission.md).

    GET /v1/.admission/cluster/state    what is known, asked for and promised, as JSON
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
from swift.http.body import RequestBody
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response
from swift.middleware.admission.announced import RULES_BYTES_MAX
from swift.middleware.admission.limiter import SPARE
from swift.middleware.admission.rules import LANE, LIMIT, AdmissionRules
from swift.middleware.admission.shares import DELIVERED, Report
from swift.middleware.authorization import unauthorized_response

#: No account has this name.
ACCOUNT = ".admission"
_CONTAINER, _STATE, _RULES = "cluster", "state", "rules"
_JSON = "application/json; charset=utf-8"
_TOML = "application/toml; charset=utf-8"


class RulesNotStored(Exception):
    """Rules can neither be written nor told."""


@dataclass(frozen=True, slots=True)
class Console:
    """Answers for one process. ``change`` raises ``ConfigError`` and ``RulesNotStored``."""

    state: Callable[[], dict[str, object]]
    rules: Callable[[], str]
    change: Callable[[str], dict[str, object]]

    def answer(self, request: Request) -> Response:
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
            return _text(self.rules(), _TOML) if is_rules else _json(self.state())
        if request.method == "PUT" and is_rules:
            return self._put(request)
        return error_response(405, headers={"allow": "GET, HEAD, PUT" if is_rules else "GET, HEAD"})

    def _put(self, request: Request) -> Response:
        data = _read(request.body)
        try:
            return _json(self.change(data.decode("utf-8")))
        except UnicodeDecodeError as error:
            raise HTTPError(400, f"rules: byte {error.start} is no UTF-8\n", content_type=TEXT)
        except ConfigError as error:
            raise HTTPError(400, f"{error}\n", content_type=TEXT)
        except RulesNotStored:
            text = "The rules file cannot be written and memcached is away: other proxies get no rules.\n"
            raise HTTPError(503, text, content_type=TEXT)


def uses_of(totals: Report, rules: AdmissionRules) -> dict[str, object]:
    """Return the requested and delivered rates of each class and limit as JSON-able values."""
    guarantees, lanes, limits = rules.guarantees(), {}, {}
    for key in sorted(totals):
        size, requests, streams = totals[key]
        use: dict[str, object] = {"bytes": size, "requests": requests, "streams": int(streams)}
        if key in (DELIVERED, SPARE):
            continue
        if key.startswith(LIMIT):
            limits[key.removeprefix(LIMIT)] = use
            continue
        if key in guarantees:
            use["guaranteed"] = asdict(guarantees[key])
        lanes[key.removeprefix(LANE)] = use
    size, requests, _ = totals.get(DELIVERED, (0.0, 0.0, 0.0))
    return {"delivered": {"bytes": size, "requests": requests}, "lanes": lanes, "limits": limits}


def _read(body: RequestBody) -> bytes:
    """Return the whole body; raises ``HTTPError`` 413."""
    pieces, size = [], body.length or 0
    while size <= RULES_BYTES_MAX and (piece := body.read(65536)):
        pieces.append(piece)
        size = max(size, sum(map(len, pieces)))
    if size > RULES_BYTES_MAX:
        raise HTTPError(413, f"Rules have at most {RULES_BYTES_MAX} bytes.\n", content_type=TEXT)
    return b"".join(pieces)


def _text(text: str, kind: str) -> Response:
    return Response(200, {"content-type": kind}, text.encode("utf-8", "surrogateescape"))


def _json(content: dict[str, object]) -> Response:
    return _text(json.dumps(content, indent=1) + "\n", _JSON)
