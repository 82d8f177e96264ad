"""ACLs of S3: owners, grants, canned ACLs (spec: middleware.md §21, §22.3).

Without ``s3_acl`` ACLs are translated to the bucket's X-Container-Read and -Write. With it, buckets and
objects have S3 ACLs in system metadata, and only those decide. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swift.http.headers import HeaderMap, utf8_value, wire_value
from swift.s3.core.errors import S3Error, argument_error, invalid_request
from swift.s3.core.xml import (
    Group,
    RepeatedGroup,
    Text,
    Tree,
    TypeAttribute,
    Value,
    text_of,
    tree_of,
    trees_of,
)

_GROUP_URI_PREFIX = "http://acs.amazonaws.com/groups/"
#: The name under which a group is stored → its URI.
GROUP_URIS = {
    "AllUsers": f"{_GROUP_URI_PREFIX}global/AllUsers",
    "AuthenticatedUsers": f"{_GROUP_URI_PREFIX}global/AuthenticatedUsers",
    "LogDelivery": f"{_GROUP_URI_PREFIX}s3/LogDelivery",
}
_GROUP_OF_URI = {uri: name for name, uri in GROUP_URIS.items()}
#: The groups of all users, and of all users with a key.
PUBLIC_GROUPS = ("AllUsers", "AuthenticatedUsers")
_PUBLIC_GROUP_URIS = tuple(GROUP_URIS[name] for name in PUBLIC_GROUPS)
FULL_CONTROL = "FULL_CONTROL"
PERMISSIONS = (FULL_CONTROL, "READ", "WRITE", "READ_ACP", "WRITE_ACP")
#: Canned ACL → (grantee, permission) besides the owner's; ``{bucket}`` is the bucket's owner.
CANNED_ACLS: dict[str, tuple[tuple[str, str], ...]] = {
    "private": (),
    "public-read": (("AllUsers", "READ"),),
    "public-read-write": (("AllUsers", "READ"), ("AllUsers", "WRITE")),
    "authenticated-read": (("AuthenticatedUsers", "READ"),),
    "bucket-owner-read": (("{bucket}", "READ"),),
    "bucket-owner-full-control": (("{bucket}", FULL_CONTROL),),
    "log-delivery-write": (("LogDelivery", "WRITE"), ("LogDelivery", "READ_ACP")),
}
_USER_ELEMENTS = (Text("ID"), Text("DisplayName"))
ACL_SCHEMA = Group(
    "AccessControlPolicy",
    Group("Owner", *_USER_ELEMENTS, required=True),
    Group(
        "AccessControlList",
        RepeatedGroup(
            "Grant",
            Group(
                "Grantee", TypeAttribute(), *_USER_ELEMENTS, Text("EmailAddress"), Text("URI"), required=True
            ),
            Text("Permission", required=True),
        ),
        required=True,
    ),
)
PUBLIC_READ = ".r:*,.rlistings"
GRANTS_MAX = 100


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission granted to an access key or a group."""

    grantee: str
    permission: str


@dataclass(frozen=True, slots=True)
class Acl:
    """An owner and grants; the owner's own rights are grants too."""

    owner: str
    grants: tuple[Grant, ...]

    def allows(self, user: str, permission: str, *, include_public: bool = True) -> bool:
        """Return True if a user has a permission.

        An anonymous caller has an empty name. ``include_public``: grants to all users count.
        """
        if user == self.owner and permission in ("READ_ACP", "WRITE_ACP"):
            return True
        requested = (permission, FULL_CONTROL)
        names = {user, *(PUBLIC_GROUPS if user else PUBLIC_GROUPS[:1])} if include_public else {user}
        return any(grant.permission in requested and grant.grantee in names for grant in self.grants)

    @property
    def is_public(self) -> bool:
        """True if it grants something to all users."""
        return any(grant.grantee in PUBLIC_GROUPS for grant in self.grants)

    @property
    def is_private(self) -> bool:
        """True if it grants something only to the owner."""
        return all(grant.grantee == self.owner for grant in self.grants)

    def to_json(self) -> str:
        """Return the compact JSON that system metadata stores."""
        value = {
            "Owner": self.owner,
            "Grant": [{"Permission": g.permission, "Grantee": g.grantee} for g in self.grants],
        }
        return json.dumps(value, separators=(",", ":"))

    def to_document(self) -> Value:
        """Return the value of an ``AccessControlPolicy`` document."""
        return {
            "Owner": {"ID": self.owner, "DisplayName": self.owner},
            "AccessControlList": {
                "Grant": [
                    {"Grantee": _render_grantee(g.grantee), "Permission": g.permission} for g in self.grants
                ]
            },
        }


def _render_grantee(name: str) -> Value:
    if name in GROUP_URIS:
        return {"type": "Group", "URI": GROUP_URIS[name]}
    return {"type": "CanonicalUser", "ID": name, "DisplayName": name}


def private_acl(owner: str) -> Acl:
    """Return the ACL that grants only its owner access."""
    return Acl(owner, (Grant(owner, FULL_CONTROL),))


def parse_stored_acl(text: str | None) -> Acl | None:
    """Return the ACL in system metadata; None for none and for unreadable ones."""
    if not text:
        return None
    try:
        value = json.loads(utf8_value(text))
        grants = tuple(Grant(str(g["Grantee"]), str(g["Permission"])) for g in value.get("Grant", ()))
        return Acl(str(value["Owner"]), grants) if value.get("Owner") else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def canned_acl(name: str, owner: str, bucket_owner: str) -> Acl:
    """Return a canned ACL by name; raise ``S3Error``."""
    grants = CANNED_ACLS.get(name)
    if grants is None:
        raise _unknown_canned_acl(name)
    more = (Grant(who.format(bucket=bucket_owner), what) for who, what in grants)
    return Acl(owner, (*private_acl(owner).grants, *(g for g in more if g.grantee != owner)))


def _unknown_canned_acl(name: str) -> S3Error:
    text = f"The canned ACL '{name}' is not supported. Supported are: {', '.join(CANNED_ACLS)}."
    return argument_error("x-amz-acl", name, text)


_GRANT_HEADERS = {
    "x-amz-grant-full-control": FULL_CONTROL,
    "x-amz-grant-read": "READ",
    "x-amz-grant-write": "WRITE",
    "x-amz-grant-read-acp": "READ_ACP",
    "x-amz-grant-write-acp": "WRITE_ACP",
}


def has_acl_headers(headers: Mapping[str, str]) -> bool:
    """Return True if a request has ACL headers."""
    return "x-amz-acl" in headers or any(name in headers for name in _GRANT_HEADERS)


def grants_public_access(headers: Mapping[str, str]) -> bool:
    """Return True if headers grant access to all users, or to all users with a key."""
    if headers.get("x-amz-acl") in ("public-read", "public-read-write", "authenticated-read"):
        return True
    return any(uri in headers.get(name, "") for name in _GRANT_HEADERS for uri in _PUBLIC_GROUP_URIS)


def parse_acl_headers(headers: Mapping[str, str], owner: str, bucket_owner: str) -> Acl | None:
    """Return the ACL in a request's headers, None without such headers; raise ``S3Error``."""
    granted = [(name, permission) for name, permission in _GRANT_HEADERS.items() if name in headers]
    canned = headers.get("x-amz-acl")
    if canned is not None and granted:
        raise invalid_request("Specifying both Canned ACLs and Header Grants is not allowed")
    if canned is not None:
        return canned_acl(canned, owner, bucket_owner)
    if not granted:
        return None
    grants = []
    for name, permission in granted:
        for item in headers[name].split(","):
            kind, _, value = item.strip().partition("=")
            grants.append(
                Grant(_parse_grantee(kind.strip(), utf8_value(value.strip().strip('"')), name), permission)
            )
    return Acl(owner, tuple(grants))


def _parse_grantee(kind: str, value: str, header: str) -> str:
    if kind == "uri":
        if value not in _GROUP_OF_URI:
            raise argument_error(header, value, "Invalid group uri")
        return _GROUP_OF_URI[value]
    if kind == "id" and value:
        return _validate_user(value, header)
    if kind == "emailAddress":
        raise S3Error("NotImplemented", "Grants to an e-mail address are not implemented.")
    raise argument_error(header, value, "Argument format not recognized")


def _validate_user(name: str, argument: str) -> str:
    """Return the name of a user; raise ``S3Error`` for names that ACLs interpret as several users.

    Without ``s3_acl`` grantees become elements of a container's ACL, where ``.r:*`` is the public.
    """
    if name in GROUP_URIS or name in ("*", "*:*") or name.startswith(".") or "," in name:
        raise argument_error(argument, name, "Invalid id")
    return name


def parse_acl_document(tree: Tree) -> Acl:
    """Return the ACL in an ``AccessControlPolicy`` document; raise ``S3Error``."""
    owner = text_of(tree_of(tree.get("Owner")).get("ID"))
    if not owner:
        raise S3Error("MalformedACLError")
    items = trees_of(tree_of(tree.get("AccessControlList")).get("Grant"))
    if len(items) > GRANTS_MAX:
        raise S3Error("MalformedACLError")
    return Acl(owner, tuple(map(_parse_grant, items)))


def _parse_grant(item: Tree) -> Grant:
    grantee, permission = tree_of(item.get("Grantee")), text_of(item.get("Permission"))
    if permission not in PERMISSIONS:
        raise S3Error("MalformedACLError")
    kind = text_of(grantee.get("type"))
    if kind == "Group":
        uri = text_of(grantee.get("URI"))
        if uri not in _GROUP_OF_URI:
            raise argument_error("uri", uri, "Invalid group uri")
        return Grant(_GROUP_OF_URI[uri], permission)
    if kind == "CanonicalUser" and text_of(grantee.get("ID")):
        return Grant(_validate_user(text_of(grantee.get("ID")), "CanonicalUser/ID"), permission)
    if kind == "AmazonCustomerByEmail":
        raise S3Error("NotImplemented", "Grants to an e-mail address are not implemented.")
    raise S3Error("MalformedACLError")


# --- without s3_acl: translation to Swift ACLs ----------------------------------------------------------


def swift_acl_of_canned(acl: str) -> HeaderMap:
    """Return the container ACL headers for a canned ACL; raise ``S3Error``."""
    if acl not in CANNED_ACLS:
        raise _unknown_canned_acl(acl)
    if acl in ("authenticated-read", "log-delivery-write"):
        raise S3Error("NotImplemented", f"The canned ACL {acl} is not implemented.")
    return {
        "x-container-read": PUBLIC_READ if acl.startswith("public-read") else "",
        "x-container-write": ".r:*" if acl == "public-read-write" else "",
    }


def swift_acl_of_document(acl: Acl) -> HeaderMap:
    """Return the container ACL headers for an S3 ACL; raise ``S3Error`` if Swift cannot express it."""
    reads: list[str] = []
    writes: list[str] = []
    for grant in acl.grants:
        if grant.grantee == acl.owner:
            continue
        public = grant.grantee == "AllUsers"
        if grant.grantee in GROUP_URIS and not public:
            raise S3Error("NotImplemented", f"Grants to {grant.grantee} are not implemented.")
        if grant.permission.endswith("_ACP"):
            raise S3Error("NotImplemented", f"The permission {grant.permission} is not implemented.")
        if grant.permission in ("READ", FULL_CONTROL):
            reads.append(PUBLIC_READ if public else grant.grantee)
        if grant.permission in ("WRITE", FULL_CONTROL):
            writes.append(".r:*" if public else grant.grantee)
    return {
        "x-container-read": wire_value(",".join(dict.fromkeys(reads))),
        "x-container-write": wire_value(",".join(dict.fromkeys(writes))),
    }


def acl_from_swift(owner: str, headers: Mapping[str, str]) -> Acl:
    """Return the S3 form of a container's ACLs."""
    grants: list[Grant] = list(private_acl(owner).grants)
    for header, permission in (("x-container-read", "READ"), ("x-container-write", "WRITE")):
        grants += (
            Grant(name, permission) for name in _grantees_of_swift_acl(headers.get(header, "").split(","))
        )
    return Acl(owner, tuple(grants))


def _grantees_of_swift_acl(items: Sequence[str]) -> list[str]:
    """Return the grantees of a Swift ACL that S3 can express."""
    found = []
    for item in map(str.strip, items):
        if item in (".r:*", ".referrer:*"):
            found.append("AllUsers")
        elif item and not item.startswith("."):
            found.append(utf8_value(item))
    return found
