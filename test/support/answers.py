"""Recording and comparing the answers of a proxy, with what legitimately varies taken out."""

import http.client
import re

VOLATILE = {"date", "x-trans-id", "x-openstack-request-id", "last-modified", "x-timestamp", "x-put-timestamp"}
UNORDERED = {
    "allow",
    "access-control-allow-methods",
    "access-control-expose-headers",
    "access-control-allow-headers",
}
_BODY_RULES = (
    (re.compile(rb'"last_modified": "[^"]*"'), b'"last_modified": "*"'),
    (re.compile(rb"<last_modified>[^<]*<"), b"<last_modified>*<"),
    (re.compile(rb"Policy-0|gold"), b"POLICY"),
)


class Asker:
    """Sends cases to one proxy and keeps the normalised answers."""

    def __init__(self, host, token_of):
        self._host = host
        self._token_of = token_of
        self.answers = []

    def __call__(self, method, path, headers=None, body=None, *, user="test:tester", token=None):
        sent = dict(headers or {})
        token = token or (self._token_of(user) if user else None)
        if token:
            sent["X-Auth-Token"] = token
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            data = response.read()
            self.answers.append(
                {
                    "request": f"{method} {path} {sorted(map(str, (headers or {}).items()))} as {user}"[:300],
                    "status": response.status,
                    "reason": response.reason,
                    **normalised(response.getheaders(), data, self._host),
                }
            )
        finally:
            connection.close()


def normalised(pairs, body, host):
    """Headers and body without times, ids, boundaries, host and policy name."""
    headers = {}
    for name, value in pairs:
        key = name.lower()
        if "storage-policy" in key:
            continue
        if "boundary=" in value:
            value, boundary = value.split("boundary=")
            body = body.replace(boundary.encode(), b"BOUNDARY")
        value = value.replace(host, "HOST")
        if key in UNORDERED:
            value = ", ".join(sorted(item.strip() for item in value.split(",")))
        headers[key] = "*" if key in VOLATILE else value
    for pattern, replacement in _BODY_RULES:
        body, replaced = pattern.subn(replacement, body)
        if replaced and pattern.pattern.startswith(b"Policy"):
            headers["content-length"] = "*"
    return {"headers": headers, "body": body.decode("latin-1")}
