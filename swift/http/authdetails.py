"""Facts about a signed request that the S3 filter passes to authentication filters (spec: middleware.md
§22.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NotRequired, TypedDict


class AuthDetails(TypedDict):
    """The value of ``s3api.auth_details``."""

    access_key: str
    signature: str
    string_to_sign: bytes
    #: Other texts that clients sign for the same request.
    alternative_strings_to_sign: tuple[bytes, ...]
    #: True if the signature is the one of this secret.
    check_signature: Callable[[str], bool]
    #: The token of a temporary access key; empty for none.
    session_token: NotRequired[str]
    #: The signer that a filter has found, for later requests with the same details.
    signer: NotRequired[object]
