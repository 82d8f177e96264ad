"""Log-in of a person from the command line: a browser, and a port that gets the token (RFC 8252)."""

from __future__ import annotations

import hmac
import html
import secrets
import socket
import sys
import webbrowser
from urllib.parse import parse_qs, quote, urlsplit

from swift.base.errors import SwiftError

#: A person has so long.
TIMEOUT_S = 300.0
_REQUEST_BYTES_MAX = 32 << 10


class BrowserLoginFailed(SwiftError):
    """The log-in did not come to its end."""


def log_in(auth_url: str, provider: str, *, opens_browser: bool) -> dict[str, str]:
    """Return the token and the storage URL of a person who logs in; raise ``BrowserLoginFailed``."""
    parts = urlsplit(auth_url)
    base = f"{parts.scheme}://{parts.netloc}"
    # Pages of others can send the browser to the port, but do not know the path.
    path = f"/{secrets.token_urlsafe(24)}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        back = f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
        url = f"{base}/auth/oidc/{quote(provider, safe='')}/login?return_to={quote(back, safe='')}"
        print(f"open {url}", file=sys.stderr)
        if opens_browser:
            webbrowser.open(url)
        while True:
            found = _serve_one(listener, path)
            if found is None:
                continue
            if urlsplit(found["storage_url"]).hostname != parts.hostname:
                raise BrowserLoginFailed(f"the storage URL is at another host than {parts.hostname}")
            return found


def _serve_one(listener: socket.socket, path: str) -> dict[str, str] | None:
    """Answer one request of the browser; return what it brings, None for another request."""
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        raise BrowserLoginFailed(f"there was no log-in within {TIMEOUT_S:g} s")
    with connection:
        connection.settimeout(10.0)
        data = bytearray()
        try:
            while b"\r\n\r\n" not in data and len(data) < _REQUEST_BYTES_MAX:
                piece = connection.recv(4096)
                if not piece:
                    return None
                data += piece
            target = data.split(b" ", 2)[1].decode("ascii", "replace")
            params = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
            is_path = hmac.compare_digest(urlsplit(target).path.encode(), path.encode())
            is_login = is_path and bool(params.get("token") and params.get("storage_url"))
            text = "You have logged in; this window may be closed." if is_login else "Nothing is here."
            page = f"<html><p>{html.escape(text)}</p></html>".encode()
            status = "200 OK" if is_login else "404 Not Found"
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
            connection.sendall(head.encode() + b"Cache-Control: no-store\r\nConnection: close\r\n\r\n" + page)
        except (OSError, IndexError):
            return None
    return {"token": params["token"], "storage_url": params["storage_url"]} if is_login else None
