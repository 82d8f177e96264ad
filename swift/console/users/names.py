"""Names of buckets and objects in queries and forms.

Pages put names into addresses, where every character is quoted. Browsers change line ends in the values of
forms, so names in the values of check boxes and hidden fields are quoted as well.
"""

from __future__ import annotations

from urllib.parse import unquote

from swift.console.core.api import Api, ApiError
from swift.console.core.web import BadForm, Fields
from swift.s3.core.names import is_bucket_name


def bucket_of(fields: Fields) -> str:
    """Return the bucket that a request names; raises ``BadForm``."""
    name = fields.text("bucket")
    if not name or "/" in name:
        raise BadForm("form.no_bucket")
    return name


def object_of(fields: Fields) -> tuple[str, str]:
    """Return the bucket and the object that a request names; raises ``BadForm``."""
    name = fields.text("name")
    if not name:
        raise BadForm("form.no_object")
    return bucket_of(fields), name


def quoted_names(fields: Fields, field: str) -> list[str]:
    """Return the names in the quoted values of a form's field; raises ``BadForm``."""
    try:
        return [unquote(value, errors="strict") for value in fields.all(field)]
    except UnicodeDecodeError:
        raise BadForm("form.name_utf8")


def is_s3_bucket(api: Api, bucket: str) -> bool:
    """Return True if the S3 API can name the bucket."""
    if is_bucket_name(bucket, dns=True):
        return True
    if not is_bucket_name(bucket, dns=False):
        return False
    # The settings of the S3 API decide about other names.
    try:
        api.s3("HEAD", bucket, also=(403, 404))
        return True
    except ApiError as error:
        return error.status != 400


def folder_of(name: str) -> str:
    """Return the prefix of the folder that an object is in."""
    return name[: name.rstrip("/").rfind("/") + 1] if name.strip("/") else ""


def last_part(name: str) -> str:
    """Return the part of a name after its last slash; a slash at the end does not count."""
    return name.rstrip("/").rpartition("/")[2]
