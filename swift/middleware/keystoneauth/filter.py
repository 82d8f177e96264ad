"""Authorization by the roles of an identity service (spec: middleware.md §2).

The filter to the left (``auth_token`` of keystonemiddleware) validates tokens and sets identity headers; it
removes such headers from clients' requests. This filter only authorizes. Its callback contains the identity,
so that sub-requests have the rights of the original request.
"""

from __future__ import annotations

from functools import partial

from swift.config.schema import Conf
from swift.gateway.info import AccountInfo, account_info
from swift.http import environkeys, fields
from swift.http.acl import normalize_acl, parse_acl
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.authorization import (
    has_valid_sync_key,
    is_request_referrer_allowed,
    match_prefix,
    normalise_prefixes,
    respond_to_identity_question,
    unauthorized_response,
)
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.keystoneauth.identity import Identity, get_identity
from swift.middleware.keystoneauth.settings import KeystoneauthSettings, Roles, fold_roles, roles_by_prefix

#: Stored domain of an account that was created while its owner's domain was unknown.
UNKNOWN_DOMAIN = "_unknown"
DOMAIN_HEADER = "x-account-project-domain-id"
_READ_METHODS = ("GET", "HEAD")


class Keystoneauth(Filter):
    """Authorizes requests of a confirmed identity."""

    def __init__(self, app: App, settings: KeystoneauthSettings, conf: Conf):
        super().__init__(app)
        self._settings = settings
        self._prefixes = normalise_prefixes(settings.reseller_prefix)
        self._roles = roles_by_prefix(settings, conf, self._prefixes)
        self._reseller_admin = settings.reseller_admin_role.lower()
        self._system_readers = fold_roles(settings.system_reader_roles)

    def handle(self, request: Request) -> Response:
        """Install the authorisation callback for the caller."""
        env = request.env
        if self._settings.allow_overrides and env.get(environkeys.AUTHORIZE_OVERRIDE):
            return self.forward(request)
        identity = get_identity(request)
        env[environkeys.CLEAN_ACL] = normalize_acl
        if identity is None:
            env[environkeys.AUTHORIZE] = self.authorise_anonymous
        else:
            self._set_identity(request, identity)
        response = respond_to_identity_question(request) or self.forward(request)
        domain = response.headers.pop(fields.SYSMETA_PROJECT_DOMAIN, None)
        if domain:
            response.headers[DOMAIN_HEADER] = domain
        return response

    def _set_identity(self, request: Request, identity: Identity) -> None:
        env = request.env
        env[environkeys.REMOTE_USER] = identity.project
        env[environkeys.KEYSTONE_IDENTITY] = identity.environ_value
        env[environkeys.AUTHORIZE] = partial(self.authorise, identity)
        user = identity.user[0] or identity.user[1]
        if user:
            env[environkeys.ACCESS_LOGGING] = {"user_id": user}
        if self._reseller_admin in identity.folded_roles:
            env[environkeys.RESELLER_REQUEST] = True

    # authorization callbacks

    def authorise(self, identity: Identity, request: Request) -> Response | None:
        """Return None for an allowed request, else the denial (the contract of ``swift.authorize``)."""
        if request.method == "OPTIONS":
            return None
        if request.entity is None:
            return error_response(404)
        account, container, obj = request.entity.path
        if account.startswith("."):
            # Hidden accounts have the cluster's own records.
            return _denial(request)
        info = self._update_project_domain(request, identity, account, container, obj)
        roles = identity.folded_roles
        if self._reseller_admin in roles:
            request.env[environkeys.OWNER] = True
            return None
        if self._system_readers & roles and request.method in _READ_METHODS:
            return None
        if request.method == "DELETE" and container is None:
            return _denial(request)
        referrers, granted = parse_acl(request.acl)
        if self._is_named_in_acl(request, identity, account, granted, info):
            return None
        by_referrer = is_request_referrer_allowed(request, referrers)
        if has_valid_sync_key(request) or (by_referrer and (obj is not None or ".rlistings" in granted)):
            return None
        if not self._is_owner(identity, account):
            return _denial(request)
        return self._authorise_member(request, identity, account, granted, by_referrer=by_referrer)

    def _authorise_member(
        self, request: Request, identity: Identity, account: str, granted: list[str], *, by_referrer: bool
    ) -> Response | None:
        """Authorize a user of the account's own project."""
        account_roles, roles = self._roles_of(account), identity.folded_roles
        if account_roles.operator & roles and (
            not account_roles.service or account_roles.service & identity.folded_service_roles
        ):
            request.env[environkeys.OWNER] = True
            return None
        if account_roles.reader & roles and request.method in _READ_METHODS:
            return None
        if by_referrer:
            # The ACL allows the referrer to read objects, not to list them.
            return _denial(request)
        return None if fold_roles(granted) & roles else _denial(request)

    def authorise_anonymous(self, request: Request) -> Response | None:
        """Authorize an anonymous request."""
        if request.entity is None:
            return error_response(404)
        account, _container, obj = request.entity.path
        if request.method == "OPTIONS":
            return None
        if match_prefix(account, self._prefixes) is None:
            return _denial(request)
        referrers, granted = parse_acl(request.acl)
        is_readable = obj is not None or ".rlistings" in granted
        if has_valid_sync_key(request) or (is_readable and is_request_referrer_allowed(request, referrers)):
            return None
        return _denial(request)

    # accounts and projects

    def _is_owner(self, identity: Identity, account: str) -> bool:
        """Return True if the account belongs to the token's project, under any prefix."""
        project = identity.project[0]
        return project is not None and any(account == prefix + project for prefix in self._prefixes)

    def _roles_of(self, account: str) -> Roles:
        prefix = match_prefix(account, self._prefixes)
        return self._roles[prefix if prefix is not None else self._prefixes[0]]

    def _is_named_in_acl(
        self, request: Request, identity: Identity, account: str, granted: list[str], info: AccountInfo | None
    ) -> bool:
        """Return True if an ACL contains ``project:user`` of the identity, with a star for either part."""
        if not any(":" in item for item in granted):
            return False
        project_id, project_name = identity.project
        user_id, user_name = identity.user
        projects, users = [project_id, "*"], [user_id, "*"]
        if self._are_names_unique(request, identity, account, info):
            projects.append(project_name)
            users.append(user_name)
        grants = {f"{project}:{user}" for project in projects if project for user in users if user}
        return not grants.isdisjoint(granted)

    def _are_names_unique(
        self, request: Request, identity: Identity, account: str, info: AccountInfo | None
    ) -> bool:
        """Return True if ACLs may use names: they are unique only in the default domain."""
        if not self._settings.allow_names_in_acls:
            return False
        default = self._settings.default_domain_id
        domains = identity.user_domain_id, identity.project_domain_id
        if any(domain and domain != default for domain in domains):
            return False
        if self._is_owner(identity, account):
            return True
        info = info or account_info(request, self.forward, account)
        return _is_stored(info) and info.sysmeta.get("project-domain-id") in (None, default)

    def _update_project_domain(
        self, request: Request, identity: Identity, account: str, container: str | None, obj: str | None
    ) -> AccountInfo | None:
        """Let a write to an account store the domain of its project if the stored one is outdated."""
        writes = request.method == "PUT" or (request.method == "POST" and container is None)
        if obj is not None or not writes:
            return None
        info = account_info(request, self.forward, account)
        domain = self._domain_to_store(identity, account, info)
        if domain is not None:
            request.headers[fields.SYSMETA_PROJECT_DOMAIN] = domain
        return info

    def _domain_to_store(self, identity: Identity, account: str, info: AccountInfo) -> str | None:
        """Return the domain to store for the account's project; None when the stored one is right."""
        domain, owns = identity.project_domain_id, self._is_owner(identity, account)
        if not _is_stored(info):
            return domain if owns else UNKNOWN_DOMAIN
        if not owns:
            return None
        stored = info.sysmeta.get("project-domain-id")
        if stored is None:
            # Accounts from before domains existed belong to the default one.
            return domain if domain == self._settings.default_domain_id else None
        return (domain or "") if stored == UNKNOWN_DOMAIN else None


def _is_stored(info: AccountInfo) -> bool:
    """Return True if an account is stored, not only implied by autocreation."""
    return info.exists and info.really_exists


def _denial(request: Request) -> Response:
    return error_response(403) if request.env.get(environkeys.REMOTE_USER) else unauthorized_response(request)


FILTER = FilterDeclaration(
    "keystoneauth",
    KeystoneauthSettings,
    lambda app, settings, services: Keystoneauth(app, settings, services.conf),
    position=170,
    sample_lines=(
        "# needs auth_token of keystonemiddleware left of it",
        "# <PREFIX>_operator_roles, <PREFIX>_service_roles, <PREFIX>_project_reader_roles = <role>",
    ),
    right_of={"auth_token": "auth_token identifies the user"},
)
