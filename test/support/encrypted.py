"""Keymaster and encryption over a simulated cluster."""

import base64

from swift.base.limits import Limits
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.middleware.encryption.filter import Encryption, EncryptionSettings
from swift.middleware.keymaster import Keymaster, KeymasterSettings, parse_secrets
from swift.telemetry.log import silent_log
from test.support.sim import Answer

ONE = base64.b64encode(b"A" * 32).decode()


class Front:
    """Keymaster and encryption over a simulated cluster, and other filters left of them."""

    def __init__(self, sim, left=(), disable=False, **options):
        options = options or {"encryption_root_secret": ONE}
        self.sim = sim
        settings = EncryptionSettings(disable_encryption=disable)
        app = Encryption(sim.app, settings, Limits(), silent_log())
        self.filter = Keymaster(app, parse_secrets(options, KeymasterSettings.parse(options)))
        for make in reversed(left):
            self.filter = make(self.filter)

    def __call__(self, method, path, headers=None, body=b""):
        target, _, query = path.partition("?")
        sent = dict(headers or {})
        if method in ("PUT", "POST"):
            sent.setdefault("content-length", str(len(body)))
        env = {"swift.cache": self.sim.cache, "swift_owner": True}
        try:
            return Answer(
                self.filter.handle(Request(method, f"/v1{target}", sent, body, query=query, env=env))
            )
        except HTTPError as error:
            return Answer(error.response)
