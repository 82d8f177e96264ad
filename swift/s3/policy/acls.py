"""ACLs of S3: owners, grants, canned ACLs (spec: middleware.md §21, §22.3).

Without ``s3_acl`` an ACL is what Swift makes of it: X-Container-Read and -Write of the bucket. With it, a
bucket and each object keep an ACL of their own in system metadata, and that alone decides. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swift.http.headers import HeaderMap, utf8_value, wire_value
from swift.s3.errors import S3Error
from swift.s3.xml import Group, Kind, Many, Text, Tree, Value, text_of, tree_of, trees_of

_GROUPS = "http://acs.amazonaws.com/groups/"
#: The name under which a group is stored → its URI.
GROUPS = {
    "AllUsers": f"{_GROUPS}global/AllUsers",
    "AuthenticatedUsers": f"{_GROUPS}global/AuthenticatedUsers",
    "LogDelivery": f"{_GROUPS}s3/LogDelivery",
}
_GROUP_OF = {uri: name for name, uri in GROUPS.items()}
#: The groups of all users, and of all users with a key.
PUBLIC_GROUPS = ("AllUsers", "AuthenticatedUsers")
_PUBLIC = tuple(GROUPS[name] for name in PUBLIC_GROUPS)
FULL_CONTROL = "FULL_CONTROL"
PERMISSIONS = (FULL_CONTROL, "READ", "WRITE", "READ_ACP", "WRITE_ACP")
#: Canned ACL → (grantee, permission) besides the owner's; ``{bucket}`` stands for the bucket's owner.
CANNED: dict[str, tuple[tuple[str, str], ...]] = {
    "private": (),
    "public-read": (("AllUsers", "READ"),),
    "public-read-write": (("AllUsers", "READ"), ("AllUsers", "WRITE")),
    "authenticated-read": (("AuthenticatedUsers", "READ"),),
    "bucket-owner-read": (("{bucket}", "READ"),),
    "bucket-owner-full-control": (("{bucket}", FULL_CONTROL),),
    "log-delivery-write": (("LogDelivery", "WRITE"), ("LogDelivery", "READ_ACP")),
}
_PERSON = (Text("ID"), Text("DisplayName"))
POLICY = Group(
    "AccessControlPolicy",
    Group("Owner", *_PERSON, required=True),
    Group(
        "AccessControlList",
        Many(
            "Grant",
            Group("Grantee", Kind(), *_PERSON, Text("EmailAddress"), Text("URI"), required=True),
            Text("Permission", required=True),
        ),
        required=True,
    ),
)
READ_ALL = ".r:*,.rlistings"
ACL_MAX = 100


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission of an access key or of a group."""

    grantee: str
    permission: str


@dataclass(frozen=True, slots=True)
class Acl:
    """An owner and grants; the owner's own rights are grants too."""

    owner: str
    grants: tuple[Grant, ...]

    def allows(self, user: str, permission: str, *, publicly: bool = True) -> bool:
        """Return True if a user may do something.

        An anonymous caller has an empty name. ``publicly``: grants to all users count.
        """
        if user == self.owner and permission in ("READ_ACP", "WRITE_ACP"):
            return True
        requested = (permission, FULL_CONTROL)
        names = {user, *(PUBLIC_GROUPS if user else PUBLIC_GROUPS[:1])} if publicly else {user}
        return any(grant.permission in requested and grant.grantee in names for grant in self.grants)

    @property
    def is_public(self) -> bool:
        """True if it grants something to all users."""
        return any(grant.grantee in PUBLIC_GROUPS for grant in self.grants)

    @property
    def is_private(self) -> bool:
        """True if it grants something only to the owner."""
        return all(grant.grantee == self.owner for grant in self.grants)

    def stored(self) -> str:
        """Return the compact JSON of system metadata."""
        value = {
            "Owner": self.owner,
            "Grant": [{"Permission": g.permission, "Grantee": g.grantee} for g in self.grants],
        }
        return json.dumps(value, separators=(",", ":"))

    def document(self) -> Value:
        """Return the value of an ``AccessControlPolicy``."""
        return {
            "Owner": {"ID": self.owner, "DisplayName": self.owner},
            "AccessControlList": {
                "Grant": [{"Grantee": _grantee(g.grantee), "Permission": g.permission} for g in self.grants]
            },
        }


def _grantee(name: str) -> Value:
    if name in GROUPS:
        return {"type": "Group", "URI": GROUPS[name]}
    return {"type": "CanonicalUser", "ID": name, "DisplayName": name}


def private_acl(owner: str) -> Acl:
    """Return the ACL that grants only its owner anything."""
    return Acl(owner, (Grant(owner, FULL_CONTROL),))


def stored_acl(text: str | None) -> Acl | None:
    """Return the ACL of system metadata; None for none and for one that cannot be read."""
    if not text:
        return None
    try:
        value = json.loads(utf8_value(text))
        grants = tuple(Grant(str(g["Grantee"]), str(g["Permission"])) for g in value.get("Grant", ()))
        return Acl(str(value["Owner"]), grants) if value.get("Owner") else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def canned_acl(name: str, owner: str, bucket_owner: str) -> Acl:
    """Return a canned ACL; raise ``S3Error``."""
    grants = CANNED.get(name)
    if grants is None:
        raise _bad_canned(name)
    more = (Grant(who.format(bucket=bucket_owner), what) for who, what in grants)
    return Acl(owner, (*private_acl(owner).grants, *(g for g in more if g.grantee != owner)))


def _bad_canned(name: str) -> S3Error:
    return S3Error("InvalidArgument", details={"ArgumentName": "x-amz-acl", "ArgumentValue": name})


_GRANT_HEADERS = {
    "x-amz-grant-full-control": FULL_CONTROL,
    "x-amz-grant-read": "READ",
    "x-amz-grant-write": "WRITE",
    "x-amz-grant-read-acp": "READ_ACP",
    "x-amz-grant-write-acp": "WRITE_ACP",
}


def has_acl_headers(headers: Mapping[str, str]) -> bool:
    """Return True if a request says an ACL in headers."""
    return "x-amz-acl" in headers or any(name in headers for name in _GRANT_HEADERS)


def is_public_grant(headers: Mapping[str, str]) -> bool:
    """Return True if headers grant something to all users, or to all users with a key."""
    if headers.get("x-amz-acl") in ("public-read", "public-read-write", "authenticated-read"):
        return True
    return any(uri in headers.get(name, "") for name in _GRANT_HEADERS for uri in _PUBLIC)


def acl_of_headers(headers: Mapping[str, str], owner: str, bucket_owner: str) -> Acl | None:
    """Return the ACL of a request's headers, None if they have none; raise ``S3Error``."""
    granted = [(name, permission) for name, permission in _GRANT_HEADERS.items() if name in headers]
    canned = headers.get("x-amz-acl")
    if canned is not None and granted:
        raise S3Error("InvalidRequest", "Specifying both Canned ACLs and Header Grants is not allowed")
    if canned is not None:
        return canned_acl(canned, owner, bucket_owner)
    if not granted:
        return None
    grants = []
    for name, permission in granted:
        for item in headers[name].split(","):
            kind, _, value = item.strip().partition("=")
            grants.append(
                Grant(_grantee_of(kind.strip(), utf8_value(value.strip().strip('"')), name), permission)
            )
    return Acl(owner, tuple(grants))


def _grantee_of(kind: str, value: str, header: str) -> str:
    if kind == "uri":
        if value not in _GROUP_OF:
            raise S3Error(
                "InvalidArgument",
                "Invalid group uri",
                details={"ArgumentName": header, "ArgumentValue": value},
            )
        return _GROUP_OF[value]
    if kind == "id" and value:
        return _valid_user(value, header)
    if kind == "emailAddress":
        raise S3Error("NotImplemented", "Grants to an e-mail address are not implemented.")
    raise S3Error(
        "InvalidArgument",
        "Argument format not recognized",
        details={"ArgumentName": header, "ArgumentValue": value},
    )


def _valid_user(name: str, argument: str) -> str:
    """Return the name of a user; raise ``S3Error`` for what ACLs of Swift or of S3 take for more than one.

    Without ``s3_acl`` grantees become elements of a container's ACL, where ``.r:*`` is the public.
    """
    if name in GROUPS or name in ("*", "*:*") or name.startswith(".") or "," in name:
        details = {"ArgumentName": argument, "ArgumentValue": name}
        raise S3Error("InvalidArgument", "Invalid id", details=details)
    return name


def acl_of_document(tree: Tree) -> Acl:
    """Return the ACL of an ``AccessControlPolicy``; raise ``S3Error``."""
    owner = text_of(tree_of(tree.get("Owner")).get("ID"))
    if not owner:
        raise S3Error("MalformedACLError")
    items = trees_of(tree_of(tree.get("AccessControlList")).get("Grant"))
    if len(items) > ACL_MAX:
        raise S3Error("MalformedACLError")
    return Acl(owner, tuple(map(_grant_of, items)))


def _grant_of(item: Tree) -> Grant:
    grantee, permission = tree_of(item.get("Grantee")), text_of(item.get("Permission"))
    if permission not in PERMISSIONS:
        raise S3Error("MalformedACLError")
    kind = text_of(grantee.get("type"))
    if kind == "Group":
        uri = text_of(grantee.get("URI"))
        if uri not in _GROUP_OF:
            raise S3Error(
                "InvalidArgument", "Invalid group uri", details={"ArgumentName": "uri", "ArgumentValue": uri}
            )
        return Grant(_GROUP_OF[uri], permission)
    if kind == "CanonicalUser" and text_of(grantee.get("ID")):
        return Grant(_valid_user(text_of(grantee.get("ID")), "CanonicalUser/ID"), permission)
    if kind == "AmazonCustomerByEmail":
        raise S3Error("NotImplemented", "Grants to an e-mail address are not implemented.")
    raise S3Error("MalformedACLError")


# --- without s3_acl: what Swift makes of it -------------------------------------------------------------


def swift_acl(acl: str) -> HeaderMap:
    """Return the ACLs of a container for a canned ACL; raise ``S3Error``."""
    if acl not in CANNED:
        raise _bad_canned(acl)
    if acl in ("authenticated-read", "log-delivery-write"):
        raise S3Error("NotImplemented", f"The canned ACL {acl} is not implemented.")
    return {
        "x-container-read": READ_ALL if acl.startswith("public-read") else "",
        "x-container-write": ".r:*" if acl == "public-read-write" else "",
    }


def swift_acl_of_document(acl: Acl) -> HeaderMap:
    """Return the ACLs of a container that mean an ACL of S3; raise ``S3Error`` for those that cannot."""
    reads: list[str] = []
    writes: list[str] = []
    for grant in acl.grants:
        if grant.grantee == acl.owner:
            continue
        public = grant.grantee == "AllUsers"
        if grant.grantee in GROUPS and not public:
            raise S3Error("NotImplemented", f"Grants to {grant.grantee} are not implemented.")
        if grant.permission.endswith("_ACP"):
            raise S3Error("NotImplemented", f"The permission {grant.permission} is not implemented.")
        if grant.permission in ("READ", FULL_CONTROL):
            reads.append(READ_ALL if public else grant.grantee)
        if grant.permission in ("WRITE", FULL_CONTROL):
            writes.append(".r:*" if public else grant.grantee)
    return {
        "x-container-read": wire_value(",".join(dict.fromkeys(reads))),
        "x-container-write": wire_value(",".join(dict.fromkeys(writes))),
    }


def acl_of_swift(owner: str, headers: Mapping[str, str]) -> Acl:
    """Return the S3 form of a container's ACLs."""
    grants: list[Grant] = list(private_acl(owner).grants)
    for header, permission in (("x-container-read", "READ"), ("x-container-write", "WRITE")):
        grants += (Grant(name, permission) for name in _names(headers.get(header, "").split(",")))
    return Acl(owner, tuple(grants))


def _names(items: Sequence[str]) -> list[str]:
    """Return the grantees of a Swift ACL that S3 has a word for."""
    found = []
    for item in map(str.strip, items):
        if item in (".r:*", ".referrer:*"):
            found.append("AllUsers")
        elif item and not item.startswith("."):
            found.append(utf8_value(item))
    return found
