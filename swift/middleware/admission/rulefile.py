"""The file of rules, read again when it changed; one that cannot be used leaves the old rules in force."""

from __future__ import annotations

import os
from collections.abc import Callable

from swift.base.errors import ConfigError
from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.rules import Rules, parse_rules


class RuleFile:
    """The rules of a file; an empty path has none. ``warn`` is told why a changed file is not used."""

    def __init__(self, path: str, promisable: Amounts, warn: Callable[[str], None]):
        self._path = path
        self._warn = warn
        self._seen = self._state()
        self.rules = self._read(promisable)

    def look(self, promisable: Amounts) -> bool:
        """Whether there are other rules since the last look."""
        state = self._state()
        if state == self._seen:
            return False
        self._seen = state
        try:
            self.rules = self._read(promisable)
        except ConfigError as error:
            self._warn(f"{error}; the rules from before stay in force")
            return False
        return True

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path) if self._path else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)

    def _read(self, promisable: Amounts) -> Rules:
        """Raises ``ConfigError``."""
        if not self._path:
            return Rules()
        try:
            with open(self._path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._path} cannot be read: {error}")
        return parse_rules(text, source=self._path, promisable=promisable)
