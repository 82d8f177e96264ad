"""Keymaster and encryption over a simulated cluster."""

import base64
import hashlib

from swift.base.limits import Limits
from swift.middleware.encryption.filter import Encryption, EncryptionSettings
from swift.middleware.keymaster.filter import Keymaster, KeymasterSettings, parse_secrets
from swift.telemetry.log import silent_log
from test.support.fronts import FilterFront

ONE = base64.b64encode(b"A" * 32).decode()
TWO = base64.b64encode(b"B" * 32).decode()


class Front(FilterFront):
    """Keymaster and encryption, and other filters left of them."""

    def __init__(self, sim, left=(), disable=False, **options):
        options = options or {"encryption_root_secret": ONE}
        settings = EncryptionSettings(disable_encryption=disable)
        app = Encryption(sim.app, settings, Limits(), silent_log())
        front = Keymaster(app, parse_secrets(options, KeymasterSettings.parse(options)))
        for make in reversed(left):
            front = make(front)
        super().__init__(sim, front)


def md5(data):
    """The hexadecimal MD5 of bytes."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def bare(etag):
    """An ETag without quotes."""
    return etag.strip('"')
