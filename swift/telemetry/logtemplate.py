"""Access lines in a format of the operator's: ``log_msg_template`` and ``log_format`` (spec: proxy.md §16).

A template holds fields in braces. ``{path.anonymized}`` is a hash of the field, and moments have attributes:
``{end_time.iso8601}``, ``{time.H}``. A template is checked when it is compiled, so that a field that does
not exist stops the server at its start and not the requests that follow.
"""

from __future__ import annotations

import hashlib
import string
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from swift.base.errors import ConfigError

#: A field that is missing.
EMPTY = "-"
#: The directives of strftime(3) that are attributes of moments.
_DIRECTIVES = frozenset("aAbBcdHIjmMpSUwWxXyYZ")
_DATETIME = "%d/%b/%Y/%H/%M/%S"

#: The values of one line. A float is a moment or a duration, None a missing value.
Values = Mapping[str, str | float | None]


class Anonymizer:
    """Hashes values: ``{MD5}…``, or ``{SMD5}…`` of the salt and the value.

    ``method`` is a name that ``hashlib`` knows, in any case. Raises ``ConfigError`` for another one.
    """

    def __init__(self, method: str = "MD5", salt: str = ""):
        name = method.lower()
        if name not in hashlib.algorithms_guaranteed or name.startswith("shake"):
            raise ConfigError(f"log_anonymization_method must be a hash such as SHA256, not {method!r}")
        self._name = name
        self._salt = salt.encode()
        self._label = f"{{{'S' if salt else ''}{method.upper()}}}"

    def __call__(self, value: str) -> str:
        """Return the labelled hash of a value."""
        digest = hashlib.new(self._name, usedforsecurity=False)
        digest.update(self._salt + value.encode("utf-8", "surrogateescape"))
        return self._label + digest.hexdigest()


@dataclass(frozen=True)
class TemplateFields:
    """The fields that a template may name."""

    plain: Collection[str]
    #: Fields that have ``.anonymized`` as well.
    anonymous: Collection[str]
    #: Unix seconds, which have attributes.
    moments: Collection[str]

    def refuse(self, name: str, option: str) -> ConfigError:
        """Return the error for a field that does not exist."""
        known = ", ".join(sorted({*self.plain, *self.anonymous, *self.moments}))
        return ConfigError(f"{option}: there is no field {{{name}}}; fields are: {known}")


#: Makes the text of one field.
_Render = Callable[[Values], str]


class LogTemplate:
    """A compiled template. ``quote`` encodes every value that is put in.

    Raises ``ConfigError`` naming ``option`` for unbalanced braces and unknown fields.
    """

    def __init__(
        self,
        text: str,
        fields: TemplateFields,
        *,
        option: str,
        anonymize: Callable[[str], str],
        quote: Callable[[str], str] = str,
    ):
        self._fields = fields
        self._option = option
        self._anonymize = anonymize
        self._quote = quote
        self._parts: list[str | _Render] = []
        try:
            for literal, name, spec, conversion in string.Formatter().parse(text):
                if literal:
                    self._parts.append(literal)
                if name is not None:
                    if conversion:
                        raise ValueError(f"conversion !{conversion} is not supported")
                    self._parts.append(self._field(name, spec or ""))
        except ValueError as error:
            raise ConfigError(f"{option}: {error}")

    def line(self, values: Values) -> str:
        """Return the line of a request."""
        return "".join(part if isinstance(part, str) else part(values) for part in self._parts)

    def _field(self, name: str, spec: str) -> _Render:
        base, dot, attribute = name.partition(".")
        fields = self._fields
        if base in fields.moments and (not dot or attribute in _MOMENTS or attribute in _DIRECTIVES):
            return self._moment(base, attribute)
        if dot and attribute == "anonymized" and base in fields.anonymous:
            return self._anonymized(base)
        if dot or (base not in fields.plain and base not in fields.anonymous):
            raise fields.refuse(name, self._option)
        return self._value(base, spec)

    def _value(self, name: str, spec: str) -> _Render:
        if spec:
            # A precision is for numbers only; checked here so that no request meets the error.
            try:
                format(0.0, spec)
            except ValueError:
                raise ConfigError(f"{self._option}: {{{name}:{spec}}} is no number format")

        def render(values: Values) -> str:
            value = values.get(name)
            if value is None or value == "":
                return EMPTY
            if isinstance(value, float):
                return format(value, spec)
            return self._quote(value)

        return render

    def _anonymized(self, name: str) -> _Render:
        def render(values: Values) -> str:
            value = values.get(name)
            return self._quote(self._anonymize(str(value))) if value not in (None, "") else EMPTY

        return render

    def _moment(self, name: str, attribute: str) -> _Render:
        make = _MOMENTS.get(attribute) or (lambda at: time.strftime(f"%{attribute}", time.gmtime(at)))

        def render(values: Values) -> str:
            value = values.get(name)
            return self._quote(make(value)) if isinstance(value, float) else EMPTY

        return render


def with_txid(line: str, txid: str | None) -> str:
    """Return the line with the transaction id at its end, unless it has it."""
    return line if not txid or txid in line else f"{line} (txn: {txid})"


def _fraction(at: float, digits: int) -> str:
    """Return the decimals of a moment."""
    return f"{at:.9f}".partition(".")[2][:digits]


_MOMENTS: dict[str, Callable[[float], str]] = {
    "": lambda at: f"{at:.9f}",
    "datetime": lambda at: time.strftime(_DATETIME, time.gmtime(at)),
    "iso8601": lambda at: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)),
    "asctime": lambda at: time.asctime(time.gmtime(at)),
    "s": lambda at: f"{int(at)}",
    "ms": lambda at: _fraction(at, 3),
    "us": lambda at: _fraction(at, 6),
    "ns": lambda at: _fraction(at, 9),
}
