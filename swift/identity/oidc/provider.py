"""An identity provider as the operator describes it: a JSON document whose every field is checked."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from swift.base.documents import JsonObject
from swift.base.errors import InvalidValue

URL_CHARACTERS_MAX = 512
NAMES_MAX = 1000
NAME_CHARACTERS_MAX = 256
CLOCK_SKEW_S_MAX = 300

_PROVIDER_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_TENANT = re.compile(r"[^\s:/]{1,64}")
#: Names of roles as IAM has them.
ROLE_NAME = re.compile(r"[\w+=,.@-]{1,64}", re.ASCII)
#: A host name or an address, and a port: nothing that parsers of URLs take differently.
_AUTHORITY = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def is_name(value: object) -> bool:
    """Return True for a text that may name a user, a group or a claim: printable and of bounded length."""
    return isinstance(value, str) and 0 < len(value) <= NAME_CHARACTERS_MAX and value.isprintable()


def is_provider_name(text: str) -> bool:
    """Return True for a text that may name a provider, also as a segment of a path."""
    return _PROVIDER_NAME.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Return True for ``localhost`` and for addresses of this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_url(url: object, *, allows_http: bool = False) -> SplitResult:
    """Return the parts of an ``https`` URL; ``http`` is for the loopback interface, or where it is allowed.

    Raises ``InvalidValue`` with the reason.
    """
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise InvalidValue("must be a URL")
    if len(url) > URL_CHARACTERS_MAX:
        raise InvalidValue(f"must have at most {URL_CHARACTERS_MAX} characters")
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise InvalidValue("must be a URL")
    if parts.username is not None or parts.password is not None:
        raise InvalidValue("must have no user name and no password")
    if not host or not _AUTHORITY.fullmatch(parts.netloc) or parts.scheme not in ("http", "https"):
        raise InvalidValue("must be an https URL")
    if parts.scheme == "http" and not allows_http and not is_loopback(host):
        raise InvalidValue("must be an https URL; http is for loopback addresses only")
    if "#" in url:
        raise InvalidValue("must have no fragment")
    return parts


@dataclass(frozen=True)
class Provider:
    """A provider of OpenID Connect; raises ``InvalidValue`` that names the field which is wrong."""

    name: str
    #: The value of the claim ``iss``; the discovery document is below it.
    issuer: str
    client_id: str
    #: The tenant whose users log in through the provider.
    tenant: str
    #: Empty for a public client, which PKCE alone protects.
    client_secret: str = field(default="", repr=False)
    #: The accepted values of the claim ``aud`` of workloads; ``client_id`` by default.
    audiences: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    #: The claim that has the user's name.
    user_claim: str = "sub"
    #: The claim that has the names of groups; a dot leads into an object: ``realm_access.roles``.
    groups_claim: str = "groups"
    #: The claim that has names of roles of the tenant itself; none by default.
    role_claim: str = ""
    #: Group → the names of its roles.
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The file with the certificates that sign the provider's; those of the system by default.
    ca_file: str = ""
    clock_skew_seconds: int = 60
    #: The URL of the callback, if it is not below the public URL of the cluster.
    redirect_uri: str = ""
    #: ``http`` is allowed for other hosts than the loopback interface too. For tests.
    insecure: bool = False

    def __post_init__(self) -> None:
        if not self.audiences:
            object.__setattr__(self, "audiences", (self.client_id,))
        for name, check in _CHECKS.items():
            if reason := check(getattr(self, name)):
                raise InvalidValue(f"{name}: {reason}")
        for name in ("issuer", "redirect_uri"):
            if url := getattr(self, name):
                self._check_url(name, url)

    def _check_url(self, name: str, url: str) -> None:
        try:
            parts = check_url(url, allows_http=self.insecure)
        except InvalidValue as error:
            raise InvalidValue(f"{name}: {error}")
        if parts.query or url.endswith("?"):
            raise InvalidValue(f"{name}: must have no query")

    def check_endpoint(self, url: object) -> SplitResult:
        """Return the parts of a URL that the provider's own documents name; raises ``InvalidValue``.

        A provider with TLS must not lead to services without it, such as those of this machine.
        """
        parts = check_url(url, allows_http=self.insecure)
        if parts.scheme == "http" and not self.insecure and not self.issuer.lower().startswith("http:"):
            raise InvalidValue("must be an https URL")
        return parts

    @classmethod
    def from_document(cls, document: object) -> Provider:
        """Return the provider of a JSON object; raises ``InvalidValue`` that names the field."""
        if not isinstance(document, dict):
            raise InvalidValue("a provider is a JSON object")
        fields = {each.name: each for each in dataclasses.fields(cls)}
        for name in document:
            if name not in fields:
                raise InvalidValue(f"{str(name)[:NAME_CHARACTERS_MAX]!r}: there is no such field")
        for name in ("name", "issuer", "client_id", "tenant"):
            if name not in document:
                raise InvalidValue(f"{name}: is missing")
        values: JsonObject = {
            name: _READERS[str(fields[name].type)](name, value) for name, value in document.items()
        }
        return cls(**values)

    def to_document(self) -> JsonObject:
        """Return the JSON object, with ``client_secret`` in plain text."""
        document = dataclasses.asdict(self)
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in document.items()
        } | {"roles": {group: list(names) for group, names in self.roles.items()}}

    def roles_of(self, groups: tuple[str, ...], claims: Mapping[str, object]) -> tuple[str, ...]:
        """Return the names of the roles that groups and claims give, each once."""
        found = [role for group in groups for role in self.roles.get(group, ())]
        if self.role_claim:
            named = claim_at(claims, self.role_claim)
            values = named if isinstance(named, list) else [named]
            found += [
                each for each in values[:NAMES_MAX] if isinstance(each, str) and ROLE_NAME.fullmatch(each)
            ]
        return tuple(dict.fromkeys(found))


def claim_at(claims: Mapping[str, object], path: str) -> object:
    """Return the claim at a dotted path, None if there is none.

    Names of claims may have dots themselves: the longest name that there is counts.
    """
    if path in claims:
        return claims[path]
    end = len(path)
    while (end := path.rfind(".", 0, end)) > 0:
        inner = claims.get(path[:end])
        if isinstance(inner, dict) and (found := claim_at(inner, path[end + 1 :])) is not None:
            return found
    return None


def _read_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{name}: must be a text")
    return value


def _read_texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidValue(f"{name}: must be a list of texts")
    return tuple(value)


def _read_roles(name: str, value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise InvalidValue(f"{name}: must be an object of lists of role names")
    return {str(group): _read_texts(f"{name}[{str(group)[:64]!r}]", names) for group, names in value.items()}


def _read_bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(f"{name}: must be true or false")
    return value


def _read_int(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(f"{name}: must be a whole number")
    return value


#: Annotation of a field → reader of its JSON value.
_READERS: dict[str, Callable[[str, object], object]] = {
    "str": _read_text,
    "tuple[str, ...]": _read_texts,
    "Mapping[str, tuple[str, ...]]": _read_roles,
    "bool": _read_bool,
    "int": _read_int,
}


def _check_name(value: str) -> str:
    return "" if is_name(value) else f"must have 1 to {NAME_CHARACTERS_MAX} printable characters"


def _check_secret(value: str) -> str:
    return (
        "" if not value or is_name(value) else f"must have at most {NAME_CHARACTERS_MAX} printable characters"
    )


def _check_names(values: tuple[str, ...]) -> str:
    if len(values) > NAMES_MAX:
        return f"must have at most {NAMES_MAX} values"
    return next((reason for value in values if (reason := _check_name(value))), "")


def _check_scopes(values: tuple[str, ...]) -> str:
    if "openid" not in values:
        return "must have openid"
    wrong = len(values) > NAMES_MAX or not all(is_name(each) and _SCOPE.fullmatch(each) for each in values)
    return "must be a list of scopes" if wrong else ""


def _check_roles(roles: Mapping[str, tuple[str, ...]]) -> str:
    if len(roles) > NAMES_MAX:
        return f"must have at most {NAMES_MAX} groups"
    for group, names in roles.items():
        if not is_name(group):
            return f"the name of a group must have 1 to {NAME_CHARACTERS_MAX} printable characters"
        if len(names) > NAMES_MAX or not all(ROLE_NAME.fullmatch(name) for name in names):
            return f"the roles of {group!r} must be names of roles"
    return ""


def _check_skew(seconds: int) -> str:
    return "" if 0 <= seconds <= CLOCK_SKEW_S_MAX else f"must be 0 to {CLOCK_SKEW_S_MAX}"


def _check_ca_file(path: str) -> str:
    return "" if not path or (path.startswith("/") and path.isprintable()) else "must be an absolute path"


#: Field → the reason for which a value of it is refused, "" if it is not.
_CHECKS: dict[str, Callable[..., str]] = {
    "name": lambda value: "" if is_provider_name(value) else "must have 1 to 64 of a-z, 0-9, '.', '_', '-'",
    "client_id": _check_name,
    "tenant": lambda value: (
        "" if _TENANT.fullmatch(value) and value.isprintable() else "must be the name of a tenant"
    ),
    "issuer": lambda value: "" if value else "must be an https URL",
    "client_secret": _check_secret,
    "audiences": _check_names,
    "scopes": _check_scopes,
    "user_claim": _check_name,
    "groups_claim": _check_name,
    "role_claim": lambda value: _check_name(value) if value else "",
    "roles": _check_roles,
    "ca_file": _check_ca_file,
    "clock_skew_seconds": _check_skew,
}
