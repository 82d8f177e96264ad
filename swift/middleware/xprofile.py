"""Placeholder for the peer's profiling filter, so that its configurations load (spec: middleware.md §15).

Profiles are taken from outside with ``py-spy`` or ``perf``, which cost nothing while unused. The pages say
so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from swift.config.schema import Settings, option
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration

_HELP_TEXT = "Profiles are taken from outside: py-spy record --pid PID\n"


@dataclass(frozen=True)
class XprofileSettings(Settings):
    """``[filter:xprofile]``."""

    without_effect: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            "profile_module",
            "log_filename_prefix",
            "dump_interval",
            "dump_timestamp",
            "flush_at_shutdown",
            "unwind",
        ),
        "profiles are taken from outside, by py-spy or perf",
    )

    path: str = option("__profile__", "Path of the pages.")


class Xprofile(Filter):
    """Returns 501 below its path."""

    def __init__(self, app: App, settings: XprofileSettings):
        super().__init__(app)
        self._path = "/" + settings.path.strip("/")

    def handle(self, request: Request) -> Response:
        """Return 501 for a profiling page; forward all other requests."""
        path = request.lossy_path
        if path == self._path or path.startswith(self._path + "/"):
            return error_response(501, _HELP_TEXT, content_type=TEXT)
        return self.forward(request)


FILTER = FilterDeclaration(
    "xprofile", XprofileSettings, lambda app, settings, _services: Xprofile(app, settings), position=5
)
