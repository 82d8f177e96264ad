"""Barbican on SQLite, and a keystone that knows one user: python barbican_server.py PORTS FOLDER

Runs with the Python of an environment that has Barbican. Writes the ports into the file PORTS when both
answer, and ends with its standard input.
"""

import base64
import json
import os
import sys
import threading
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

TOKEN = "a-token"
IDENTITY = {
    "HTTP_X_IDENTITY_STATUS": "Confirmed",
    "HTTP_X_PROJECT_ID": "a-project",
    "HTTP_X_USER_ID": "a-user",
    "HTTP_X_ROLES": "admin,creator,member",
}
DOMAIN = {"id": "default", "name": "Default"}
JSON = ("Content-Type", "application/json")
CONF = """
[DEFAULT]
host_href =
db_auto_create = True
[database]
connection = sqlite:///{folder}/barbican.sqlite
[simple_crypto_plugin]
kek = {kek}
"""
PIPELINE = """
[composite:main]
use = egg:Paste#urlmap
/: versions
/v1: api
[pipeline:versions]
pipeline = microversion version_app
[pipeline:api]
pipeline = request_id context microversion main_app
[app:main_app]
paste.app_factory = barbican.api.app:create_main_app
[app:version_app]
paste.app_factory = barbican.api.app:create_version_app
[filter:request_id]
paste.filter_factory = oslo_middleware.request_id:RequestId.factory
[filter:context]
paste.filter_factory = barbican.api.middleware.context:ContextMiddleware.factory
[filter:microversion]
paste.filter_factory = barbican.api.middleware.microversion:MicroversionMiddleware.factory
"""


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_words):
        pass


def serve(app):
    """Start to serve an application; return its port."""
    server = make_server("127.0.0.1", 0, app, Server, Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def keystone(ports):
    """Return an identity service with the user ``swift`` and the password ``pw``."""

    def endpoint(region, port):
        place = {"interface": "public", "region": region, "region_id": region, "id": region}
        return {**place, "url": f"http://127.0.0.1:{port}"}

    def app(environ, start):
        if environ["REQUEST_METHOD"] == "GET":
            start("200 OK", [JSON])
            link = {"rel": "self", "href": f"http://127.0.0.1:{ports['keystone']}/v3/"}
            version = {"id": "v3.14", "status": "stable", "links": [link], "media-types": []}
            return [json.dumps({"version": version}).encode()]
        sent = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        user = sent["auth"]["identity"]["password"]["user"]
        known = (user.get("name"), user["password"]) == ("swift", "pw")
        if not known or user.get("domain", {}).get("name", "Default") != "Default":
            start("401 Unauthorized", [JSON])
            error = {"message": "wrong user or password", "code": 401, "title": "Unauthorized"}
            return [json.dumps({"error": error}).encode()]
        endpoints = [endpoint("away", 1), endpoint("here", ports["barbican"])]
        token = {
            "methods": ["password"],
            "user": {"id": "a-user", "name": "swift", "domain": DOMAIN},
            "project": {"id": "a-project", "name": "swift", "domain": DOMAIN},
            "roles": [{"id": "r", "name": "admin"}],
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "catalog": [{"type": "key-manager", "id": "k", "name": "barbican", "endpoints": endpoints}],
        }
        start("201 Created", [JSON, ("X-Subject-Token", TOKEN)])
        return [json.dumps({"token": token}).encode()]

    return app


def barbican(folder):
    """Return the Barbican application for requests with the token."""
    # It looks for its configuration below the home directory and in /etc.
    os.environ["HOME"] = str(folder)
    (folder / ".barbican").mkdir()
    kek = base64.b64encode(bytes(range(32))).decode()
    (folder / ".barbican" / "barbican.conf").write_text(CONF.format(folder=folder, kek=kek))
    (folder / "paste.ini").write_text(PIPELINE)
    from barbican.common import config
    from paste.deploy import loadapp

    config.parse_args(config.CONF)
    app = loadapp(f"config:{folder}/paste.ini")

    def guarded(environ, start):
        if environ.get("HTTP_X_AUTH_TOKEN") != TOKEN:
            start("401 Unauthorized", [("Content-Type", "text/plain")])
            return [b""]
        return app({**environ, **IDENTITY}, start)

    return guarded


def main(ports_file, folder):
    ports = {"barbican": serve(barbican(Path(folder)))}
    ports["keystone"] = serve(keystone(ports))
    Path(f"{ports_file}.new").write_text(json.dumps(ports))
    os.rename(f"{ports_file}.new", ports_file)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
