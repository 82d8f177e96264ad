"""A small identity service over HTTP, as far as s3token asks one: access keys and signatures."""

import hmac
import json
import threading
from base64 import b64encode, urlsafe_b64decode
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def signature_of(text, secret):
    """What a service with the secret finds a text to be signed with, in either version."""
    if text.startswith(b"AWS4-HMAC-SHA256"):
        key = ("AWS4" + secret).encode()
        for word in text.decode().split("\n")[2].split("/"):
            key = hmac.digest(key, word.encode(), sha256)
        return hmac.digest(key, text, sha256).hex()
    return b64encode(hmac.digest(secret.encode(), text, sha1)).decode()


def token_of(user, project, *roles):
    """A token of version 3."""
    domain = {"id": "default", "name": "Default"}
    return {
        "token": {
            "user": {"id": user, "name": f"{user}-name", "domain": domain},
            "project": {"id": project, "name": f"{project}-name", "domain": domain},
            "roles": [{"name": role} for role in roles],
        }
    }


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def answer(self, status, document, headers=()):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        service = self.server.service
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append(self.path)
        if self.path == "/v3/s3tokens":
            self.answer(*service.judge(asked["credentials"]))
        elif asked["auth"]["identity"]["password"]["user"]["password"] == "own":
            service.tokens += 1
            self.answer(201, {}, [("X-Subject-Token", f"t{service.tokens}")])
        else:
            self.answer(401, {})

    def do_GET(self):
        service = self.server.service
        service.asked.append(self.path)
        access = self.path.rpartition("/")[2]
        if self.headers["X-Auth-Token"] != f"t{service.tokens}":
            self.answer(401, {})
        elif access in service.keys:
            self.answer(200, {"credential": {"secret": service.keys[access][0]}})
        else:
            self.answer(404, {})


class IdentityService:
    """``keys``: access key → (secret, token document). ``odd``: access key → (status, whatever)."""

    def __init__(self, keys, odd=None):
        self.keys, self.odd, self.asked, self.tokens = keys, odd or {}, [], 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.service = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v3"

    def judge(self, credentials):
        access = credentials["access"]
        if access in self.odd:
            return self.odd[access]
        secret, document = self.keys.get(access, ("", None))
        good = signature_of(urlsafe_b64decode(credentials["token"]), secret)
        if document is None or credentials["signature"] != good:
            return 401, {}
        return 200, document

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _CatalogHandler(_Handler):
    def do_POST(self):
        service = self.server.service
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append(asked)
        if self.path != "/v3/auth/tokens":
            self.answer(404, {})
        elif asked["auth"]["identity"]["password"]["user"]["password"] != "own":
            self.answer(401, {})
        else:
            self.answer(201, {"token": {"catalog": service.catalog}}, [("X-Subject-Token", service.token)])


class Catalog:
    """An identity service of version 3: ``token`` for the password ``own``, with a catalog of services."""

    def __init__(self, storage_url, token):
        points = [
            {"interface": "internal", "region": "one", "url": "http://127.0.0.1:1/"},
            {"interface": "public", "region": "one", "url": storage_url},
        ]
        self.catalog = [{"type": "image", "endpoints": []}, {"type": "object-store", "endpoints": points}]
        self.token = token
        #: The document of every request.
        self.asked = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _CatalogHandler)
        self._server.service = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
