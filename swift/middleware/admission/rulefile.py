"""The file of rules, read again when it changed; one that cannot be used leaves the old rules in force."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from swift.base.errors import ConfigError
from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.announced import Announcement
from swift.middleware.admission.rules import AdmissionRules, parse_rules
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.regularfiles import read_through_links

#: The permissions of a file that was not there before.
_MODE = 0o640


class RuleFile:
    """The rules of a file, or those that an operator gave; ``warn`` is told why some are not used.

    An empty path has none until some are given.
    """

    def __init__(self, path: str, promisable: Amounts, warn: Callable[[str], None]):
        self._path = path
        self._warn = warn
        self._seen = self._state()
        #: When what is announced and cannot be used was given: it is told of once.
        self._refused_ns = 0
        self.text = self._read()
        self.rules = self._parsed(self.text, promisable)
        #: When they were written, Unix nanoseconds.
        self.at_ns = self._seen[0] if self._seen else 0

    @property
    def source(self) -> str:
        """Name of the rules' source in error messages."""
        return self._path or "rules"

    def look(self, promisable: Amounts) -> bool:
        """Return True if there are other rules since the last look."""
        state = self._state()
        if state == self._seen:
            return False
        self._seen = state
        try:
            text = self._read()
            self.rules = self._parsed(text, promisable)
        except ConfigError as error:
            self._warn(f"{error}; the rules from before stay in force")
            return False
        self.text, self.at_ns = text, state[0] if state else 0
        return True

    def adopt(self, made: Announcement, promisable: Amounts) -> None:
        """Use rules that an operator gave; raises ``ConfigError``."""
        self.rules = self._parsed(made.text, promisable)
        self.text, self.at_ns = made.text, made.at_ns

    def follow(self, made: Announcement | None, promisable: Amounts) -> bool:
        """Use what was told to another process, if it is newer; whether there are other rules."""
        if made is None or made.at_ns <= max(self.at_ns, self._refused_ns):
            return False
        try:
            self.adopt(made, promisable)
            self.write(made)
        except ConfigError as error:
            self._refused_ns = made.at_ns
            self._warn(f"rules that were given to another proxy: {error}; those from before stay in force")
            return False
        return True

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path) if self._path else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)

    def _read(self) -> str:
        """Return the parsed value; raises ``ConfigError``."""
        if not self._path:
            return ""
        try:
            return read_through_links(self._path).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._path} cannot be read: {error}")

    def _parsed(self, text: str, promisable: Amounts) -> AdmissionRules:
        """Return the parsed value; raises ``ConfigError``."""
        return parse_rules(text, source=self.source, promisable=promisable)

    def write(self, made: Announcement) -> bool:
        """Put given rules into the file; False where that is not possible."""
        if not self._path:
            return False
        path = os.path.realpath(self._path)
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else _MODE
            replace_file(Disk(), path, made.text.encode("utf-8"), mode=mode)
            os.utime(path, ns=(made.at_ns, made.at_ns))
        except OSError as error:
            self._warn(f"{path} is not written: {error}")
            return False
        self._seen = self._state()
        return True
