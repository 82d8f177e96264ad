"""The commands of ``swift-user``: each calls operations and returns the result and the lines that show it."""

from __future__ import annotations

import argparse
import getpass
import json
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable

from swift.base.documents import JsonObject
from swift.base.errors import ConfigError
from swift.config.files import read_section
from swift.middleware.swiftauth.local import LocalIdentities
from swift.operations.identities import Identities, import_tempauth
from swift.operations.oidclogin import log_in
from swift.platform.regularfiles import read_through_links

_DURATION = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_FILE_BYTES_MAX = 1 << 20

#: Carries out a command; returns its result and the lines that show it.
Run = Callable[[Identities, argparse.Namespace], tuple[JsonObject, Iterable[str]]]

# --- alike in all kinds -------------------------------------------------------------------------------


def change(operation: str, param: str, line: str, **more: object) -> Run:
    """Return the command that calls an operation for the name in an argument; ``line`` has ``{}`` for it."""

    def run(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
        name = getattr(args, param)
        return identities.call(operation, **{param: name}, **more), [line.format(name)]

    return run


def show(operation: str, param: str) -> Run:
    """Return the command that shows what an argument names."""

    def run(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
        found = identities.call(operation, **{param: getattr(args, param)})
        return found, _fields(found)

    return run


def list_all(operation: str, kind: str) -> Run:
    """Return the command that lists all names of a kind in a tenant."""

    def run(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
        names = _pages(identities, operation, kind, args.tenant)
        return {"tenant": args.tenant, kind: names}, names

    return run


disable = change("UpdateUser", "user", "{} disabled", disabled=True)
enable = change("UpdateUser", "user", "{} enabled", disabled=False)
remove = change("DeleteUser", "user", "{} removed")
logout = change("RevokeSessions", "user", "tokens and sessions of {} ended")
show_user = show("GetUser", "user")
key_disable = change("UpdateAccessKey", "access_key", "{} disabled", disabled=True)
key_enable = change("UpdateAccessKey", "access_key", "{} enabled", disabled=False)
key_revoke = change("DeleteAccessKey", "access_key", "{} revoked")
group_list = list_all("ListGroups", "groups")
group_show = show("GetGroup", "group")
group_remove = change("DeleteGroup", "group", "{} removed")
role_list = list_all("ListRoles", "roles")
role_show = show("GetRole", "role")
role_remove = change("DeleteRole", "role", "{} removed")
role_logout = change("RevokeSessions", "role", "sessions of {} ended")
policy_remove = change("DeletePolicy", "policy", "{} removed")
provider_show = show("GetProvider", "provider")
provider_remove = change("DeleteProvider", "provider", "provider {} removed")

# --- users --------------------------------------------------------------------------------------------


def init(_identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user init``."""
    password = secrets.token_urlsafe(18)
    groups = [".admin", ".reseller_admin"]
    found = _identities.call("CreateUser", user=args.user, password=password, groups=groups)
    key = _identities.call("CreateAccessKey", user=args.user, note="made by swift-user init")
    result = {**found, "password": password, "access_key": key["access_key"], "secret_key": key["secret_key"]}
    return result, [
        f"user        {args.user}   (operator)",
        f"password    {password}",
        f"access key  {key['access_key']}",
        f"secret key  {key['secret_key']}",
        "They are not shown again.",
    ]


def _new_password(args: argparse.Namespace) -> str:
    if args.no_password:
        return ""
    if args.generate:
        return secrets.token_urlsafe(18)
    return _read_secret("password")


def _read_secret(noun: str) -> str:
    """Return a secret from the terminal, asked twice, or from standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass(f"{noun}: ")
    if getpass.getpass(f"{noun} again: ") != first:
        raise ConfigError(f"the two {noun}s differ; nothing was changed")
    return first


def add_user(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user add``."""
    password = _new_password(args)
    rights = [".admin"] * args.owner + [".reseller_admin"] * args.operator
    found = identities.call(
        "CreateUser",
        user=args.user,
        password=password or None,
        groups=[*rights, *args.group],
        policies=args.policy,
        note=args.note,
    )
    shown = {"password": password} if args.generate else {}
    return {**found, **shown}, [f"{args.user} created", *(f"password  {text}" for text in shown.values())]


def passwd(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user passwd``."""
    if args.no_password:
        raise ConfigError("a password cannot be taken away; disable the user, or generate one and forget it")
    password = _new_password(args)
    found = identities.call("SetPassword", user=args.user, password=password)
    shown = {"password": password} if args.generate else {}
    lines = [f"password of {args.user} set; its tokens have ended"]
    return {**found, **shown}, [*lines, *(f"password  {text}" for text in shown.values())]


def _pages(identities: Identities, operation: str, kind: str, tenant: str) -> list[str]:
    names: list[str] = []
    while True:
        found = identities.call(operation, tenant=tenant, marker=names[-1] if names else "")
        names += found[kind]
        if not found["more"]:
            return names


def list_names(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user list``."""
    if not args.tenant:
        found = identities.call("ListTenants")
        return found, found["tenants"]
    names = _pages(identities, "ListUsers", "users", args.tenant)
    return {"tenant": args.tenant, "users": names}, names


def _fields(found: JsonObject) -> Iterable[str]:
    """Yield a line for each field, documents below it."""
    for name, value in found.items():
        if name in ("created", "changed", "ends", "last_used"):
            value = _time_text(value)
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        elif isinstance(value, dict):
            value = ", ".join(f"{key}: {text}" for key, text in value.items())
        yield f"{name.replace('_', ' '):<13} {value}".rstrip()


def _time_text(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else "never"


def import_users(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user import``."""
    lines = list(import_tempauth(identities, read_section(args.file, args.section)))
    return {"done": lines}, lines


def check_records(identities: Identities, _args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user check``."""
    if not isinstance(identities, LocalIdentities):
        raise ConfigError("records are checked on a node, without --url")
    damaged = identities.check_records().damaged
    return {"damaged": list(damaged)}, damaged or ["all records can be read"]


def login(_identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user login``."""
    found = log_in(args.url, args.provider, opens_browser=not args.no_browser)
    lines = [f"export OS_AUTH_TOKEN={found['token']}", f"export OS_STORAGE_URL={found['storage_url']}"]
    return found, lines


# --- keys ---------------------------------------------------------------------------------------------


def _parse_end(text: str) -> float:
    """Return the Unix time of a span from now or of a date; 0 for none."""
    if not text:
        return 0.0
    match = _DURATION.fullmatch(text)
    if match:
        return time.time() + int(match[1]) * _SECONDS[match[2]]
    try:
        return float(time.mktime(time.strptime(text, "%Y-%m-%d"))) - time.timezone
    except ValueError:
        raise ConfigError(f"{text!r} is no time; write 90d, 12h or 2027-01-31")


def _parse_span(text: str | None) -> float | None:
    if text is None:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is no span of time; write 1h or 12h")
    return float(int(match[1]) * _SECONDS[match[2]])


def key_create(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user key create``."""
    key = identities.call(
        "CreateAccessKey",
        user=args.user,
        access_key=args.access_key,
        ends=_parse_end(args.ends),
        note=args.note,
        read_only=args.read_only,
        container=args.container,
        prefix=args.prefix,
        networks=args.network,
    )
    lines = [f"access key  {key['access_key']}", f"secret key  {key['secret_key']}", "It is not shown again."]
    return key, lines


def key_list(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user key list``."""
    found = identities.call("ListAccessKeys", user=args.user)
    return found, map(_key_line, found["keys"])


def _key_line(key: JsonObject) -> str:
    limits = [
        *(["disabled"] * key["disabled"] + ["read-only"] * key["read_only"]),
        *(filter(None, [f"{key['container']}/{key['prefix']}" if key["prefix"] else key["container"]])),
        *key["networks"],
    ]
    if key["damaged"]:
        return f"{key['access_key']}  damaged"
    used = (
        f"used {_time_text(key['last_used'])} from {key['last_address']}" if key["last_used"] else "not used"
    )
    ends = f"ends {_time_text(key['ends'])}" if key["ends"] else "lasts"
    return "  ".join(filter(None, (key["access_key"], ends, used, ", ".join(limits), key["note"])))


# --- groups -------------------------------------------------------------------------------------------


def group_add(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user group add``."""
    found = identities.call("CreateGroup", group=args.group, plain=args.plain or None, note=args.note)
    return found, [f"{args.group} created"]


def group_join(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user group join``."""
    return _change_members(identities, args, "AddUserToGroup", "is in")


def group_leave(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user group leave``."""
    return _change_members(identities, args, "RemoveUserFromGroup", "is no more in")


def _change_members(
    identities: Identities, args: argparse.Namespace, operation: str, words: str
) -> tuple[JsonObject, Iterable[str]]:
    tenant, _, group = args.group.partition(":")
    users = [name if ":" in name else f"{tenant}:{name}" for name in args.name]
    for user in users:
        identities.call(operation, user=user, group=group)
    return {"group": args.group, "users": users}, [f"{user} {words} {args.group}" for user in users]


# --- roles --------------------------------------------------------------------------------------------


def _read_file(path: str) -> str:
    try:
        data = read_through_links(path)
        if len(data) > _FILE_BYTES_MAX:
            raise ConfigError(f"{path} is larger than {_FILE_BYTES_MAX} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}")


def role_add(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user role add``."""
    found = identities.call(
        "CreateRole",
        role=args.role,
        trust=_read_file(args.trust),
        groups=[".admin"] * args.owner,
        policies=args.policy,
        max_session=_parse_span(args.max_session),
        note=args.note,
    )
    return found, [f"{found['arn']} created"]


def role_set(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user role set``."""
    if args.enable and args.disable:
        raise ConfigError("--enable and --disable exclude each other")
    found = identities.call(
        "UpdateRole",
        role=args.role,
        trust=_read_file(args.trust) if args.trust else None,
        max_session=_parse_span(args.max_session),
        disabled=args.disable if args.enable or args.disable else None,
    )
    return found, [f"{args.role} changed"]


# --- policies -----------------------------------------------------------------------------------------


def policy_add(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user policy add``."""
    document = _read_file(args.file)
    found = identities.call("CreatePolicy", policy=args.policy, document=document, note=args.note)
    return found, [f"{args.policy} created"]


def policy_set(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user policy set``."""
    found = identities.call("UpdatePolicy", policy=args.policy, document=_read_file(args.file))
    return found, [f"{args.policy} replaced"]


def policy_list(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user policy list``."""
    names = _pages(identities, "ListPolicies", "policies", args.tenant)
    predefined = identities.call("ListPolicies", tenant=args.tenant)["predefined"]
    lines = [*names, *(f"{name}   (predefined)" for name in predefined)]
    return {"tenant": args.tenant, "policies": names, "predefined": predefined}, lines


def policy_show(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user policy show``."""
    found = identities.call("GetPolicy", policy=args.policy)
    return found, [json.dumps(json.loads(found["document"]), indent=2)]


def _holder(args: argparse.Namespace) -> dict[str, str]:
    return {kind: name for kind in ("user", "group", "role") if (name := getattr(args, kind, ""))}


def policy_attach(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user policy attach``."""
    holder = _holder(args)
    found = identities.call("AttachPolicy", policy=args.name, **holder)
    return found, [f"{args.name} attached to {next(iter(holder.values()))}"]


def policy_detach(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user policy detach``."""
    holder = _holder(args)
    found = identities.call("DetachPolicy", policy=args.name, **holder)
    return found, [f"{args.name} detached from {next(iter(holder.values()))}"]


def policy_check(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user policy check``."""
    found = identities.call(
        "CheckPolicy", action=args.action, resource=args.resource, values=args.value, **_holder(args)
    )
    verdict = {"allow": "yes", "deny": "no: a policy denies it", "silent": "no: no policy allows it"}
    lines = [f"{verdict[found['verdict']]}", *(f"  {reason}" for reason in found["reasons"])]
    if found["acl"]:
        lines.append(f"  the container's ACL may allow it: {found['acl']}")
    return found, lines


# --- providers ----------------------------------------------------------------------------------------


def provider_set(identities: Identities, args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user provider set``."""
    secret = _read_secret("client secret") if args.secret else ""
    found = identities.call(
        "PutProvider", provider=args.name, settings=_read_file(args.file), client_secret=secret
    )
    return found, [f"provider {args.name} stored"]


def provider_list(identities: Identities, _args: argparse.Namespace) -> tuple[JsonObject, Iterable[str]]:
    """Carry out ``swift-user provider list``."""
    found = identities.call("ListProviders")
    return found, found["providers"]
