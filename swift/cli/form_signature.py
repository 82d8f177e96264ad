"""swift-form-signature: sign a form by which a browser may upload without an account.

spec: cli-and-config.md §12, middleware.md on formpost
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from swift.base.entity import BadPath, split_path
from swift.config.commandline import CommandLine, print_report, reports_errors

DIGESTS = ("sha1", "sha256", "sha512")
_NOTE = """
NOTE: the <form> tag's "action" attribute does not contain the Swift cluster's hostname.
You should manually add it before using the form.
"""


class InvalidArgument(Exception):
    """An argument cannot be signed; the text is the error message."""


@dataclass(frozen=True)
class SignedForm:
    """Fields that the signature covers."""

    path: str
    redirect: str
    size_max: int
    count_max: int
    expires: int

    def sign(self, key: str, digest: str) -> str:
        """Return the signature in hex digits."""
        text = f"{self.path}\n{self.redirect}\n{self.size_max}\n{self.count_max}\n{self.expires}"
        return hmac.new(key.encode(), text.encode(), getattr(hashlib, digest)).hexdigest()

    def html(self, signature: str) -> Iterator[str]:
        """Yield a form with everything in it."""
        yield f'<form action="{self.path}" method="POST" enctype="multipart/form-data">'
        if self.redirect:
            yield f'  <input type="hidden" name="redirect" value="{self.redirect}" />'
        for name, value in (
            ("max_file_size", self.size_max),
            ("max_file_count", self.count_max),
            ("expires", self.expires),
            ("signature", signature),
        ):
            yield f'  <input type="hidden" name="{name}" value="{value}" />'
        yield f"  <!-- This signature allows for at most {self.count_max} files, -->"
        yield "  <!-- but it may also have any smaller number. -->"
        yield "  <!-- Remove file inputs as needed. -->"
        for number in range(self.count_max):
            yield f'  <input type="file" name="file{number}" />'
            yield "  <br />"
        yield '  <input type="submit" />'
        yield "</form>"


def parse(args: argparse.Namespace, now_s: float) -> SignedForm:
    """Return the form that the arguments describe. Raises ``InvalidArgument``."""
    size_max = _number(args.max_file_size)
    if size_max is None or size_max < 0:
        raise InvalidArgument("Please use a <max_file_size> value greater than or equal to 0.")
    count_max = _number(args.max_file_count)
    if count_max is None or count_max < 1:
        raise InvalidArgument("Please use a positive <max_file_count> value.")
    seconds = _number(args.seconds)
    if seconds is None:
        raise InvalidArgument("Please use a whole number of <seconds>.")
    try:
        split_path(args.path, 3, 4, rest_with_last=True)
    except BadPath:
        raise InvalidArgument(
            "<path> must point to a container at least.\n"
            "For example: /v1/account/container\n"
            "         Or: /v1/account/container/object_prefix"
        )
    return SignedForm(args.path, args.redirect, size_max, count_max, int(now_s + seconds))


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-form-signature",
        description="Sign a form by which a browser may upload without an account.",
        epilog="example: swift-form-signature /v1/AUTH_test/c https://example.com/done 10485760 5 3600 key",
    )
    add = parser.add_argument
    add("path", help="/v1/account/container[/prefix]")
    add("redirect", help="where the browser goes afterwards; may be empty")
    add("max_file_size", help="bytes that a file may have")
    add("max_file_count", help="files that may be uploaded")
    add("seconds", help="seconds from now for which the form is good")
    add("key", help="the X-Account-Meta-Temp-URL-Key of the account")
    add("--digest", choices=DIGESTS, default="sha1", help="how to sign; formpost must allow it (%(default)s)")
    parser.add_format("how to show it")
    return parser


@reports_errors("swift-form-signature", plain=(InvalidArgument,))
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser()
    if not words:
        parser.print_help()
        return 1
    # A number of seconds may be below zero, which is no option.
    args = parser.parse_args(words if "--" in words else _options_first(words))
    form = parse(args, time.time())
    signature = form.sign(args.key, args.digest)
    html = list(form.html(signature))
    facts = {"expires": form.expires, "signature": signature, "html": "\n".join(html)}
    head = f"  Expires: {form.expires}\nSignature: {signature}\n\nSample form:\n{_NOTE}"
    print_report(args, facts, [head, *html], indent=None)
    return 0


def _options_first(words: Sequence[str]) -> list[str]:
    """Return the words with options first, and the others after ``--``."""
    options: list[str] = []
    rest: list[str] = []
    source = iter(words)
    for word in source:
        if word in ("-h", "--help", "--version") or word.startswith(("--digest=", "--format=")):
            options.append(word)
        elif word in ("--digest", "--format"):
            options += [word, next(source, "")]
        else:
            rest.append(word)
    return [*options, "--", *rest]


if __name__ == "__main__":
    raise SystemExit(main())
