"""GET, HEAD and OPTIONS of /info (spec: public-api.md §4)."""

from __future__ import annotations

import hmac
import json
from hashlib import sha1
from html import escape

from swift.base.digits import is_digits
from swift.http.request import Request
from swift.http.response import HTML, Response, error_response
from swift.proxy.context import ProxyContext
from swift.telemetry.inforegistry import InfoRegistry

METHODS = ("HEAD", "GET", "OPTIONS")


class InfoController:
    """Shows the registered facts, to the public or signed for operators."""

    def __init__(self, context: ProxyContext, registry: InfoRegistry):
        self._context = context
        self._registry = registry

    def handle(self, request: Request) -> Response:
        """Answer a request for /info."""
        settings = self._context.settings
        if request.method not in METHODS:
            return error_response(405, headers={"allow": ", ".join(METHODS)})
        if request.method == "OPTIONS":
            return Response(200, {"allow": ", ".join(METHODS), "content-type": HTML})
        if not settings.expose_info:
            return error_response(403)
        params = request.params
        signature, expires = params.get("swiftinfo_sig", ""), params.get("swiftinfo_expires", "")
        disallowed = settings.disallowed_sections
        if signature or expires:
            refusal = self._check_signature(request.method, signature, expires)
            if refusal is not None:
                return refusal
            info = self._registry.with_admin(disallowed)
        else:
            info = self._registry.public(disallowed)
        headers = {"content-type": "application/json; charset=UTF-8"}
        if "origin" in request.headers:
            headers["access-control-allow-origin"] = request.headers["origin"]
            headers["access-control-expose-headers"] = "x-trans-id"
        headers["vary"] = "Accept"
        if accepts_html(request.headers.get("accept", "")):
            headers["content-type"] = HTML
            # Nothing on the page comes from elsewhere, and nothing on it runs.
            headers["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'"
            return Response(200, headers, info_page(info))
        return Response(200, headers, json.dumps(info).encode())

    def _check_signature(self, method: str, signature: str, expires: str) -> Response | None:
        key = self._context.settings.admin_key
        if not key:
            return error_response(403)
        if not is_digits(expires) or int(expires) < self._context.clock.time():
            return error_response(401)
        accepted = ("HEAD", "GET") if method == "HEAD" else ("GET",)
        valid = False
        for verb in accepted:
            text = f"{verb}\n{expires}\n/info".encode()
            wanted = hmac.new(key.encode("latin-1", "replace"), text, sha1).hexdigest()
            valid |= hmac.compare_digest(wanted.encode(), signature.encode("latin-1", "replace"))
        return None if valid else error_response(401)


def accepts_html(accept: str) -> bool:
    """Return True if the client is a browser: it accepts HTML and does not name JSON."""
    kinds = [item.partition(";")[0].strip().lower() for item in accept.split(",")]
    return "text/html" in kinds and "application/json" not in kinds


def register_swift_section(registry: InfoRegistry, context: ProxyContext, version: str) -> None:
    """Register the facts of section ``swift``."""
    settings, limits = context.settings, context.limits
    policies = []
    for policy in context.policies:
        if not policy.is_deprecated:
            entry: dict[str, object] = {
                "name": policy.name,
                "aliases": ", ".join((policy.name, *policy.aliases)),
            }
            if policy.is_default:
                entry["default"] = True
            policies.append(entry)
    info: dict[str, object] = {
        "version": version,
        "strict_cors_mode": settings.strict_cors_mode,
        "policies": policies,
        "allow_account_management": settings.allow_account_management,
        "account_autocreate": settings.account_autocreate,
        "allow_open_expired": settings.allow_open_expired,
    }
    for name in type(limits).__slots__:
        value = getattr(limits, name)
        info[name] = list(value) if isinstance(value, tuple) else value
    registry.register("swift", info)


_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>What this cluster can do</title>
<style>
body {font-family: sans-serif; margin: 2em; max-width: 60em;}
table {border-collapse: collapse;}
th, td {text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0;}
</style>
</head>
<body>
<h1>What this cluster can do</h1>
"""


def info_page(info: dict[str, object]) -> bytes:
    """Return a page with a table for each section; all content is escaped text."""
    parts = [_HEAD]
    for section in sorted(info):
        found = info[section]
        values = found if isinstance(found, dict) else {"": found}
        parts.append(f"<h2>{escape(section)}</h2>\n<table>\n")
        for name in sorted(values):
            parts.append(f"<tr><th>{escape(name)}</th><td>{escape(_text(values[name]))}</td></tr>\n")
        parts.append("</table>\n")
    parts.append("</body>\n</html>\n")
    return "".join(parts).encode()


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(inner)}" for name, inner in value.items()) or "none"
    return str(value)
