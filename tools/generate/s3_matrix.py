"""``doc/reference/s3-operations.md``, from the table of operations and their handlers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from swift.s3.core.checksums import ALGORITHMS
from swift.s3.core.router import OPERATIONS, Operation, PathLevel
from swift.s3.filter import HANDLERS

_HEAD = """# The S3 API

`python -m tools.generate` makes this page from the table of operations (`swift/s3/core/router.py`) and
from the handlers. The state of an operation is *supported* or `501`. An unsupported operation always gets
`501 NotImplemented`; the server never ignores a sub-resource and runs the plain operation instead. Other
unknown query parameters are ignored, with one exception. A write with an unknown parameter that has no
value gets `501` too: it may be a sub-resource of a later AWS release, and its document would overwrite the
object.

A bucket is a container of the caller's account, and a key is the name of an object. The access key is
`account:user` of tempauth, or an access key of Keystone with the filter `s3token`. To address a bucket of
another account, put the account before it: `/AUTH_other:bucket/key`, also as the source of a copy. The page
[access by the S3 API](../explanation/s3-access.md) explains permissions.

## Behaviour

- **Signatures.** Versions 4 and 2 are accepted, in headers and in presigned URLs. The clocks of client and
  server may differ by `allowable_clock_skew`. Bodies in `aws-chunked` framing may be signed or unsigned and
  may have trailers. A version 4 presigned URL is valid only for requests whose `x-amz-*` headers are all
  signed. Headers that a presigner moved into the query are treated as headers: `x-amz-*`, `Content-Type`,
  `Content-MD5`, and in version 4 also `Cache-Control`, `Content-Disposition`, `Content-Encoding` and
  `Content-Language`. Version 2 signs every sub-resource of the tables below, `versionId`, `partNumber` and
  `response-*`; in headers, clients may leave out those that SDKs do not sign (`attributes`, `encryption`,
  `retention`).
- **Checksums.** The algorithms are {algorithms}.
  A checksum is verified before the object becomes visible, stored with the object, and returned. Multipart
  objects get a composite checksum, or one of the full object if the algorithm allows it. An upload without a
  checksum gets CRC64NVME, as with AWS, if it has at most 64 KiB and the erasure code library can compute
  CRC64NVME; for larger bodies the cost would be too high. Listings of objects do not show the checksum
  algorithm, because the container row would show it to clients of Swift's API.
- **Conditional writes.** PutObject, CompleteMultipartUpload, CopyObject and DeleteObject accept `If-Match` or
  `If-None-Match: *`. The store evaluates the condition and makes the change in one atomic step: of any
  number of concurrent clients at most one succeeds, even if nodes fail (decision 0011). Nodes of OpenStack
  Swift cannot guarantee this. If one of them is a primary of the object, a conditional write gets `501`. In
  a versioned bucket the condition applies to the link to the current version, and with `versionId` to that
  version. Other changes refuse conditions with `501`.
- **Versions.** The deletion of the current version makes the newest remaining version the current one.
  Concurrent deletions and uploads of one key leave the newest remaining version. An object from before
  versioning has the id `null`, also after later uploads. If versioning is suspended and enabled again, a key
  may have several such versions: the id stands for the newest one of them. A deletion that a newer write
  overtook gets `204` with the id of its delete marker.
- **Multipart uploads.** A multipart object becomes visible as a whole. Its parts are stored in
  `<bucket>+segments`, as in OpenStack Swift, and the object expirer deletes them after the object. An upload
  is either completed or aborted, never both. Of concurrent requests one succeeds and the others get
  `404 NoSuchUpload`; a repeated completion with the same parts, also at the same time, gets the same response
  (decision 0020). A
  part that is uploaded again, or too late, never changes a completed object. Parts that a completion does
  not name are deleted. `swift-s3-lifecycle` deletes the parts of overwritten and expired objects,
  interrupted requests and deleted buckets after `orphan_age` (one week). If a primary is a node of OpenStack
  Swift, completions and aborts race as they do there.
- **Part numbers and key lengths.** An upload has up to `max_upload_part_num` parts (`swift-aio`: 10,000). A
  key may have 973 bytes, or 956 if a part is uploaded again, because the names of parts are longer than the
  key. In a bucket with versioning a key may have 1,006 bytes, because the names of versions are longer.
  Longer keys get `KeyTooLongError`; AWS accepts 1,024 bytes. A deletion of such a key deletes the object
  from before versioning, without a delete marker.
- **Changes of metadata** (PutObjectAcl, PutObjectTagging, DeleteObjectTagging) apply to the version of the
  object that the server has read. If the object is overwritten at the same time, the response is
  `409 OperationAborted`. Of two concurrent changes of metadata the later one takes effect.
- **Times** of objects are rounded down to seconds, in listings, headers and results of copies. Conditions on
  dates compare these times. Swift's API rounds up, so its `Last-Modified` may be a second later.
- **Concurrent writes.** If a write is overtaken by a later write, it gets `200` with the ETag of its own
  bytes. If the stored object has a timestamp ahead of the proxy's clock, nothing is stored and the response
  is `503 ServiceUnavailable`, which SDKs retry. Clients of Swift's API get `202` in both cases.
- **X-Delete-At and X-Delete-After** of Swift's API set the expiry time of the object in PutObject,
  CopyObject and CompleteMultipartUpload. Other requests of a multipart upload only validate these headers,
  so that parts never expire before the object.
- **Listings** are eventually consistent by default: while a container server is down, recent changes may be
  missing. They are strongly consistent with `strong_listing = all` in the proxies, or with
  `strong_listing = marked` for buckets whose container has `X-Container-Meta-Strong-Listing: true` (decision
  0017). A strong listing shows every acknowledged change by any API, as long as no more than a minority of
  the container's servers is down or has lost its database. A change that did not reach a majority of the
  container's servers gets `503`, and so does a listing that a majority cannot answer. ListObjectVersions and
  the parts of uploads need `all`. Proxies cache the metadata of a container for a minute.
- **Tags** of an object are metadata: of two concurrent changes the later one takes effect. Only the owner
  of the bucket, or a user to whom a policy grants it, can change the tags of a noncurrent version.
- **Policies** of buckets are evaluated before ACLs, and an explicit Deny wins. They apply to the S3 API only.
- **Lifecycles** are carried out by `swift-s3-lifecycle`, once a day and after each change of the rules. Rules
  can expire objects by age, date, prefix, tags and size, and also noncurrent versions, delete markers and
  incomplete uploads, and can move objects and noncurrent versions to another storage class. The age counts
  from the last change of the object or of its tags. A bucket has up to 1,000 rules, which must have less
  than 24,000 bytes when they are compressed. For tests of clients `lifecycle_debug_interval` sets the seconds
  of a day, in `[filter:s3api]` and in `s3-lifecycle.conf`, as `rgw_lc_debug_interval` of Ceph does.
- **Inventories** are made by `swift-s3-lifecycle` too: CSV files and a manifest in AWS's format, daily or on
  Sundays (UTC), in a bucket of the same owner. The first one is made soon after the request. Available
  fields are those of listings: sizes, times, ETags, storage classes, versions. Other fields, ORC and Parquet
  get `501`. A bucket has up to ten inventories.
- **Server access logs** (PutBucketLogging) are written in AWS's format into a bucket of the same owner. Each
  proxy worker writes its entries every `log_delivery_seconds`; entries that it has not written when it ends
  are lost. There are no entries for requests with an unknown access key, for requests by Swift's API, and
  for daemons. Signatures of presigned URLs are removed.
- **Object lock** supports governance and compliance mode, legal holds and default retention, for versions.
  Object servers and a majority of an object's primaries enforce it (decision 0016). So Swift's DELETE, PUT
  and POST, bulk deletions, the expirer and lifecycles cannot remove a locked object either. The parts of a
  multipart object are locked with it. The owner of the bucket can bypass governance mode. Objects that are
  older than the bucket's versioning cannot be locked. If a primary is a node of OpenStack Swift, changes of
  locked objects get `501`. Until a proxy's cached container metadata has expired (a minute after the lock is
  enabled), only object servers enforce the lock.
- **Encryption.** With the filter `encryption` all objects are encrypted with keys of the cluster, which S3
  calls `AES256`. Without this filter a request for `AES256` gets `501`, unless `accept_aes256` states that
  the devices are encrypted. (`swift-aio` sets it, for trials, although it encrypts nothing.) Keys of
  customers (SSE-C) encrypt uploads, parts and copies in the S3 API itself. They are never stored, and they
  need the library `cryptography`. Swift's API returns such objects in encrypted form. Keys of a key service
  get `501`, and so does `Content-MD5` together with a customer's key.
- **Notifications** are sent to webhooks only. Their names are in `notification_targets`, and `s3-notifier`
  knows their URLs. In an ARN the name is the last word, or the word before `webhook`. Each event is stored in
  a hidden queue before the change is acknowledged, and is delivered at least once. If it cannot be stored,
  the client gets `503`, although the change has been made. There are events for uploads, copies,
  completions, deletions and tags by the S3 API, and none for lifecycles, expiry and Swift's API.
- **Storage classes** are storage policies: `storage_classes = STANDARD:gold, STANDARD_IA:ec`. Several
  classes may use one policy, as `STANDARD_IA` and `REDUCED_REDUNDANCY` do with `swift-aio`. As with AWS, the
  headers of reads omit `STANDARD`; listings and GetObjectAttributes show it. The class of a bucket is chosen
  when it is created (`LocationConstraint` `us-east-1:STANDARD_IA`). An object of another class is stored in
  that class's policy, in `<bucket>+<CLASS>+segments`, with a manifest in the bucket (decision 0018). Clients
  see an ordinary object; reading it costs one more backend request. Lifecycles move objects and noncurrent
  versions without a change of their time or version. They do not move locked objects, and objects below
  128 KiB only if the rule has a condition on size. Data that overwritten objects leave in other classes is
  deleted within two weeks. An unknown class gets `InvalidStorageClass`. No class needs a restore before
  objects can be read.
- **Settings that are not supported** (replication, analytics, metrics, intelligent tiering, ABAC) read as
  never set: lists are empty, and one setting does not exist. Requests that set one get `501`, and so do
  headers for replication.
- **Differences from OpenStack Swift's s3api** are listed with their reasons in
  `test/functional/api_differences_s3.py`, which is compared with recorded responses. The following is
  stricter or different here:
  - The host and every `x-amz-*` header must be signed, in a header and in a presigned URL, and the URL is
    not valid before its time. A request must have one signature only.
  - A malformed signature is `400` as with AWS: `AuthorizationHeaderMalformed` in a header,
    `AuthorizationQueryParametersError` in a URL; the message names the part.
  - Numbers are decimal digits, sizes of chunks hexadecimal digits, at most 16 of them.
  - Requests that take no body refuse one, and `Content-MD5` is verified for all bodies.
  - The range of UploadPartCopy must lie within its source. A read of several ranges gets the whole object,
    as with AWS.
  - Conditions follow RFC 9110: ETags are evaluated before dates and `If-Match` before `If-None-Match`, and
    `If-Range` is supported. DELETE refuses the conditions that PUT refuses (`501`).
  - An unknown version is `NoSuchVersion`, and an empty `versionId` is `InvalidArgument`.
  - `encoding-type=url` does not encode `*`.
  - Requests with ambiguous framing (two `Content-Length` headers, folded headers, spaces before a colon) get
    `400` without a document.
  - If both the signature and the document are invalid, the error is that of the signature.

## Operations

{answered} of {all} operations are supported.
"""
_TITLES = {
    PathLevel.SERVICE: "Operations on the account",
    PathLevel.BUCKET: "Operations on a bucket",
    PathLevel.OBJECT: "Operations on an object",
}


def matrix_text() -> str:
    """Return the page."""
    head = _HEAD.format(algorithms=", ".join(ALGORITHMS), answered=len(HANDLERS), all=len(OPERATIONS))
    lines = [head.rstrip()]
    for level, title in _TITLES.items():
        lines += ["", f"### {title}", "", "| operation | request | state | limits |", "|---|---|---|---|"]
        lines += [_row(o) for o in OPERATIONS.values() if o.level is level]
    return "\n".join(lines) + "\n"


def _row(operation: Operation) -> str:
    query = "&".join(sorted(operation.selectors))
    path = {PathLevel.SERVICE: "/", PathLevel.BUCKET: "/bucket", PathLevel.OBJECT: "/bucket/key"}[
        operation.level
    ]
    request = f"`{operation.method} {path}{'?' if query else ''}{query}`"
    if operation.header:
        request += f" with `{operation.header}`"
    state = "supported" if operation.name in HANDLERS else "501"
    return f"| {operation.name} | {request} | {state} | {operation.note} |"


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the generated file below ``root`` with its text."""
    yield root / "doc" / "reference" / "s3-operations.md", matrix_text()
