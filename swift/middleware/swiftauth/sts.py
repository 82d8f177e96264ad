"""STS: temporary access keys. They need no record: the session token has all that is needed, signed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace

from swift.identity.directory import Caller
from swift.identity.names import InvalidIdentity, QualifiedName, parse_arn
from swift.identity.oidc.errors import OidcCause, OidcError
from swift.identity.policy.conditions import InvalidPolicy, PolicyContext
from swift.identity.policy.document import parse_session_policy
from swift.identity.policy.evaluate import PolicyVerdict
from swift.identity.policy.principals import role_arn
from swift.identity.records import Role
from swift.identity.rights import AccessRequest
from swift.identity.tokens import Ticket, is_session_key, new_id
from swift.middleware.swiftauth.query import Handler, Query, QueryError, Value, access_denied
from swift.middleware.swiftauth.service import IdentityService
from swift.middleware.swiftauth.webidentity import WebIdentity, is_trusted, trust_of

NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
#: Shortest session; longest one of a user; longest one of a role that a role takes.
DURATION_MIN, USER_DURATION_MAX, CHAIN_DURATION_MAX = 900.0, 129600.0, 3600.0
DURATION_DEFAULT, USER_DURATION_DEFAULT = 3600.0, 43200.0
_is_session_name = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII).fullmatch
#: Parameters that are refused, not ignored: they would limit the session.
_REFUSED_PARAMS = ("PolicyArns.member.1.arn", "Tags.member.1.Key", "SerialNumber", "TokenCode")


class Sts:
    """The actions of STS."""

    def __init__(self, service: IdentityService, now: Callable[[], float]):
        self._service = service
        self._now = now
        self.handlers: dict[str, Handler] = {
            "GetCallerIdentity": self._get_caller_identity,
            "GetSessionToken": self._get_session_token,
            "AssumeRole": self._assume_role,
            "AssumeRoleWithWebIdentity": self._assume_role_with_web_identity,
        }
        #: Actions without a signature.
        self.unsigned = frozenset(("AssumeRoleWithWebIdentity",))

    def _get_caller_identity(self, query: Query) -> dict[str, Value]:
        caller = query.caller
        assert caller is not None, "it is signed"
        values = caller.rights.condition_values
        return {
            "Arn": values["aws:principalarn"],
            "UserId": values["aws:userid"],
            "Account": caller.tenant,
        }

    def _get_session_token(self, query: Query) -> dict[str, Value]:
        caller = query.caller
        assert caller is not None, "it is signed"
        _refuse_params(query)
        if is_session_key(query.access_key):
            raise access_denied("Cannot call GetSessionToken with session credentials")
        _require_action(caller, "sts:GetSessionToken", query.context())
        duration = _duration(query, USER_DURATION_DEFAULT, USER_DURATION_MAX)
        now = self._now()
        ticket = Ticket(caller.name, now, now + duration, new_id(), parent=query.access_key)
        return {"Credentials": self._credentials(ticket)}

    def session_keys(self, ticket: Ticket, caller: Caller, context: PolicyContext) -> dict[str, Value]:
        """Return temporary keys that are the same session as a token of the Swift API, and end with it.

        Raises ``QueryError`` for a user to whom sts:GetSessionToken is denied.
        """
        if not ticket.is_session:
            # The limits of the token's key are those of the new keys; they need not allow the action.
            without_limits = replace(caller.rights, boundaries=())
            _require_action(caller._replace(rights=without_limits), "sts:GetSessionToken", context)
        return self._credentials(ticket)

    def _assume_role(self, query: Query) -> dict[str, Value]:
        caller = query.caller
        assert caller is not None, "it is signed"
        _refuse_params(query)
        name, role = self._role(query)
        session = _session_name(query)
        values = {"sts:rolesessionname": session, **_optional(query, "ExternalId", "sts:externalid")}
        request = AccessRequest(
            ("sts:AssumeRole",),
            self._service.directory.account_of(name.tenant),
            query.context(values),
            arn=role_arn(name.tenant, name.name),
        )
        if role is None or not caller.rights.decide_assumption(request, trust_of(role)).is_allowed:
            raise access_denied(f"{caller.name} is not authorized to perform: sts:AssumeRole on this role")
        longest = role.max_session
        if caller.rights.condition_values.get("aws:principaltype") == "AssumedRole":
            longest = min(longest, CHAIN_DURATION_MAX)
        return self._session(query, name, role, session, longest, caller.name)

    def _assume_role_with_web_identity(self, query: Query) -> dict[str, Value]:
        _refuse_params(query)
        identity = self._web_identity(query)
        name, role = self._role(query, identity)
        session = query.params.get("RoleSessionName") or _session_of_claims(identity)
        if not _is_session_name(session):
            raise _session_name_error()
        context = query.context({"sts:rolesessionname": session}, identity.condition_values())
        if role is None or not is_trusted(role, identity, context):
            raise access_denied("Not authorized to perform sts:AssumeRoleWithWebIdentity")
        source = f"{identity.provider.name}:{identity.claims.subject}"
        longest = role.max_session
        result = self._session(query, name, role, session, longest, source)
        return {
            **result,
            "SubjectFromWebIdentityToken": identity.claims.subject,
            "Audience": identity.claims.audiences[0] if identity.claims.audiences else "",
            "Provider": identity.provider.name,
        }

    def _web_identity(self, query: Query) -> WebIdentity:
        arn = query.params.get("RoleArn", "")
        tenant = _name_of_role(arn).tenant if arn else ""
        try:
            return self._service.web.verify(query.text("WebIdentityToken"), tenant)
        except OidcError as error:
            if error.is_unavailable:
                raise QueryError("IDPCommunicationError", str(error), 503)
            code = "ExpiredTokenException" if error.cause is OidcCause.EXPIRED else "InvalidIdentityToken"
            raise QueryError(code, str(error))

    def _role(self, query: Query, identity: WebIdentity | None = None) -> tuple[QualifiedName, Role | None]:
        """Return the role that a request names, or that its web identity has; None for one there is not."""
        arn = query.params.get("RoleArn", "")
        if not arn and identity is not None and identity.claims.roles:
            name = QualifiedName(f"{identity.provider.tenant}:{identity.claims.roles[0]}")
        else:
            name = _name_of_role(query.text("RoleArn"))
        role = self._service.directory.cache.get(Role, name)
        return name, None if role is None or role.disabled else role

    def _session(
        self, query: Query, name: QualifiedName, role: Role, session: str, longest: float, source: str
    ) -> dict[str, Value]:
        duration = _duration(query, min(DURATION_DEFAULT, longest), longest)
        policy = query.params.get("Policy", "")
        if policy:
            try:
                parse_session_policy(policy)
            except InvalidPolicy as error:
                raise QueryError("MalformedPolicyDocument", f"Policy: {error}")
        now = self._now()
        ticket = Ticket(
            name, now, now + duration, new_id(), session=session, policy=policy, source=source[:256]
        )
        return {
            "AssumedRoleUser": {
                "Arn": f"arn:aws:sts::{name.tenant}:assumed-role/{name.name}/{session}",
                "AssumedRoleId": f"{name}:{session}",
            },
            "Credentials": self._credentials(ticket),
        }

    def _credentials(self, ticket: Ticket) -> dict[str, Value]:
        tickets = self._service.directory.tickets
        access_key = tickets.session_key(ticket.id)
        token, secret = tickets.make_session_token(replace(ticket, access_key=access_key))
        return {
            "AccessKeyId": access_key,
            "SecretAccessKey": secret,
            "SessionToken": token,
            "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ticket.ends)),
        }


def _name_of_role(arn: str) -> QualifiedName:
    try:
        return parse_arn(arn, "role", "RoleArn")
    except InvalidIdentity as error:
        raise QueryError("ValidationError", str(error))


def _refuse_params(query: Query) -> None:
    for name in _REFUSED_PARAMS:
        if name in query.params:
            raise QueryError("NotImplemented", f"{name.partition('.')[0]} is not implemented", 501)


def _require_action(caller: Caller, action: str, context: PolicyContext) -> None:
    request = AccessRequest((action,), caller.account, context, arn="*")
    if caller.rights.decide(request, None).verdict is PolicyVerdict.DENY:
        raise access_denied(f"{caller.name} is not authorized to perform: {action}")


def _duration(query: Query, default: float, longest: float) -> float:
    seconds = query.number("DurationSeconds", default)
    if not DURATION_MIN <= seconds <= longest:
        text = f"DurationSeconds: must be {DURATION_MIN:g} to {longest:g} seconds"
        raise QueryError("ValidationError", text)
    return seconds


def _session_name(query: Query) -> str:
    name = query.text("RoleSessionName")
    if not _is_session_name(name):
        raise _session_name_error()
    return name


def _session_name_error() -> QueryError:
    return QueryError(
        "ValidationError", "RoleSessionName: must have 2 to 64 letters, digits and _+=,.@- characters"
    )


def _session_of_claims(identity: WebIdentity) -> str:
    """Return a session name made of the subject's name."""
    return re.sub(r"[^\w+=,.@-]", "-", identity.claims.user, flags=re.ASCII)[:64].ljust(2, "-")


def _optional(query: Query, param: str, key: str) -> dict[str, str]:
    value = query.params.get(param)
    return {} if value is None else {key: value}
