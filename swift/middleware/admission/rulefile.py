"""The rules file, read again when it changes; invalid content leaves the old rules in force."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from swift.base.errors import ConfigError
from swift.middleware.admission.amounts import Amounts
from swift.middleware.admission.rules import AdmissionRules, parse_rules
from swift.middleware.admission.rulesexchange import RulesUpdate
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.regularfiles import FileIdentity, file_identity, read_through_links

#: The permissions of a file that was not there before.
_NEW_FILE_MODE = 0o640


class RuleFile:
    """The rules of a file, or those that an operator sent; ``warn`` gets the reason why some are not used.

    An empty path has none until some are given.
    """

    def __init__(self, path: str, promisable: Amounts, warn: Callable[[str], None]):
        self._path = path
        self._warn = warn
        self._loaded_state = self._current_state()
        #: Time of the rejected update, so that it is logged only once.
        self._rejected_at_ns = 0
        self.text = self._read_text()
        self.rules = self._parse(self.text, promisable)
        #: When they were written, Unix nanoseconds.
        self.at_ns = self._loaded_state[0] if self._loaded_state else 0

    @property
    def source(self) -> str:
        """Name of the rules' source in error messages."""
        return self._path or "rules"

    def reload_if_changed(self, promisable: Amounts) -> bool:
        """Read the file again if it changed; return True if there are new rules."""
        state = self._current_state()
        if state == self._loaded_state:
            return False
        self._loaded_state = state
        try:
            text = self._read_text()
            self.rules = self._parse(text, promisable)
        except ConfigError as error:
            self._warn(f"{error}; the rules from before stay in force")
            return False
        self.text, self.at_ns = text, state[0] if state else 0
        return True

    def replace_rules(self, update: RulesUpdate, promisable: Amounts) -> None:
        """Use rules that an operator sent; raises ``ConfigError``."""
        self.rules = self._parse(update.text, promisable)
        self.text, self.at_ns = update.text, update.at_ns

    def apply_update(self, update: RulesUpdate | None, promisable: Amounts) -> bool:
        """Use rules that another process received, if they are newer; return True if the rules changed."""
        if update is None or update.at_ns <= max(self.at_ns, self._rejected_at_ns):
            return False
        try:
            self.replace_rules(update, promisable)
            self.write(update)
        except ConfigError as error:
            self._rejected_at_ns = update.at_ns
            self._warn(f"rules that were given to another proxy: {error}; those from before stay in force")
            return False
        return True

    def _current_state(self) -> FileIdentity | None:
        try:
            return file_identity(self._path) if self._path else None
        except OSError:
            return None

    def _read_text(self) -> str:
        """Return the text of the file; raises ``ConfigError``."""
        if not self._path:
            return ""
        try:
            return read_through_links(self._path).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._path} cannot be read: {error}")

    def _parse(self, text: str, promisable: Amounts) -> AdmissionRules:
        """Parse rules; raises ``ConfigError``."""
        return parse_rules(text, source=self.source, promisable=promisable)

    def write(self, update: RulesUpdate) -> bool:
        """Write rules into the file; return False if that is not possible."""
        if not self._path:
            return False
        path = os.path.realpath(self._path)
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else _NEW_FILE_MODE
            replace_file(Disk(), path, update.text.encode("utf-8"), mode=mode)
            os.utime(path, ns=(update.at_ns, update.at_ns))
        except OSError as error:
            self._warn(f"{path} is not written: {error}")
            return False
        self._loaded_state = self._current_state()
        return True
