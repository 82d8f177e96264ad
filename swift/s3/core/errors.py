"""Errors of the S3 API: one table of code, status and text (spec: middleware.md §21).

Handlers raise ``S3Error``; the filter renders one XML document from it. ``error_for_status`` maps error
statuses of the rest of the pipeline to S3 errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from swift.base.errors import SwiftError
from swift.http.body import BodyError
from swift.http.headers import HeaderMap


class ErrorDefinition(NamedTuple):
    """Status and text of a code."""

    status: int
    text: str


#: Status, code and text of each error; an indented line continues a long text.
_ERROR_TABLE = """\
400 AccessControlListNotSupported The bucket does not allow ACLs.
403 AccessDenied Access Denied.
403 AccessForbidden Access Forbidden.
400 AuthorizationHeaderMalformed The authorization header is malformed; the authorization header requires
    three components: Credential, SignedHeaders, and Signature.
400 AuthorizationQueryParametersError Error parsing the credential of the query.
400 BadDigest The Content-MD5 you specified did not match what we received.
400 BadRequest The request is not valid.
409 BrokenMPU Multipart upload has broken segment data.
409 BucketAlreadyExists The requested bucket name is not available. The bucket name can not be an
    existing collection, and the bucket namespace is shared by all users of the system. Please select a
    different name and try again.
409 BucketAlreadyOwnedByYou Your previous request to create the named bucket succeeded and you already
    own it.
409 BucketNotEmpty The bucket you tried to delete is not empty.
409 ConditionalRequestConflict A conflicting conditional operation is currently in progress. Try again.
400 EntityTooLarge Your proposed upload exceeds the maximum allowed object size.
400 EntityTooSmall Your proposed upload is smaller than the minimum allowed object size.
400 IllegalVersioningConfigurationException The Versioning configuration specified in the request is
    invalid.
400 IncompleteBody You did not provide the number of bytes specified by the Content-Length HTTP header
500 InternalError We encountered an internal error, please try again.
403 InvalidAccessKeyId The AWS Access Key Id you provided does not exist in our records.
400 InvalidArgument Invalid Argument.
400 InvalidBucketAclWithObjectOwnership Bucket cannot have ACLs set with ObjectOwnership's
    BucketOwnerEnforced setting
400 InvalidBucketName The specified bucket is not valid.
409 InvalidBucketState The request is not valid with the current state of the bucket.
403 InvalidChunkSizeError Only the last chunk is allowed to have a size less than 8192 bytes
400 InvalidDigest The Content-MD5 you specified was invalid.
400 InvalidEncryptionAlgorithmError The encryption request you specified is not valid. Supported value:
    AES256.
400 InvalidLocationConstraint The specified location-constraint is not valid
400 InvalidPart One or more of the specified parts could not be found.  The part may not have been
    uploaded, or the specified entity tag may not match the part's entity tag.
416 InvalidPartNumber The requested partnumber is not satisfiable
400 InvalidPartOrder The list of parts was not in ascending order.Parts list must specified in order by
    part number.
400 InvalidPolicyDocument The content of the form does not meet the conditions specified in the policy
    document.
416 InvalidRange The requested range cannot be satisfied.
400 InvalidRedirectLocation The website redirect location must have a prefix of 'http://' or 'https://'
    or '/'.
400 InvalidRequest Invalid Request.
400 InvalidS3DestinationBucket S3 destination bucket is invalid.
400 InvalidStorageClass The storage class you specified is not valid.
400 InvalidTargetBucketForLogging The target bucket for logging does not exist, is not owned by you, or
    is not appropriate.
400 InvalidTag The tag provided was not a valid tag.
400 InvalidURI Couldn't parse the specified URI.
400 KeyTooLongError Your key is too long.
400 MalformedACLError The XML you provided was not well-formed or did not validate against our published
    schema.
400 MalformedPolicy The policy is not in the valid JSON format.
400 MalformedTrailerError The request contained trailing data that was not well-formed or did not conform
    to our published schema.
400 MalformedXML The XML you provided was not well-formed or did not validate against our published schema
400 MaxMessageLengthExceeded Your request was too big.
400 MaxPostPreDataLengthExceededError Your POST request fields preceding the upload file were too large.
400 MetadataTooLarge Your metadata headers exceed the maximum allowed metadata size
405 MethodNotAllowed The specified method is not allowed against this resource.
411 MissingContentLength You must provide the Content-Length HTTP header.
400 MissingRequestBodyError Request Body is empty
400 MissingSecurityHeader Your request was missing a required header.
400 NoLoggingStatusForKey There is no such thing as a logging status sub-resource for a key.
404 NoSuchBucket The specified bucket does not exist.
404 NoSuchBucketPolicy The bucket policy does not exist.
404 NoSuchCORSConfiguration The CORS configuration does not exist
404 ReplicationConfigurationNotFoundError The replication configuration was not found.
404 NoSuchConfiguration The specified configuration does not exist.
404 NoSuchKey The specified key does not exist.
404 NoSuchLifecycleConfiguration The lifecycle configuration does not exist.
404 NoSuchPublicAccessBlockConfiguration The public access block configuration was not found
404 NoSuchObjectLockConfiguration The specified object does not have a ObjectLock configuration.
404 NoSuchTagSet The TagSet does not exist.
404 NoSuchUpload The specified multipart upload does not exist. The upload ID might be invalid, or the
    multipart upload might have been aborted or completed.
404 NoSuchVersion The specified version does not exist.
404 NoSuchWebsiteConfiguration The specified bucket does not have a website configuration
501 NotImplemented A header you provided implies functionality that is not implemented.
404 ObjectLockConfigurationNotFoundError Object Lock configuration does not exist for this bucket.
409 OperationAborted A conflicting conditional operation is currently in progress against this resource.
    Please try again.
404 OwnershipControlsNotFoundError The bucket ownership controls were not found.
412 PreconditionFailed At least one of the preconditions you specified did not hold.
403 RequestTimeTooSkewed The difference between the request time and the current time is too large.
400 RequestTimeout Your socket connection to the server was not read from or written to within the
    timeout period.
503 ServiceUnavailable Please reduce your request rate.
404 ServerSideEncryptionConfigurationNotFoundError The server side encryption configuration was not found
403 SignatureDoesNotMatch The request signature we calculated does not match the signature you provided.
    Check your key and signing method.
503 SlowDown Please reduce your request rate.
400 TooManyConfigurations You are attempting to create a new configuration but have already reached the
    limit.
400 TooManyBuckets You have attempted to create more buckets than allowed.
400 UnexpectedContent This request does not support content.
400 UserKeyMustBeSpecified The bucket POST must contain the specified field name.
400 XAmzContentSHA256Mismatch The provided 'x-amz-content-sha256' header does not match what was computed.
"""
#: Code → its status and text.
ERRORS: dict[str, ErrorDefinition] = {}
for _row in _ERROR_TABLE.replace("\n    ", " ").splitlines():
    _status, _code, _text = _row.split(" ", 2)
    ERRORS[_code] = ErrorDefinition(int(_status), _text)


class S3Error(SwiftError):
    """An error response of the S3 API; ``text`` and ``details`` add to the table's entry for ``code``."""

    def __init__(
        self,
        code: str,
        text: str | None = None,
        *,
        details: Mapping[str, object] | None = None,
        headers: HeaderMap | None = None,
        reason: str = "",
    ):
        definition = ERRORS[code]
        self.code = code
        self.status = definition.status
        self.text = text or definition.text
        #: More elements of the error document, by name.
        self.details = dict(details or {})
        self.headers = dict(headers or {})
        #: Added to the code in metrics and the access log.
        self.reason = reason
        super().__init__(f"{self.status} {code}: {self.text}")

    @property
    def metric_suffix(self) -> str:
        """The status, code and reason in a metric's name: ``403.AccessDenied.invalid_date``."""
        return ".".join(filter(None, (str(self.status), self.code, self.reason)))


def argument_error(name: str, value: str, text: str | None = None) -> S3Error:
    """Return the 400 error for an argument; ``value`` is text, not the Latin-1 view of a header."""
    return S3Error("InvalidArgument", text, details={"ArgumentName": name, "ArgumentValue": value})


def invalid_request(text: str) -> S3Error:
    """Return the 400 error for a request that contradicts itself or a limit."""
    return S3Error("InvalidRequest", text)


class RejectedBody(BodyError):
    """A body that violates the declarations of its headers; ``s3_error`` is the response."""

    def __init__(self, s3_error: S3Error):
        super().__init__(s3_error.text)
        self.s3_error = s3_error
        # Other filters map this status; it must not look like an error of theirs.
        self.status = 400


#: Status of the rest of the pipeline → code, where it means one thing everywhere.
_CODE_OF_STATUS = {
    401: "SignatureDoesNotMatch",
    403: "AccessDenied",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    411: "MissingContentLength",
    412: "PreconditionFailed",
    413: "EntityTooLarge",
    416: "InvalidRange",
    422: "BadDigest",
    429: "SlowDown",
    498: "SlowDown",
    499: "RequestTimeout",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    507: "ServiceUnavailable",
}


def error_for_status(
    status: int, *, missing: str = "NoSuchKey", conflict: str = "ServiceUnavailable"
) -> S3Error:
    """Return the S3 error for an error status of the rest of the pipeline."""
    code = missing if status == 404 else conflict if status == 409 else _CODE_OF_STATUS.get(status)
    if code is None:
        code = "InvalidRequest" if 400 <= status <= 499 else "InternalError"
    headers = {"connection": "close"} if code == "RequestTimeout" else {}
    return S3Error(code, headers=headers)
