"""The root of the error tree.

Every error that this project raises on purpose derives from ``SwiftError``; packages add their own
branches beside the nouns that raise them. Errors carry fields; turning them into an HTTP status or an
exit code happens at one boundary (``http.response``, ``runtime.httpd``, ``cli``).
"""

from __future__ import annotations


class SwiftError(Exception):
    """Something this project refuses or failed to do; ``str()`` is a sentence for a person."""


class InvalidValue(SwiftError, ValueError):
    """A value from outside (header, file, option) does not parse."""


class ConfigError(SwiftError):
    """The configuration cannot be used; the text names the file or option and the reason."""


class DeviceUnavailable(SwiftError):
    """A storage device is missing, unmounted or not writable; answered as 507."""

    def __init__(self, device: str):
        super().__init__(f"device {device} is not available")
        self.device = device


class NoSpace(SwiftError):
    """The filesystem is full, over quota or below its reserve; answered as 507."""


class LockTimeout(SwiftError):
    """A file lock was not granted in time."""

    def __init__(self, path: str, seconds: float):
        super().__init__(f"no lock on {path} within {seconds:g} s")
        self.path = path
        self.seconds = seconds
