"""Internal headers of servers, filters and daemons, each declared once.

A declaration gives a header its type, its direction and a sentence; the constant it makes is the plain name,
for use as a key. What the gatekeeper keeps inside (``http.internal``) and the reference page
``doc/reference/headers.md`` come from here. ``test/house/test_fields.py`` allows no such literal elsewhere.
What filters share in the environment of a request is in ``http.environkeys``.
"""

from __future__ import annotations

from swift.http.field import Direction, Field, FieldKind

#: All of them, by name.
HEADERS: dict[str, Field] = {}


def _declare_header(name: str, kind: FieldKind, direction: Direction, doc: str) -> str:
    HEADERS[name] = Field(name, kind, direction, doc)
    return name


_TEXT, _FLAG, _NUMBER, _TIME, _LIST, _MAP, _JSON, _CALL, _OBJECT = FieldKind
_TO_NODE, _FROM_NODE, _BOTH_WAYS, _INSIDE, _STORED, _FILTERS = Direction

# --- whole families: none of these enters or leaves the cluster ----------------------------------------

BACKEND = _declare_header("x-backend", _TEXT, _INSIDE, "Prefix of all headers between servers.")
ACCOUNT_SYSMETA = _declare_header(
    "x-account-sysmeta-", _TEXT, _STORED, "Prefix of metadata that filters store with an account."
)
CONTAINER_SYSMETA = _declare_header(
    "x-container-sysmeta-", _TEXT, _STORED, "Prefix of metadata that filters store with a container."
)
OBJECT_SYSMETA = _declare_header(
    "x-object-sysmeta-",
    _TEXT,
    _STORED,
    "Prefix of metadata that filters store with an object's data; a POST keeps it.",
)
OBJECT_TRANSIENT_SYSMETA = _declare_header(
    "x-object-transient-sysmeta-",
    _TEXT,
    _STORED,
    "Prefix of metadata that filters store with an object's metadata; a POST replaces it.",
)

#: Names with these beginnings are internal.
INTERNAL_PREFIXES: tuple[str, ...] = tuple(HEADERS)

# --- other names that stay inside ------------------------------------------------------------------------

ACCOUNT_HOST = _declare_header(
    "x-account-host", _LIST, _TO_NODE, "The account's nodes that a container server reports to."
)
ACCOUNT_DEVICE = _declare_header("x-account-device", _LIST, _TO_NODE, "Their devices.")
ACCOUNT_PARTITION = _declare_header("x-account-partition", _NUMBER, _TO_NODE, "The account's partition.")
CONTAINER_HOST = _declare_header(
    "x-container-host", _LIST, _TO_NODE, "The container's nodes that an object server reports to."
)
CONTAINER_DEVICE = _declare_header("x-container-device", _LIST, _TO_NODE, "Their devices.")
CONTAINER_PARTITION = _declare_header(
    "x-container-partition", _NUMBER, _TO_NODE, "The container's partition."
)
CONTAINER_ROOT_DB_STATE = _declare_header(
    "x-container-root-db-state", _TEXT, _TO_NODE, "Sharding state of the root container."
)
DELETE_AT_HOST = _declare_header("x-delete-at-host", _LIST, _TO_NODE, "The nodes of the expirer's queue.")
DELETE_AT_DEVICE = _declare_header("x-delete-at-device", _LIST, _TO_NODE, "Their devices.")
DELETE_AT_PARTITION = _declare_header(
    "x-delete-at-partition", _NUMBER, _TO_NODE, "The partition of the expirer's queue."
)
DELETE_AT_CONTAINER = _declare_header(
    "x-delete-at-container", _TEXT, _TO_NODE, "The container of the expirer's queue."
)

#: Internal names that none of the prefixes covers.
INTERNAL_NAMES = frozenset(HEADERS) - frozenset(INTERNAL_PREFIXES)

# --- system metadata of our own --------------------------------------------------------------------------

SYSMETA_ACCOUNT_ACL = _declare_header(
    "x-account-sysmeta-core-access-control", _JSON, _STORED, "The account's ACL."
)
SYSMETA_PROJECT_DOMAIN = _declare_header(
    "x-account-sysmeta-project-domain-id", _TEXT, _STORED, "The domain of the project that owns the account."
)
SYSMETA_QUOTA = _declare_header(
    "x-account-sysmeta-quota-",
    _NUMBER,
    _STORED,
    "Prefix (bytes, count, bytes-policy-INDEX, count-policy-INDEX): limit of the account.",
)
SYSMETA_ACCOUNT_QUOTED_ETAGS = _declare_header(
    "x-account-sysmeta-rfc-compliant-etags", _FLAG, _STORED, "ETags of its objects are shown in quotes."
)
SYSMETA_CONTAINER_QUOTED_ETAGS = _declare_header(
    "x-container-sysmeta-rfc-compliant-etags", _FLAG, _STORED, "The same, for a container."
)
SYSMETA_READ_ONLY = _declare_header(
    "x-account-sysmeta-read-only", _FLAG, _STORED, "The account is read-only."
)
SYSMETA_WRITE_RATELIMIT = _declare_header(
    "x-account-sysmeta-global-write-ratelimit",
    _TEXT,
    _STORED,
    "Writes a second to the account, WHITELIST or BLACKLIST.",
)
SYSMETA_SHARDING = _declare_header(
    "x-container-sysmeta-sharding", _FLAG, _STORED, "The container is to be sharded."
)
SYSMETA_SHARD_ROOT = _declare_header(
    "x-container-sysmeta-shard-root", _TEXT, _STORED, "The container that a shard belongs to."
)
SYSMETA_SHARD_QUOTED_ROOT = _declare_header(
    "x-container-sysmeta-shard-quoted-root", _TEXT, _STORED, "The same, percent-quoted."
)
SYSMETA_SHARD_CONTEXT = _declare_header(
    "x-container-sysmeta-shard-context-",
    _JSON,
    _STORED,
    "Prefix before a database id: progress of moving its rows to shards.",
)
SYSMETA_VERSIONS_LOCATION = _declare_header(
    "x-container-sysmeta-versions-location", _TEXT, _STORED, "The container of previous versions."
)
SYSMETA_VERSIONS_MODE = _declare_header(
    "x-container-sysmeta-versions-mode", _TEXT, _STORED, "stack or history: what a deletion does."
)
SYSMETA_VERSIONS_ENABLED = _declare_header(
    "x-container-sysmeta-versions-enabled", _FLAG, _STORED, "True if new versions of objects are kept."
)
SYSMETA_VERSIONS_CONTAINER = _declare_header(
    "x-container-sysmeta-versions-container",
    _TEXT,
    _STORED,
    "The hidden container of the versions, percent-quoted.",
)
SYSMETA_EC = _declare_header(
    "x-object-sysmeta-ec-", _TEXT, _STORED, "Prefix of the metadata of erasure coded objects."
)
SYSMETA_EC_ETAG = _declare_header("x-object-sysmeta-ec-etag", _TEXT, _STORED, "The ETag of the whole object.")
SYSMETA_EC_CONTENT_LENGTH = _declare_header(
    "x-object-sysmeta-ec-content-length", _NUMBER, _STORED, "The size of the whole object."
)
SYSMETA_EC_SCHEME = _declare_header(
    "x-object-sysmeta-ec-scheme", _TEXT, _STORED, "The erasure code, as PyECLib names it."
)
SYSMETA_EC_SEGMENT_SIZE = _declare_header(
    "x-object-sysmeta-ec-segment-size", _NUMBER, _STORED, "Size of a segment, bytes."
)
SYSMETA_EC_FRAG_INDEX = _declare_header(
    "x-object-sysmeta-ec-frag-index", _NUMBER, _STORED, "The fragment index of an archive."
)
SYSMETA_UPDATE_OVERRIDE = _declare_header(
    "x-object-sysmeta-container-update-override-",
    _TEXT,
    _STORED,
    "Prefix: like X-Backend-Container-Update-Override, and stored.",
)

SYSMETA_SLO_ETAG = _declare_header(
    "x-object-sysmeta-slo-etag", _TEXT, _STORED, "The ETag of the whole static large object."
)
SYSMETA_SLO_SIZE = _declare_header("x-object-sysmeta-slo-size", _NUMBER, _STORED, "Its size, bytes.")
SYSMETA_SLO_UPLOAD = _declare_header(
    "x-object-sysmeta-slo-upload", _TEXT, _STORED, "The upload whose hidden parts a manifest owns (ours)."
)
SYSMETA_SEGMENTS_CONTAINER = _declare_header(
    "x-container-sysmeta-segments-container",
    _TEXT,
    _STORED,
    "The hidden container of the parts of a container's objects, percent-quoted (ours).",
)
SYSMETA_S3_OBJECT = _declare_header(
    "x-object-sysmeta-s3api-",
    _TEXT,
    _STORED,
    "Prefix of metadata that the S3 API stores with an object's data.",
)
SYSMETA_S3_BUCKET = _declare_header(
    "x-container-sysmeta-s3api-", _TEXT, _STORED, "Prefix of metadata that the S3 API stores with a bucket."
)


def _declare_object_header(name: str, doc: str, kind: FieldKind = _TEXT) -> str:
    return _declare_header(f"{SYSMETA_S3_OBJECT}{name}", kind, _STORED, doc)


SYSMETA_S3_ETAG = _declare_object_header("etag", "The ETag of a multipart object: <md5>-<parts>.")
SYSMETA_S3_UPLOAD_ID = _declare_object_header("upload-id", "The multipart upload that an object came from.")
SYSMETA_S3_HAS_CONTENT_TYPE = _declare_object_header(
    "has-content-type", "yes if an upload named a type, else no."
)
SYSMETA_S3_CONTENT_TYPE = _declare_object_header("content-type", "The type that it named.")
SYSMETA_S3_OBJECT_ACL = _declare_object_header("acl", "The ACL of an object.", _JSON)
SYSMETA_S3_UPLOAD_ACL = _declare_object_header(
    "tmpacl", "The ACL that the object of an upload will have.", _JSON
)
SYSMETA_S3_UPLOAD_HEADERS = _declare_object_header(
    "upload-headers", "The headers of CreateMultipartUpload that policies may ask for (ours).", _JSON
)
SYSMETA_S3_REDIRECT = _declare_object_header(
    "redirect-location", "Target to which a bucket's web site redirects requests for the object (ours)."
)
SYSMETA_S3_CHECKSUM = _declare_object_header("checksum", "Algorithm, type and base64 of a checksum (ours).")
SYSMETA_S3_SSE_C = _declare_object_header("sse-c", "Start of a key stream and a key's sum, of SSE-C (ours).")
SYSMETA_S3_CLASS = _declare_object_header("class", "The storage class of a manifest's bytes (ours).")
TRANSIENT_S3_TAGGING = _declare_header(
    "x-object-transient-sysmeta-s3api-tagging", _TEXT, _STORED, "The tags of an object as a query (ours)."
)
TRANSIENT_S3_LOCK = _declare_header(
    "x-object-transient-sysmeta-s3api-lock", _TEXT, _STORED, "Mode, end and legal hold of a lock (ours)."
)
SYSMETA_S3_OBJECT_LOCK = _declare_header(
    "x-container-sysmeta-s3api-object-lock", _FLAG, _STORED, "Objects of the container may be locked (ours)."
)
SYSMETA_S3_LOCK_RULE = _declare_header(
    "x-container-sysmeta-s3api-lock-rule",
    _TEXT,
    _STORED,
    "Default retention of new objects of a bucket (ours).",
)
SYSMETA_S3_REGISTERED = _declare_header(
    "x-container-sysmeta-s3api-registered",
    _FLAG,
    _STORED,
    "The lifecycle daemon knows of the container of parts (ours).",
)
BACKEND_OBJECT_LOCK = _declare_header(
    "x-backend-object-lock",
    _LIST,
    _BOTH_WAYS,
    "Object locks are enforced; the value lists what the caller may bypass (ours).",
)

BACKEND_LOOSE_LINK = _declare_header(
    "x-backend-loose-link",
    _FLAG,
    _INSIDE,
    "A link to a version may lead to another ETag (ours).",
)
BACKEND_FIND_ARCHIVED_NULL = _declare_header(
    "x-backend-find-archived-null",
    _FLAG,
    _INSIDE,
    "The version null is also an object from before versioning that was archived (ours).",
)
BACKEND_RESTORE_VERSION = _declare_header(
    "x-backend-restore-version",
    _FLAG,
    _INSIDE,
    "The deletion of a version makes the newest remaining one the current one (ours).",
)


def _declare_bucket_header(name: str, doc: str, kind: FieldKind = _TEXT) -> str:
    return _declare_header(f"{SYSMETA_S3_BUCKET}{name}", kind, _STORED, doc)


SYSMETA_S3_BUCKET_ACL = _declare_bucket_header("acl", "The ACL of a bucket.", _JSON)
SYSMETA_S3_BUCKET_TAGGING = _declare_bucket_header("tagging", "The tags of a bucket as a query (ours).")
SYSMETA_S3_BUCKET_POLICY = _declare_bucket_header(
    "policy", "Its policy, packed; continued in -1 to -4 (ours)."
)
SYSMETA_S3_BUCKET_CORS = _declare_bucket_header("cors", "Its CORS rules, stored in the same way (ours).")
SYSMETA_S3_BUCKET_WEBSITE = _declare_bucket_header("website", "Its web site, stored in the same way (ours).")
SYSMETA_S3_BUCKET_LOGGING = _declare_bucket_header(
    "logging", "Target bucket and key prefix of its access log (ours)."
)
SYSMETA_S3_BUCKET_BLOCK = _declare_bucket_header(
    "public-access-block", "The settings of its public access block (ours).", _LIST
)
SYSMETA_S3_BUCKET_OWNERSHIP = _declare_bucket_header("ownership", "Owner of its objects (ours).")
SYSMETA_S3_BUCKET_PAYER = _declare_bucket_header("payer", "Payer of requests to it: Requester (ours).")
SYSMETA_SYMLINK = _declare_header("x-object-sysmeta-symlink-", _TEXT, _STORED, "Prefix of a link's target.")
SYSMETA_SYMLINK_TARGET = _declare_header(
    "x-object-sysmeta-symlink-target", _TEXT, _STORED, "Container and object, percent-quoted."
)
SYSMETA_SYMLINK_TARGET_ACCOUNT = _declare_header(
    "x-object-sysmeta-symlink-target-account", _TEXT, _STORED, "Their account, if it is another one."
)
SYSMETA_SYMLINK_TARGET_ETAG = _declare_header(
    "x-object-sysmeta-symlink-target-etag", _TEXT, _STORED, "Required ETag of the target."
)
SYSMETA_SYMLINK_TARGET_BYTES = _declare_header(
    "x-object-sysmeta-symlink-target-bytes", _NUMBER, _STORED, "The target's size when the link was made."
)
SYSMETA_SYMLOOP_EXTEND = _declare_header(
    "x-object-sysmeta-symloop-extend",
    _FLAG,
    _STORED,
    "One more link than usual may be followed.",
)
SYSMETA_ALLOW_RESERVED_NAMES = _declare_header(
    "x-object-sysmeta-allow-reserved-names",
    _FLAG,
    _STORED,
    "The link may lead to a reserved name.",
)
SYSMETA_VERSIONS_NULL = _declare_header(
    "x-object-sysmeta-versions-null",
    _FLAG,
    _STORED,
    "An archived object from before versioning, for the S3 API the version null (ours).",
)
SYSMETA_VERSIONS_SYMLINK = _declare_header(
    "x-object-sysmeta-versions-symlink",
    _FLAG,
    _STORED,
    "The link leads to the current version of the object.",
)
SYSMETA_CRYPTO = _declare_header(
    "x-object-sysmeta-crypto-", _TEXT, _STORED, "Prefix of the encryption metadata of an object."
)
SYSMETA_CRYPTO_BODY_META = _declare_header(
    "x-object-sysmeta-crypto-body-meta", _JSON, _STORED, "The wrapped key of the body, and its cipher."
)
SYSMETA_CRYPTO_ETAG = _declare_header(
    "x-object-sysmeta-crypto-etag", _TEXT, _STORED, "The ETag of the plain body, encrypted."
)
SYSMETA_CRYPTO_ETAG_MAC = _declare_header(
    "x-object-sysmeta-crypto-etag-mac", _TEXT, _STORED, "HMAC of the ETag, for conditional requests."
)
TRANSIENT_CRYPTO_META = _declare_header(
    "x-object-transient-sysmeta-crypto-meta",
    _JSON,
    _STORED,
    "The cipher of the user's metadata; as a prefix, with a dash behind it, one encrypted value.",
)
SYSMETA_UPDATE_OVERRIDE_ETAG = _declare_header(
    "x-object-sysmeta-container-update-override-etag",
    _TEXT,
    _STORED,
    "The ETag that the container's row has, and parameters that filters take out of it again.",
)

# --- X-Backend-* -----------------------------------------------------------------------------------------

BACKEND_STORAGE_POLICY_INDEX = _declare_header(
    "x-backend-storage-policy-index", _NUMBER, _BOTH_WAYS, "The storage policy of an object or container."
)
BACKEND_STORAGE_POLICY_DEFAULT = _declare_header(
    "x-backend-storage-policy-default",
    _NUMBER,
    _TO_NODE,
    "The policy of a container that is being made, if its creator named none.",
)
BACKEND_RECORD_STORAGE_POLICY_INDEX = _declare_header(
    "x-backend-record-storage-policy-index",
    _NUMBER,
    _FROM_NODE,
    "The policy of the object rows in a listing.",
)
BACKEND_TIMESTAMP = _declare_header(
    "x-backend-timestamp", _TIME, _FROM_NODE, "Time of the last change or deletion of an entity."
)
BACKEND_TIMESTAMP_AHEAD = _declare_header(
    "x-backend-timestamp-ahead",
    _TIME,
    _FROM_NODE,
    "Seconds by which the timestamp of a refused change is ahead of the node's clock.",
)
BACKEND_DATA_TIMESTAMP = _declare_header(
    "x-backend-data-timestamp", _TIME, _FROM_NODE, "Timestamp of an object's data."
)
BACKEND_DURABLE_TIMESTAMP = _declare_header(
    "x-backend-durable-timestamp", _TIME, _FROM_NODE, "The newest version that a node knows to be durable."
)
BACKEND_PUT_TIMESTAMP = _declare_header(
    "x-backend-put-timestamp", _TIME, _FROM_NODE, "Timestamp of the last creation of an account or container."
)
BACKEND_DELETE_TIMESTAMP = _declare_header(
    "x-backend-delete-timestamp",
    _TIME,
    _FROM_NODE,
    "Timestamp of the last deletion of an account or container.",
)
BACKEND_STATUS_CHANGED_AT = _declare_header(
    "x-backend-status-changed-at",
    _TIME,
    _FROM_NODE,
    "Timestamp of the last creation or deletion of an account or container.",
)
BACKEND_RECHECK = _declare_header(
    "x-backend-recheck-",
    _NUMBER,
    _FROM_NODE,
    "Prefix (account-existence, container-existence): seconds for which a response may be cached.",
)
BACKEND_ALLOW_RESERVED_NAMES = _declare_header(
    "x-backend-allow-reserved-names", _FLAG, _TO_NODE, "The request may name entities that begin with NUL."
)
BACKEND_LISTING_DIRECTORIES = _declare_header(
    "x-backend-listing-directories",
    _FLAG,
    _TO_NODE,
    "A listing has only rows of the type application/directory; nodes of OpenStack Swift list all rows.",
)
BACKEND_ALLOW_PRIVATE_METHODS = _declare_header(
    "x-backend-allow-private-methods", _FLAG, _INSIDE, "Methods that clients may not use are allowed."
)
BACKEND_USE_REPLICATION_NETWORK = _declare_header(
    "x-backend-use-replication-network", _FLAG, _INSIDE, "Requests go to the replication addresses of nodes."
)
BACKEND_INBOUND_X_TIMESTAMP = _declare_header(
    "x-backend-inbound-x-timestamp", _TIME, _INSIDE, "The X-Timestamp that a client sent."
)
BACKEND_SERVER_AUTH = _declare_header(
    "x-backend-server-auth",
    _TEXT,
    _BOTH_WAYS,
    "Signature of the server that sends the request: version, id of the secret, Unix seconds, nonce, "
    "HMAC-SHA256. In a response with status 403: the reason why the server refuses it.",
)
BACKEND_REPLICATION = _declare_header(
    "x-backend-replication", _FLAG, _TO_NODE, "The request comes from a replicator or another daemon."
)
BACKEND_REPLICATION_HEADERS = _declare_header(
    "x-backend-replication-headers", _LIST, _TO_NODE, "Additional headers to store."
)
BACKEND_AUTO_CREATE = _declare_header(
    "x-backend-auto-create", _FLAG, _TO_NODE, "A missing account or container is created."
)
BACKEND_FAKE_ACCOUNT_LISTING = _declare_header(
    "x-backend-fake-account-listing",
    _FLAG,
    _INSIDE,
    "The account does not exist yet; its first container would create it.",
)
BACKEND_OPEN_EXPIRED = _declare_header(
    "x-backend-open-expired", _FLAG, _TO_NODE, "An expired object may be read."
)
BACKEND_CLEAN_EXPIRING_QUEUE = _declare_header(
    "x-backend-clean-expiring-object-queue",
    _FLAG,
    _TO_NODE,
    "True if this node removes the object's old entry of the expirer's queue.",
)
BACKEND_REPORT_CONTAINER_SERVERS = _declare_header(
    "x-backend-report-container-servers",
    _FLAG,
    _TO_NODE,
    "Requests the list of container servers that have the row of a write (ours).",
)
BACKEND_CONTAINER_SERVERS = _declare_header(
    "x-backend-container-servers",
    _LIST,
    _FROM_NODE,
    "Container servers that have the row of this write, as address:port/device (ours).",
)
FORMER_REPORT_CONTAINER_SERVERS = _declare_header(
    "x-backend-report-told",
    _FLAG,
    _TO_NODE,
    "X-Backend-Report-Container-Servers of proxies of 0.2; understood until 0.4 (ours).",
)
FORMER_CONTAINER_SERVERS = _declare_header(
    "x-backend-container-told",
    _LIST,
    _FROM_NODE,
    "X-Backend-Container-Servers of object servers of 0.2; understood until 0.4 (ours).",
)
BACKEND_NEXT_PART_POWER = _declare_header(
    "x-backend-next-part-power", _NUMBER, _TO_NODE, "The partition power that the ring is changing to."
)
BACKEND_ETAG_IS_AT = _declare_header(
    "x-backend-etag-is-at",
    _LIST,
    _TO_NODE,
    "Metadata names with the ETag for conditional requests; the first existing one is used.",
)
BACKEND_IGNORE_RANGE = _declare_header(
    "x-backend-ignore-range-if-metadata-present",
    _LIST,
    _TO_NODE,
    "Metadata names; Range is ignored if the object has one of them.",
)
BACKEND_FRAGMENTS = _declare_header(
    "x-backend-fragments",
    _JSON,
    _FROM_NODE,
    "Timestamp to the indexes of the fragment archives that a node has.",
)
BACKEND_UNREADABLE = _declare_header(
    "x-backend-unreadable",
    _FLAG,
    _FROM_NODE,
    "With 503: the node has the object but cannot read it, or has just quarantined it; it is not absent.",
)
BACKEND_UNCONFIRMED = _declare_header(
    "x-backend-unconfirmed",
    _FLAG,
    _FROM_NODE,
    "With 529: the node has the object, but lost records that may be newer; read other replicas first.",
)
BACKEND_ACCEPT_UNCONFIRMED = _declare_header(
    "x-backend-accept-unconfirmed",
    _FLAG,
    _TO_NODE,
    "An unconfirmed object is answered as it is: all replicas are compared, or no other one has it.",
)
BACKEND_FRAGMENT_PREFERENCES = _declare_header(
    "x-backend-fragment-preferences", _JSON, _TO_NODE, "Requested version, and fragment indexes to exclude."
)
BACKEND_NO_COMMIT = _declare_header(
    "x-backend-no-commit", _FLAG, _TO_NODE, "A fragment archive is stored without being made durable."
)
BACKEND_ACCEPT_NO_COMMIT = _declare_header(
    "x-backend-accept-no-commit", _FLAG, _FROM_NODE, "The receiver of SSYNC understands X-Backend-No-Commit."
)
BACKEND_SSYNC_FRAG_INDEX = _declare_header(
    "x-backend-ssync-frag-index", _NUMBER, _TO_NODE, "The fragment index that SSYNC compares."
)
BACKEND_SSYNC_NODE_INDEX = _declare_header(
    "x-backend-ssync-node-index", _NUMBER, _TO_NODE, "The same, for old receivers."
)
BACKEND_PARTITION_DIGESTS = _declare_header(
    "x-backend-partition-digests",
    _FLAG,
    _BOTH_WAYS,
    "A REPLICATE names partitions in its body, and is answered with a digest of each.",
)
BACKEND_LOST_PARTITIONS = _declare_header(
    "x-backend-lost-partitions",
    _FLAG,
    _BOTH_WAYS,
    "A REPLICATE to an account or container server names partitions of which the sender lacks databases.",
)
BACKEND_MAKE_DURABLE = _declare_header(
    "x-backend-make-durable",
    _FLAG,
    _BOTH_WAYS,
    "The suffixes of a REPLICATE must be durable before they are reported; the response confirms it.",
)
BACKEND_OBJ_CONTENT_LENGTH = _declare_header(
    "x-backend-obj-content-length", _NUMBER, _TO_NODE, "Bytes of the object in a body of several documents."
)
BACKEND_OBJ_METADATA_FOOTER = _declare_header(
    "x-backend-obj-metadata-footer", _FLAG, _TO_NODE, "A document of metadata follows the object."
)
BACKEND_OBJ_MULTIPHASE_COMMIT = _declare_header(
    "x-backend-obj-multiphase-commit", _FLAG, _TO_NODE, "A commit document follows the object."
)
BACKEND_OBJ_BOUNDARY = _declare_header(
    "x-backend-obj-multipart-mime-boundary", _TEXT, _TO_NODE, "Boundary of the MIME documents in the body."
)
BACKEND_RESERVE = _declare_header(
    "x-backend-reserve", _FLAG, _TO_NODE, "Requests a reservation of the object for one writer (ours)."
)
BACKEND_PREDECESSOR = _declare_header(
    "x-backend-predecessor", _TIME, _FROM_NODE, "The version for which a condition was evaluated (ours)."
)
BACKEND_IF_PREDECESSOR = _declare_header(
    "x-backend-if-predecessor", _TIME, _TO_NODE, "Required data timestamp of the object for a change (ours)."
)
BACKEND_RESERVED_METHOD = _declare_header(
    "x-backend-reserved-method",
    _TEXT,
    _TO_NODE,
    "The action of a RESERVE once the object is reserved: POST, DELETE, or nothing (HEAD) (ours).",
)
BACKEND_RESERVED = _declare_header(
    "x-backend-reserved", _TEXT, _FROM_NODE, "The writer that holds the reservation of the object (ours)."
)
BACKEND_ETAG_TRAILER = _declare_header(
    "x-backend-etag-trailer", _TEXT, _BOTH_WAYS, "Offers and accepts the sender's MD5 after the body (ours)."
)
BACKEND_BODY_ETAG = _declare_header(
    "x-backend-body-etag", _TEXT, _TO_NODE, "A trailer or footer: the MD5 of the body (ours)."
)
BACKEND_BODY_SUMS = _declare_header(
    "x-backend-body-sums",
    _TEXT,
    _TO_NODE,
    "A trailer or footer: checksums of the body, to believe its MD5 (ours).",
)
BACKEND_UPDATE_OVERRIDE = _declare_header(
    "x-backend-container-update-override-",
    _TEXT,
    _TO_NODE,
    "Prefix of values for the container row instead of the object's size, ETag or type.",
)
BACKEND_CONTAINER_PATH = _declare_header(
    "x-backend-container-path", _TEXT, _TO_NODE, "The container (a shard) that gets the object's row."
)
BACKEND_QUOTED_CONTAINER_PATH = _declare_header(
    "x-backend-quoted-container-path", _TEXT, _TO_NODE, "The same, percent-quoted."
)
BACKEND_ACCEPT_REDIRECT = _declare_header(
    "x-backend-accept-redirect", _FLAG, _TO_NODE, "The sender of a row follows 301 to a shard."
)
BACKEND_ACCEPT_QUOTED_LOCATION = _declare_header(
    "x-backend-accept-quoted-location", _FLAG, _TO_NODE, "The sender of a row can unquote a Location."
)
BACKEND_LOCATION_IS_QUOTED = _declare_header(
    "x-backend-location-is-quoted", _FLAG, _FROM_NODE, "The Location is percent-quoted."
)
BACKEND_REDIRECT_TIMESTAMP = _declare_header(
    "x-backend-redirect-timestamp", _TIME, _FROM_NODE, "When the shard was made that a row is redirected to."
)
BACKEND_CONTENT_TYPE = _declare_header(
    "x-backend-content-type", _TEXT, _FROM_NODE, "The type of an object that was changed or deleted."
)
BACKEND_SHARDING_STATE = _declare_header(
    "x-backend-sharding-state", _TEXT, _FROM_NODE, "How far a container's sharding is."
)
BACKEND_SHARD_RETIRED = _declare_header(
    "x-backend-shard-retired", _FLAG, _FROM_NODE, "Others have the names of this shard now (ours)."
)
BACKEND_SHARDS_KNOWN = _declare_header(
    "x-backend-shards-known", _FLAG, _BOTH_WAYS, "True if a container has or had shards (ours)."
)
BACKEND_RECORD_TYPE = _declare_header(
    "x-backend-record-type",
    _TEXT,
    _BOTH_WAYS,
    "Rows of a listing: object, shard, auto or (ours) replica-rows.",
)
BACKEND_RECORD_SHARD_FORMAT = _declare_header(
    "x-backend-record-shard-format", _TEXT, _BOTH_WAYS, "Whole shard ranges or only their names."
)
BACKEND_OVERRIDE_DELETED = _declare_header(
    "x-backend-override-deleted", _FLAG, _TO_NODE, "A deleted container is read as if it were there."
)
BACKEND_INCLUDE_DELETED = _declare_header(
    "x-backend-include-deleted", _FLAG, _TO_NODE, "Deleted shard ranges are listed too."
)
BACKEND_OVERRIDE_NAME_FILTER = _declare_header(
    "x-backend-override-shard-name-filter",
    _TEXT,
    _BOTH_WAYS,
    "All shard ranges are wanted, and given, whatever their names.",
)
BACKEND_NO_TIMESTAMP_UPDATE = _declare_header(
    "x-backend-no-timestamp-update", _FLAG, _TO_NODE, "A POST of metadata leaves the container's timestamp."
)
BACKEND_CRYPTO_CIPHER = _declare_header(
    "x-backend-crypto-cipher", _TEXT, _INSIDE, "The cipher that an object's body is stored with."
)
BACKEND_DATABASE_UPLOAD = _declare_header(
    "x-backend-database-upload", _TEXT, _TO_NODE, "A whole database is sent in the body (ours)."
)
