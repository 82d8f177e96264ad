"""Authorisation by the roles that an identity service gave (spec: middleware.md §2).

The filter left of this one (``auth_token`` of keystonemiddleware) checks tokens and says in headers whose
they are; it also removes those headers from what clients send. This one only decides. Its callback knows the
identity, so that sub-requests have the rights of the request that they are made for.
"""

from __future__ import annotations

from functools import partial

from swift.config.schema import Conf
from swift.gateway.info import AccountInfo, account_info
from swift.http import environkeys, fields
from swift.http.acl import normalize_acl, parse_acl
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.access import has_referrer, has_sync_key, normalise_prefixes, prefix_of, unauthorised
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.keystoneauth.identity import Identity, identity_of
from swift.middleware.keystoneauth.settings import (
    KeystoneauthSettings,
    Roles,
    folded,
    roles_by_prefix,
)

#: Stored domain of an account whose owner's domain was unknown at its creation.
UNKNOWN_DOMAIN = "_unknown"
DOMAIN_HEADER = "x-account-project-domain-id"
_READING = ("GET", "HEAD")


class Keystoneauth(Filter):
    """Decides what a confirmed identity may do."""

    def __init__(self, app: App, settings: KeystoneauthSettings, conf: Conf):
        super().__init__(app)
        self._settings = settings
        self._prefixes = normalise_prefixes(settings.reseller_prefix)
        self._roles = roles_by_prefix(settings, conf, self._prefixes)
        self._reseller_admin = settings.reseller_admin_role.lower()
        self._system_readers = folded(settings.system_reader_roles)

    def handle(self, request: Request) -> Response:
        """Install the authorisation callback for the caller."""
        env = request.env
        if self._settings.allow_overrides and env.get(environkeys.AUTHORIZE_OVERRIDE):
            return self.forward(request)
        identity = identity_of(request)
        env[environkeys.CLEAN_ACL] = normalize_acl
        if identity is None:
            env[environkeys.AUTHORIZE] = self.authorise_anonymous
        else:
            self._identified(request, identity)
        response = self.forward(request)
        domain = response.headers.pop(fields.SYSMETA_PROJECT_DOMAIN, None)
        if domain:
            response.headers[DOMAIN_HEADER] = domain
        return response

    def _identified(self, request: Request, identity: Identity) -> None:
        env = request.env
        env[environkeys.REMOTE_USER] = identity.project
        env[environkeys.KEYSTONE_IDENTITY] = identity.shared
        env[environkeys.AUTHORIZE] = partial(self.authorise, identity)
        user = identity.user[0] or identity.user[1]
        if user:
            env[environkeys.ACCESS_LOGGING] = {"user_id": user}
        if self._reseller_admin in identity.own_roles:
            env[environkeys.RESELLER_REQUEST] = True

    # what the callbacks answer

    def authorise(self, identity: Identity, request: Request) -> Response | None:
        """None when the request may go on, else the denial (the contract of ``swift.authorize``)."""
        if request.method == "OPTIONS":
            return None
        if request.entity is None:
            return error_response(404)
        account, container, obj = request.entity.path
        info = self._bookkeeping(request, identity, account, container, obj)
        roles = identity.own_roles
        if self._reseller_admin in roles:
            request.env[environkeys.OWNER] = True
            return None
        if self._system_readers & roles and request.method in _READING:
            return None
        if request.method == "DELETE" and container is None:
            return _denied(request)
        referrers, granted = parse_acl(request.acl)
        if self._acl_names(request, identity, account, granted, info):
            return None
        by_referrer = has_referrer(request, referrers)
        if has_sync_key(request) or (by_referrer and (obj is not None or ".rlistings" in granted)):
            return None
        if not self._owns(identity, account):
            return _denied(request)
        return self._authorise_member(request, identity, account, granted, by_referrer=by_referrer)

    def _authorise_member(
        self, request: Request, identity: Identity, account: str, granted: list[str], *, by_referrer: bool
    ) -> Response | None:
        """Decide for a user of the account's own project."""
        mine, roles = self._roles_of(account), identity.own_roles
        if mine.operator & roles and (not mine.service or mine.service & identity.own_service_roles):
            request.env[environkeys.OWNER] = True
            return None
        if mine.reader & roles and request.method in _READING:
            return None
        if by_referrer:
            # A referrer of objects only asks for a listing.
            return _denied(request)
        return None if folded(granted) & roles else _denied(request)

    def authorise_anonymous(self, request: Request) -> Response | None:
        """Decide for an anonymous request."""
        if request.entity is None:
            return error_response(404)
        account, _container, obj = request.entity.path
        if request.method == "OPTIONS":
            return None
        if prefix_of(account, self._prefixes) is None:
            return _denied(request)
        referrers, granted = parse_acl(request.acl)
        listed = obj is not None or ".rlistings" in granted
        if has_sync_key(request) or (listed and has_referrer(request, referrers)):
            return None
        return _denied(request)

    # accounts and projects

    def _owns(self, identity: Identity, account: str) -> bool:
        """Return True if an account is that of the token's project, below any prefix."""
        project = identity.project[0]
        return project is not None and any(account == prefix + project for prefix in self._prefixes)

    def _roles_of(self, account: str) -> Roles:
        prefix = prefix_of(account, self._prefixes)
        return self._roles[prefix if prefix is not None else self._prefixes[0]]

    def _acl_names(
        self, request: Request, identity: Identity, account: str, granted: list[str], info: AccountInfo | None
    ) -> bool:
        """Return True if an ACL has ``project:user`` with one of these or a star on either side."""
        if not any(":" in item for item in granted):
            return False
        project_id, project_name = identity.project
        user_id, user_name = identity.user
        projects, users = [project_id, "*"], [user_id, "*"]
        if self._names_count(request, identity, account, info):
            projects.append(project_name)
            users.append(user_name)
        wanted = {f"{project}:{user}" for project in projects if project for user in users if user}
        return not wanted.isdisjoint(granted)

    def _names_count(
        self, request: Request, identity: Identity, account: str, info: AccountInfo | None
    ) -> bool:
        """Return True if names are unambiguous: only those of the default domain are."""
        if not self._settings.allow_names_in_acls:
            return False
        default = self._settings.default_domain_id
        domains = identity.user_domain_id, identity.project_domain_id
        if any(domain and domain != default for domain in domains):
            return False
        if self._owns(identity, account):
            return True
        info = info or account_info(request, self.forward, account)
        return _is_there(info) and info.sysmeta.get("project-domain-id") in (None, default)

    def _bookkeeping(
        self, request: Request, identity: Identity, account: str, container: str | None, obj: str | None
    ) -> AccountInfo | None:
        """Have a request that writes to an account store the domain of its project, when it is news."""
        writes = request.method == "PUT" or (request.method == "POST" and container is None)
        if obj is not None or not writes:
            return None
        info = account_info(request, self.forward, account)
        domain = self._new_domain(identity, account, info)
        if domain is not None:
            request.headers[fields.SYSMETA_PROJECT_DOMAIN] = domain
        return info

    def _new_domain(self, identity: Identity, account: str, info: AccountInfo) -> str | None:
        """Return the domain to store for the account's project, or None when the stored one is right."""
        domain, owns = identity.project_domain_id, self._owns(identity, account)
        if not _is_there(info):
            return domain if owns else UNKNOWN_DOMAIN
        if not owns:
            return None
        stored = info.sysmeta.get("project-domain-id")
        if stored is None:
            # Accounts older than domains are of the default one.
            return domain if domain == self._settings.default_domain_id else None
        return (domain or "") if stored == UNKNOWN_DOMAIN else None


def _is_there(info: AccountInfo) -> bool:
    """Return True if an account is stored; one that its first container would make is not."""
    return info.exists and info.really_exists


def _denied(request: Request) -> Response:
    return error_response(403) if request.env.get(environkeys.REMOTE_USER) else unauthorised(request)


FILTER = FilterDeclaration(
    "keystoneauth",
    KeystoneauthSettings,
    lambda app, settings, services: Keystoneauth(app, settings, services.conf),
    position=170,
    sample_lines=(
        "# needs auth_token of keystonemiddleware left of it",
        "# <PREFIX>_operator_roles, <PREFIX>_service_roles, <PREFIX>_project_reader_roles = <role>",
    ),
    right_of={"auth_token": "the user would not be identified yet"},
)
