"""Keys of the request environment that filters and the proxy exchange.

Declared once, with a type and a sentence; the constant that a declaration makes is the plain name. Filters
and callbacks of third parties find them in the WSGI environ (proxy.md §3). The reference page
``doc/reference/headers.md`` comes from here; ``test/house/test_fields.py`` allows no such literal elsewhere.
"""

from __future__ import annotations

from swift.http.field import Direction, Field, FieldKind

#: All of them, by name.
ENVIRON: dict[str, Field] = {}


def _declare_key(name: str, kind: FieldKind, doc: str) -> str:
    ENVIRON[name] = Field(name, kind, Direction.FILTERS, doc)
    return name


_TEXT, _FLAG, _NUMBER, _TIME, _LIST, _MAP, _JSON, _CALL, _OBJECT = FieldKind

TRANS_ID = _declare_key("swift.trans_id", _TEXT, "The transaction id.")
REPLACED_HEADERS = _declare_key(
    "swift.replaced_headers",
    _MAP,
    "Headers as the client sent them, which filters have removed or replaced; signatures cover them (ours).",
)
AUTHORIZE = _declare_key(
    "swift.authorize", _CALL, "Callback with the request: None allows it, a response denies it."
)
AUTHORIZE_OVERRIDE = _declare_key(
    "swift.authorize_override", _FLAG, "Authentication filters leave the request alone."
)
CLEAN_ACL = _declare_key(
    "swift.clean_acl", _CALL, "Normalises an ACL (header name, text); ValueError refuses it."
)
OWNER = _declare_key("swift_owner", _FLAG, "The caller may see and set the owner's headers.")
SYNC_KEY = _declare_key("swift_sync_key", _TEXT, "The container's key for container sync.")
RESELLER_REQUEST = _declare_key("reseller_request", _FLAG, "The caller is an administrator of the reseller.")
REMOTE_USER = _declare_key(
    "REMOTE_USER",
    _TEXT,
    "Who the caller is: user and groups, joined by commas; of keystoneauth (project id, name).",
)
ACL = _declare_key("swob.ACL", _TEXT, "The ACL of the requested entity, for foreign callbacks.")
CACHE = _declare_key("swift.cache", _OBJECT, "The memcached client (gateway.infocache.Cache).")
INFOCACHE = _declare_key(
    "swift.infocache", _MAP, "Account and container facts that all sub-requests of a request share."
)
SOURCE = _declare_key(
    "swift.source", _TEXT, "The tag of the code that makes a sub-request, for logs and metrics."
)
BASE_LABELS = _declare_key("swift.base_labels", _MAP, "Labels of metrics.")
SHARD_LISTING_HISTORY = _declare_key(
    "swift.shard_listing_history", _LIST, "(account, container) pairs that a listing has requested."
)
ACCESS_LOG_MADE = _declare_key("swift.proxy_access_log_made", _FLAG, "The request is logged further left.")
ACCESS_LOGGING = _declare_key("swift.access_logging", _MAP, "More for the access line: user_id.")
LOG_INFO = _declare_key("swift.log_info", _LIST, "Texts for the access line.")
LOGGED_POLICY = _declare_key(
    "swift.logged_policy", _NUMBER, "The policy of the object's container, for the access line (ours)."
)
RATELIMIT_HANDLED = _declare_key("swift.ratelimit.handled", _FLAG, "The request has waited already.")
ADMITTED = _declare_key("swift.admission.admitted", _FLAG, "The request has been admitted already (ours).")
SLO_OVERRIDE = _declare_key(
    "swift.slo_override", _FLAG, "Manifests of large objects are stored as they come."
)
SYMLINK_OVERRIDE = _declare_key(
    "swift.symlink_override", _FLAG, "Symbolic links are stored as they come, and not followed."
)
TEMPURL_LINK = _declare_key(
    "swift.tempurl.link", _LIST, "The query of a temporary URL for a prefix, and that prefix (ours)."
)
FORMAT_LISTING = _declare_key("swift.format_listing", _FLAG, "False: a filter shapes the listing itself.")
LISTING_TEXT = _declare_key(
    "swift.listing.text",
    _FLAG,
    "The client requests text and no filter needs more than names: a listing may be text (ours).",
)
CONTENT_TYPE_OVERRIDDEN = _declare_key(
    "swift.content_type_overridden", _FLAG, "Parameters named swift_ are allowed in the content type."
)
UPDATE_FOOTERS = _declare_key(
    "swift.callback.update_footers",
    _CALL,
    "Adds metadata (a dictionary) after an object's body was read; wraps the one before.",
)
SLO_MANIFEST_HOOK = _declare_key(
    "swift.callback.slo_manifest_hook",
    _CALL,
    "Callback with the entries of a manifest before it is stored; returns (name, error) pairs or None.",
)
SLO_KNOWN_HEADS = _declare_key(
    "swift.slo.known_heads",
    _MAP,
    "(container, object) → headers of a HEAD that a filter made of a segment: slo does not ask again (ours).",
)
SLO_MANIFEST_FIRST = _declare_key(
    "swift.slo.manifest_first",
    _FLAG,
    "A deletion with segments deletes the manifest before them (ours).",
)
S3_AUTH_DETAILS = _declare_key(
    "s3api.auth_details",
    _MAP,
    "access_key, signature, string_to_sign and check_signature(secret) of an S3 request; the filter that "
    "knows the caller puts the account in place of the access key in the path.",
)
S3_CALL = _declare_key(
    "swift.s3.call",
    _MAP,
    "Set for requests of the S3 API: bucket, key, operation, access_key, account, user once known (ours).",
)
IDENTITY = _declare_key(
    "swift.identity",
    _OBJECT,
    "The caller's rights by policies (identity.rights.Rights); None where only ACLs count, unset for callers "
    "without any (ours).",
)
OIDC_SESSION = _declare_key(
    "swift.oidc_session",
    _OBJECT,
    "The token of a log-in through an identity provider that leads to the console "
    "(identity.oidc.login.OidcSession), set on the request for a filter further left (ours).",
)
CLIENT_ADDRESS = _declare_key(
    "swift.client_address",
    _TEXT,
    "The client's address, for policies on sub-requests, which come from no address (ours).",
)
AUDITED = _declare_key("swift.audit_log.made", _FLAG, "The request is in the audit log (ours).")
AUDIT_CHANGE = _declare_key(
    "swift.audit_log.change",
    _CALL,
    "Callback with each change (gateway.subrequest.ReportedChange) of a request that makes many (ours).",
)
KEYSTONE_TOKEN_INFO = _declare_key(
    "keystone.token_info",
    _MAP,
    "The identity service's data of the token; its keys depend on the API version.",
)
KEYSTONE_IDENTITY = _declare_key(
    "keystone.identity", _MAP, "user, tenant, roles and domains of a confirmed token, for foreign filters."
)
FETCH_CRYPTO_KEYS = _declare_key(
    "swift.callback.fetch_crypto_keys",
    _CALL,
    "Gives the keys (container, object, id, all_ids) of a request, or of the key id that something has.",
)
CRYPTO_OVERRIDE = _declare_key("swift.crypto.override", _FLAG, "Objects are stored and read as they are.")
CIPHERTEXT_ACCEPTED = _declare_key(
    "swift.crypto.ciphertext_accepted",
    _FLAG,
    "The sender decrypts the object or handles it as it is stored; else ciphertext is refused (ours).",
)
BRIDGED_REQUEST = _declare_key("swift.bridge.request", _OBJECT, "Our request behind a WSGI environ (ours).")
