"""Every error that the S3 API answers: one table of code, status and text (spec: middleware.md §21).

Handlers raise ``S3Error``; the filter makes one document of it. What the rest of the pipeline refuses becomes
one of these in ``refusal``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from swift.base.errors import SwiftError
from swift.http.body import BodyError
from swift.http.headers import HeaderMap


class Meaning(NamedTuple):
    """Status and text of a code."""

    status: int
    text: str


#: Code → its status and text.
ERRORS: dict[str, Meaning] = {
    "AccessControlListNotSupported": Meaning(400, "The bucket does not allow ACLs."),
    "AccessDenied": Meaning(403, "Access Denied."),
    "AccessForbidden": Meaning(403, "Access Forbidden."),
    "AuthorizationHeaderMalformed": Meaning(
        400,
        "The authorization header is malformed; the authorization header requires three components: "
        "Credential, SignedHeaders, and Signature.",
    ),
    "AuthorizationQueryParametersError": Meaning(400, "Error parsing the credential of the query."),
    "BadDigest": Meaning(400, "The Content-MD5 you specified did not match what we received."),
    "BadRequest": Meaning(400, "The request is not valid."),
    "BrokenMPU": Meaning(409, "Multipart upload has broken segment data."),
    "BucketAlreadyExists": Meaning(
        409,
        "The requested bucket name is not available. The bucket name can not be an existing collection, and "
        "the bucket namespace is shared by all users of the system. Please select a different name and try "
        "again.",
    ),
    "BucketAlreadyOwnedByYou": Meaning(
        409, "Your previous request to create the named bucket succeeded and you already own it."
    ),
    "BucketNotEmpty": Meaning(409, "The bucket you tried to delete is not empty."),
    "ConditionalRequestConflict": Meaning(
        409, "A conflicting conditional operation is currently in progress. Try again."
    ),
    "EntityTooLarge": Meaning(400, "Your proposed upload exceeds the maximum allowed object size."),
    "EntityTooSmall": Meaning(400, "Your proposed upload is smaller than the minimum allowed object size."),
    "IllegalVersioningConfigurationException": Meaning(
        400, "The Versioning configuration specified in the request is invalid."
    ),
    "IncompleteBody": Meaning(
        400, "You did not provide the number of bytes specified by the Content-Length HTTP header"
    ),
    "InternalError": Meaning(500, "We encountered an internal error, please try again."),
    "InvalidAccessKeyId": Meaning(403, "The AWS Access Key Id you provided does not exist in our records."),
    "InvalidArgument": Meaning(400, "Invalid Argument."),
    "InvalidBucketAclWithObjectOwnership": Meaning(
        400, "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting"
    ),
    "InvalidBucketName": Meaning(400, "The specified bucket is not valid."),
    "InvalidBucketState": Meaning(409, "The request is not valid with the current state of the bucket."),
    "InvalidChunkSizeError": Meaning(
        403, "Only the last chunk is allowed to have a size less than 8192 bytes"
    ),
    "InvalidDigest": Meaning(400, "The Content-MD5 you specified was invalid."),
    "InvalidEncryptionAlgorithmError": Meaning(
        400, "The encryption request you specified is not valid. Supported value: AES256."
    ),
    "InvalidLocationConstraint": Meaning(400, "The specified location-constraint is not valid"),
    "InvalidPart": Meaning(
        400,
        "One or more of the specified parts could not be found.  The part may not have been uploaded, or the "
        "specified entity tag may not match the part's entity tag.",
    ),
    "InvalidPartNumber": Meaning(416, "The requested partnumber is not satisfiable"),
    "InvalidPartOrder": Meaning(
        400,
        "The list of parts was not in ascending order.Parts list must specified in order by part number.",
    ),
    "InvalidPolicyDocument": Meaning(
        400, "The content of the form does not meet the conditions specified in the policy document."
    ),
    "InvalidRange": Meaning(416, "The requested range cannot be satisfied."),
    "InvalidRedirectLocation": Meaning(
        400, "The website redirect location must have a prefix of 'http://' or 'https://' or '/'."
    ),
    "InvalidRequest": Meaning(400, "Invalid Request."),
    "InvalidS3DestinationBucket": Meaning(400, "S3 destination bucket is invalid."),
    "InvalidStorageClass": Meaning(400, "The storage class you specified is not valid."),
    "InvalidTargetBucketForLogging": Meaning(
        400, "The target bucket for logging does not exist, is not owned by you, or is not appropriate."
    ),
    "InvalidTag": Meaning(400, "The tag provided was not a valid tag."),
    "InvalidURI": Meaning(400, "Couldn't parse the specified URI."),
    "KeyTooLongError": Meaning(400, "Your key is too long."),
    "MalformedACLError": Meaning(
        400, "The XML you provided was not well-formed or did not validate against our published schema."
    ),
    "MalformedPolicy": Meaning(400, "The policy is not in the valid JSON format."),
    "MalformedTrailerError": Meaning(
        400,
        "The request contained trailing data that was not well-formed or did not conform to our "
        "published schema.",
    ),
    "MalformedXML": Meaning(
        400, "The XML you provided was not well-formed or did not validate against our published schema"
    ),
    "MaxMessageLengthExceeded": Meaning(400, "Your request was too big."),
    "MaxPostPreDataLengthExceededError": Meaning(
        400, "Your POST request fields preceding the upload file were too large."
    ),
    "MetadataTooLarge": Meaning(400, "Your metadata headers exceed the maximum allowed metadata size"),
    "MethodNotAllowed": Meaning(405, "The specified method is not allowed against this resource."),
    "MissingContentLength": Meaning(411, "You must provide the Content-Length HTTP header."),
    "MissingRequestBodyError": Meaning(400, "Request Body is empty"),
    "MissingSecurityHeader": Meaning(400, "Your request was missing a required header."),
    "NoLoggingStatusForKey": Meaning(
        400, "There is no such thing as a logging status sub-resource for a key."
    ),
    "NoSuchBucket": Meaning(404, "The specified bucket does not exist."),
    "NoSuchBucketPolicy": Meaning(404, "The bucket policy does not exist."),
    "NoSuchCORSConfiguration": Meaning(404, "The CORS configuration does not exist"),
    "NoSuchConfiguration": Meaning(404, "The specified configuration does not exist."),
    "NoSuchKey": Meaning(404, "The specified key does not exist."),
    "NoSuchLifecycleConfiguration": Meaning(404, "The lifecycle configuration does not exist."),
    "NoSuchPublicAccessBlockConfiguration": Meaning(
        404, "The public access block configuration was not found"
    ),
    "NoSuchObjectLockConfiguration": Meaning(
        404, "The specified object does not have a ObjectLock configuration."
    ),
    "NoSuchTagSet": Meaning(404, "The TagSet does not exist."),
    "NoSuchUpload": Meaning(
        404,
        "The specified multipart upload does not exist. The upload ID might be invalid, or the multipart "
        "upload might have been aborted or completed.",
    ),
    "NoSuchVersion": Meaning(404, "The specified version does not exist."),
    "NoSuchWebsiteConfiguration": Meaning(404, "The specified bucket does not have a website configuration"),
    "NotImplemented": Meaning(501, "A header you provided implies functionality that is not implemented."),
    "ObjectLockConfigurationNotFoundError": Meaning(
        404, "Object Lock configuration does not exist for this bucket."
    ),
    "OperationAborted": Meaning(
        409,
        "A conflicting conditional operation is currently in progress against this resource. Please "
        "try again.",
    ),
    "OwnershipControlsNotFoundError": Meaning(404, "The bucket ownership controls were not found."),
    "PreconditionFailed": Meaning(412, "At least one of the preconditions you specified did not hold."),
    "RequestTimeTooSkewed": Meaning(
        403, "The difference between the request time and the current time is too large."
    ),
    "RequestTimeout": Meaning(
        400, "Your socket connection to the server was not read from or written to within the timeout period."
    ),
    "ServiceUnavailable": Meaning(503, "Please reduce your request rate."),
    "ServerSideEncryptionConfigurationNotFoundError": Meaning(
        404, "The server side encryption configuration was not found"
    ),
    "SignatureDoesNotMatch": Meaning(
        403,
        "The request signature we calculated does not match the signature you provided. Check your key and "
        "signing method.",
    ),
    "SlowDown": Meaning(503, "Please reduce your request rate."),
    "TooManyConfigurations": Meaning(
        400, "You are attempting to create a new configuration but have already reached the limit."
    ),
    "TooManyBuckets": Meaning(400, "You have attempted to create more buckets than allowed."),
    "UnexpectedContent": Meaning(400, "This request does not support content."),
    "UserKeyMustBeSpecified": Meaning(400, "The bucket POST must contain the specified field name."),
    "XAmzContentSHA256Mismatch": Meaning(
        400, "The provided 'x-amz-content-sha256' header does not match what was computed."
    ),
}


class S3Error(SwiftError):
    """Answers with the error document of ``code``; ``text`` and ``details`` say more than the table."""

    def __init__(
        self,
        code: str,
        text: str | None = None,
        *,
        details: Mapping[str, object] | None = None,
        headers: HeaderMap | None = None,
        reason: str = "",
    ):
        meaning = ERRORS[code]
        self.code = code
        self.status = meaning.status
        self.text = text or meaning.text
        #: More elements of the document, names as they stand there.
        self.details = dict(details or {})
        self.headers = dict(headers or {})
        #: What metrics and the access log add to the code.
        self.reason = reason
        super().__init__(f"{self.status} {code}: {self.text}")

    @property
    def metric(self) -> str:
        """``403.AccessDenied.invalid_date``."""
        return ".".join(filter(None, (str(self.status), self.code, self.reason)))


class RefusedBody(BodyError):
    """A body that is not what its sender promised: nothing of it is stored, ``problem`` is the answer."""

    def __init__(self, problem: S3Error):
        super().__init__(problem.text)
        self.problem = problem
        # What others make of it must look like no refusal of their own.
        self.status = 400


#: Status of the rest of the pipeline → code, where it means one thing everywhere.
_REFUSALS = {
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
    503: "ServiceUnavailable",
    507: "ServiceUnavailable",
}


def refusal(status: int, *, missing: str = "NoSuchKey", conflict: str = "ServiceUnavailable") -> S3Error:
    """Return the S3 error for a status of the rest of the pipeline."""
    code = missing if status == 404 else conflict if status == 409 else _REFUSALS.get(status)
    if code is None:
        code = "InvalidRequest" if 400 <= status <= 499 else "InternalError"
    headers = {"connection": "close"} if code == "RequestTimeout" else {}
    return S3Error(code, headers=headers)
