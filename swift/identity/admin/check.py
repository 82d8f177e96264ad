"""The question whether a user or role may do something, and which statement says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.gateway.documents import StoreUnavailable
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http import fields
from swift.http.acl import is_referrer_allowed, parse_acl
from swift.http.headers import utf8_value, with_prefix
from swift.identity.bucketrules import DamagedPolicy, ReadPolicy, read_bucket_policy
from swift.identity.directory import Caller, Directory
from swift.identity.names import InvalidIdentity, QualifiedName, shown
from swift.identity.policy.actions import ACTIONS
from swift.identity.policy.evaluate import PolicyVerdict
from swift.identity.rights import AccessRequest

_BUCKET_ARN = "arn:aws:s3:::"
#: Action → the access control list of Swift that can allow it.
_ACL_OF_ACTION = {
    "s3:listbucket": "x-container-read",
    "s3:getobject": "x-container-read",
    "s3:putobject": "x-container-write",
    "s3:deleteobject": "x-container-write",
}


def account_of_resource(resource: str) -> str:
    """Return the account that a bucket is qualified with; empty for none, and for the ARNs of no bucket."""
    name = resource.removeprefix(_BUCKET_ARN)
    account, colon, _ = name.partition(":")
    return account if colon and "/" not in account and not name.startswith("arn:") else ""


class _Values:
    """The values of a request that is only asked about."""

    def __init__(self, values: Mapping[str, str]):
        self._values = values

    def values(self, key: str) -> Sequence[str] | None:
        """Return the values of a condition key; None if it is not given."""
        value = self._values.get(key)
        return None if value is None else (value,)


class PolicyCheck:
    """Answers the question; raises what the directory raises, and ``InvalidIdentity``."""

    def __init__(self, directory: Directory, client: InternalClient):
        self._directory = directory
        self._client = client

    def check_policy(
        self, *, action: str, resource: str, user: str = "", role: str = "", values: tuple[str, ...] = ()
    ) -> JsonObject:
        """Return the verdict on an action (``s3:GetObject``) on a bucket, ``BUCKET/KEY`` or an ARN.

        ``values`` are condition keys and their values as ``aws:SourceIp=10.0.0.1``.
        """
        if action.lower() not in ACTIONS:
            raise InvalidIdentity("action", f"there is no {shown(action)}")
        caller = self._caller(user, role)
        name = resource.removeprefix(_BUCKET_ARN)
        if name.startswith("arn:"):
            request = AccessRequest((action,), self._account_of_arn(name), _Values(_parse(values)), arn=name)
            bucket_policy, acls = None, dict[str, str]()
        else:
            account = account_of_resource(resource)
            rest = name.removeprefix(f"{account}:") if account else name
            account = account or caller.account
            bucket, _, key = rest.partition("/")
            request = AccessRequest((action,), account, _Values(_parse(values)), bucket, key)
            found, acls = self._bucket(account, bucket)
            bucket_policy = None if found is None else found.policy
        decision = caller.rights.explain(request, bucket_policy)
        if decision.verdict is not PolicyVerdict.SILENT:
            acls = {}
        acl = acls.get(_ACL_OF_ACTION.get(action.lower(), ""), "")
        return {
            "caller": caller.name,
            "action": action,
            "resource": resource,
            "verdict": decision.verdict.value,
            "allowed": decision.verdict is PolicyVerdict.ALLOW,
            "reasons": [str(reason) for reason in decision.reasons],
            "acl": ", ".join(acls.values()),
            "allowed_by_acl": _is_in_acl(caller, acl, is_listing=action.lower() == "s3:listbucket"),
        }

    def _caller(self, user: str, role: str) -> Caller:
        if bool(user) == bool(role):
            raise InvalidIdentity("user", "one of user and role must be given")
        if role:
            caller = self._directory.caller_of_role(QualifiedName.parse(role, "role"))
        else:
            caller = self._directory.caller_of_user(QualifiedName.parse(user, "user"))
        if caller is None:
            raise InvalidIdentity(
                "role" if role else "user", f"there is no {shown(role or user)}, or it is disabled"
            )
        return caller

    def _account_of_arn(self, arn: str) -> str:
        parts = arn.split(":", 5)
        return self._directory.account_of(parts[4]) if len(parts) == 6 else ""

    def _bucket(self, account: str, bucket: str) -> tuple[ReadPolicy | None, dict[str, str]]:
        """Return the policy and the access control lists of a bucket."""
        if not bucket:
            return None, {}
        try:
            headers = self._client.head(EntityPath(account, bucket)) or {}
            size = len(fields.CONTAINER_SYSMETA)
            found = with_prefix(headers, fields.CONTAINER_SYSMETA)
            sysmeta = {name[size:]: value for name, value in found.items()}
            acls = {
                name: headers[name] for name in ("x-container-read", "x-container-write") if headers.get(name)
            }
            return read_bucket_policy(sysmeta, bucket), acls
        except UnexpectedResponse as error:
            raise StoreUnavailable(str(error))
        except DamagedPolicy as error:
            raise InvalidIdentity("resource", str(error))


def _is_in_acl(caller: Caller, acl: str, *, is_listing: bool) -> bool:
    """Return True if an access control list names a group of the caller, or all clients."""
    referrers, groups = parse_acl(utf8_value(acl))
    is_public = is_referrer_allowed(None, referrers) and (not is_listing or ".rlistings" in groups)
    return is_public or not set(groups).isdisjoint(caller.groups.split(","))


def _parse(values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidIdentity("values", f"{shown(text)} must be KEY=VALUE")
        start, slash, rest = key.partition("/")
        found[start.lower() + slash + rest] = value
    return found
