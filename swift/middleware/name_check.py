"""Refuses names that the operator forbids (spec: middleware.md §15)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from swift.base.errors import ConfigError
from swift.config.kinds import COUNT
from swift.config.schema import Settings, option
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration

_NAME_KIND = "Object/Container/Account name"


@dataclass(frozen=True)
class NameCheckSettings(Settings):
    """``[filter:name_check]``."""

    forbidden_chars: str = option("'\"`<>", "Characters that no name may have.")
    maximum_length: int = option(255, "Bytes of the longest path, unquoted.", kind=COUNT)
    forbidden_regexp: str = option(
        r"/\./|/\.\./|/\.$|/\.\.$", "No path may contain a match of this regular expression."
    )


class NameCheck(Filter):
    """Checks the whole unquoted path."""

    def __init__(self, app: App, settings: NameCheckSettings):
        super().__init__(app)
        self._settings = settings
        self._forbidden_chars = frozenset(settings.forbidden_chars)
        try:
            self._forbidden_pattern = (
                re.compile(settings.forbidden_regexp) if settings.forbidden_regexp else None
            )
        except re.error as error:
            raise ConfigError(f"[filter:name_check]: option forbidden_regexp is no pattern: {error}")

    def handle(self, request: Request) -> Response:
        """Return 400 for a forbidden name."""
        path, settings = request.lossy_path, self._settings
        if not self._forbidden_chars.isdisjoint(path):
            text = f"{_NAME_KIND} contains forbidden chars from {settings.forbidden_chars}"
        elif len(path.encode("utf-8", "surrogateescape")) > settings.maximum_length:
            text = f"{_NAME_KIND} longer than the allowed maximum {settings.maximum_length}"
        elif self._forbidden_pattern is not None and self._forbidden_pattern.search(path):
            regexp = settings.forbidden_regexp
            text = f"{_NAME_KIND} contains a forbidden substring from regular expression {regexp}"
        else:
            return self.forward(request)
        return error_response(400, text)


FILTER = FilterDeclaration(
    "name_check",
    NameCheckSettings,
    lambda app, settings, _services: NameCheck(app, settings),
    position=45,
    info=lambda settings: {
        "forbidden_chars": list(settings.forbidden_chars),
        "maximum_length": settings.maximum_length,
        "forbidden_regexp": settings.forbidden_regexp,
    },
)
