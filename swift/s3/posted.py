"""A browser's form for a bucket as it arrives: small fields kept whole, its file as the body of an upload."""

from __future__ import annotations

from typing import NoReturn

from swift.http.request import Request
from swift.middleware.formpost.form import Form, FormFileBody, parse_parameters
from swift.s3.errors import RefusedBody, S3Error

#: Bytes of all fields together, and how many there may be.
FIELDS_BYTES_MAX, FIELDS_MAX = 64 << 10, 200


def is_form(request: Request) -> bool:
    """Whether a request is a form of a browser for something that is no account of Swift's."""
    return request.method == "POST" and "/" not in request.raw_path.strip("/") and bool(boundary_of(request))


def boundary_of(request: Request) -> str:
    """What separates the parts of a form; empty for what is none."""
    kind, parameters = parse_parameters(request.headers.get("content-type", ""))
    return parameters.get("boundary", "") if kind.lower() == "multipart/form-data" else ""


class PostedForm:
    """The fields before the file, names in lower case, and the file."""

    def __init__(self, form: Form):
        self.fields: dict[str, str] = {}
        self.file_name = ""
        self._form = form

    def read_fields(self) -> None:
        """Read up to the file; raises ``S3Error`` when there is none."""
        left = FIELDS_BYTES_MAX
        while (headers := self._form.next_part()) is not None:
            _, about = parse_parameters(headers.get("content-disposition", ""))
            name = _text(about.get("name", "").encode("latin-1", "replace")).lower()
            if name == "file":
                self._begin_file(about)
                return
            value = self._value(left)
            left -= len(value) + len(name)
            if name in self.fields or len(self.fields) >= FIELDS_MAX:
                # Whoever signed the policy must have seen what is believed.
                raise S3Error("InvalidArgument", "A form has a field twice, or too many fields.")
            if name:
                self.fields[name] = _text(value)
        raise S3Error("InvalidArgument", "POST requires exactly one file upload per request.")

    def _value(self, left: int) -> bytes:
        pieces, size = [], 0
        while data := self._form.data():
            size += len(data)
            if size > left:
                raise S3Error("MaxPostPreDataLengthExceededError")
            pieces.append(data)
        return b"".join(pieces)

    def _begin_file(self, about: dict[str, str]) -> None:
        name = _text(about.get("filename", "").encode("latin-1", "replace"))
        # Some browsers send the whole path.
        self.file_name = name.replace("\\", "/").rpartition("/")[2]

    def name_file(self, variable: str) -> None:
        """Put the file's name in the place of a variable in every field.

        Raises ``S3Error`` when the fields become larger than they may be.
        """
        more = max(0, len(self.file_name) - len(variable))
        left = FIELDS_BYTES_MAX - sum(map(len, self.fields.values()))
        for name, text in self.fields.items():
            if variable in text and name != "policy":
                left -= text.count(variable) * more
                if left < 0:
                    raise S3Error("MaxPostPreDataLengthExceededError")
                self.fields[name] = text.replace(variable, self.file_name)

    def file(self, size_min: int, size_max: int) -> PostedFile:
        """The file as a body."""
        return PostedFile(self._form, size_min, size_max)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeError:
        raise S3Error("InvalidArgument", "The fields of a form must be UTF-8.")


class PostedFile(FormFileBody):
    """The file of a form; raises ``RefusedBody`` when it is smaller or larger than it may be."""

    def __init__(self, form: Form, size_min: int, size_max: int):
        super().__init__(form)
        self._size_min, self._size_max = size_min, size_max
        #: Why it was refused: others turn that into a status before we hear of it.
        self.problem: S3Error | None = None

    def judge(self, *, is_whole: bool) -> None:
        """See ``FormFileBody``."""
        if self.received > self._size_max:
            details = {"ProposedSize": self.received, "MaxSizeAllowed": self._size_max}
            self._refuse(S3Error("EntityTooLarge", details=details))
        if is_whole and self.received < self._size_min:
            details = {"ProposedSize": self.received, "MinSizeAllowed": self._size_min}
            self._refuse(S3Error("EntityTooSmall", details=details))

    def _refuse(self, problem: S3Error) -> NoReturn:
        self.problem = problem
        raise RefusedBody(problem)
