"""swift-user: users, access keys, groups, roles and policies of a cluster with ``swiftauth``.

On a node it works without a password, through ``internal-client.conf`` and the cluster's key file;
the first user is made so. Elsewhere it asks a proxy as an operator (``--url``, or ST_AUTH, ST_USER, ST_KEY).
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Sequence

from swift.base.documents import JsonObject
from swift.base.errors import ConfigError, SwiftError
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.identity.clusterkeys import create_key_file
from swift.identity.operations import Forbidden
from swift.middleware.swiftauth.local import KEY_FILE, LocalIdentities
from swift.operations.identities import Identities, RemoteIdentities
from swift.operations.identitycommands import (
    Run,
    add_user,
    check_records,
    disable,
    enable,
    group_add,
    group_join,
    group_leave,
    group_list,
    group_remove,
    group_show,
    import_users,
    init,
    key_create,
    key_disable,
    key_enable,
    key_list,
    key_revoke,
    list_names,
    login,
    logout,
    passwd,
    policy_add,
    policy_attach,
    policy_check,
    policy_detach,
    policy_list,
    policy_remove,
    policy_set,
    policy_show,
    provider_list,
    provider_remove,
    provider_set,
    provider_show,
    remove,
    role_add,
    role_list,
    role_logout,
    role_remove,
    role_set,
    role_show,
    show_user,
)
from swift.runtime.service.services import SWIFT_DIR

NAME = "swift-user"
_EPILOG = """examples:
  swift-user init                                  the cluster's keys and the first operator
  swift-user add photos:alice --generate --policy readwrite
  swift-user key create photos:alice --ends 90d --read-only --container album
  swift-user policy add photos:uploads uploads.json
  swift-user policy check photos:alice s3:PutObject album/2026/1.jpg
  swift-user --url https://swift.example/auth/v1.0 --as admin:admin list photos"""

# --- the command line ---------------------------------------------------------------------------------


class _Commands:
    """Adds commands to a parser."""

    def __init__(self, parser: argparse.ArgumentParser, dest: str):
        self._sub = parser.add_subparsers(dest=dest, required=True, metavar="command")

    def add(self, name: str, run: Run, text: str, *positional: str, example: str) -> argparse.ArgumentParser:
        """Return the parser of a command."""
        parser = self._sub.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=f"example: {NAME} {example}"
        )
        for word in positional:
            parser.add_argument(word, metavar=_METAVARS.get(word, word.upper()))
        parser.set_defaults(run=run)
        return parser

    def group(self, name: str, text: str) -> _Commands:
        """Return the commands below a word."""
        parser = self._sub.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        return _Commands(parser, f"{name}_command")


_METAVARS = {
    "user": "TENANT:USER",
    "group": "TENANT:GROUP",
    "role": "TENANT:ROLE",
    "policy": "TENANT:POLICY",
    "access_key": "ACCESS_KEY",
}


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(prog=NAME, description=__doc__, epilog=_EPILOG)
    add = parser.add_argument
    add(
        "--conf",
        default=f"{SWIFT_DIR}/internal-client.conf",
        help="pipeline on this node (%(default)s)",
    )
    add("--key-file", default="", help=f"the cluster's keys ({SWIFT_DIR}/{KEY_FILE})")
    add(
        "--url",
        default=os.environ.get("ST_AUTH", ""),
        help="log-in of a proxy, instead of this node (ST_AUTH)",
    )
    add(
        "--as",
        dest="as_user",
        default=os.environ.get("ST_USER", ""),
        metavar="USER",
        help="operator (ST_USER)",
    )
    add("--ca-file", default="", help="certificates that sign the proxy's")
    parser.add_format()
    commands = _Commands(parser, "command")
    _add_users(commands)
    _add_keys(commands.group("key", "access keys"))
    _add_groups(commands.group("group", "groups of users"))
    _add_roles(commands.group("role", "roles, which callers take for a time"))
    _add_policies(commands.group("policy", "policies"))
    _add_providers(commands.group("provider", "providers of OpenID Connect"))
    return parser


def _add_users(commands: _Commands) -> None:
    first = commands.add(
        "init", init, "make the cluster's key file and the first operator", example="init --user admin:admin"
    )
    first.add_argument(
        "--user", default="admin:admin", metavar="TENANT:USER", help="the operator (%(default)s)"
    )
    add = commands.add(
        "add", add_user, "create a user", "user", example="add photos:alice --generate --owner"
    )
    _add_password(add)
    add.add_argument("--group", action="append", default=[], help="a group of its tenant; may be repeated")
    add.add_argument("--policy", action="append", default=[], help="a policy to attach; may be repeated")
    add.add_argument("--owner", action="store_true", help="all rights in the tenant's account")
    add.add_argument("--operator", action="store_true", help="all rights in the cluster")
    add.add_argument("--note", default="", help="a text")
    _add_password(commands.add("passwd", passwd, "set a password", "user", example="passwd photos:alice"))
    listing = commands.add("list", list_names, "list tenants, or the users of one", example="list photos")
    listing.add_argument("tenant", nargs="?", default="", help="the tenant")
    commands.add("show", show_user, "show a user", "user", example="show photos:alice")
    commands.add(
        "disable", disable, "refuse a user until it is enabled", "user", example="disable photos:alice"
    )
    commands.add("enable", enable, "let a disabled user in again", "user", example="enable photos:alice")
    commands.add("remove", remove, "remove a user and its keys", "user", example="remove photos:alice")
    commands.add(
        "logout", logout, "end all tokens and sessions of a user", "user", example="logout photos:alice"
    )
    tempauth = commands.add(
        "import",
        import_users,
        "create the users of a tempauth section",
        example="import /etc/swift/proxy-server.conf",
    )
    tempauth.add_argument("file", metavar="FILE", help="configuration of a proxy")
    tempauth.add_argument("--section", default="filter:tempauth", help="its section (%(default)s)")
    commands.add("check", check_records, "look for records that cannot be read, on a node", example="check")
    people = commands.add(
        "login", login, "log in through a provider, in a browser", "provider", example="login keycloak"
    )
    people.add_argument("--no-browser", action="store_true", help="print the address instead of opening it")


def _add_password(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--generate", action="store_true", help="generate a password and print it")
    parser.add_argument("--no-password", action="store_true", help="access keys only")


def _add_keys(commands: _Commands) -> None:
    create = commands.add(
        "create",
        key_create,
        "create an access key and print its secret",
        "user",
        example="key create a:b --ends 90d",
    )
    add = create.add_argument
    add("--access-key", default="", help="its name (generated)")
    add("--ends", default="", metavar="TIME", help="when it ends: 90d, 12h, or 2027-01-31")
    add("--note", default="", help="a text")
    add("--read-only", action="store_true", help="it reads only")
    add("--container", default="", help="it is for this container only")
    add("--prefix", default="", help="and for names that begin with this")
    add("--network", action="append", default=[], help="it is for these addresses only; may be repeated")
    commands.add("list", key_list, "list the access keys of a user", "user", example="key list photos:alice")
    commands.add(
        "disable",
        key_disable,
        "refuse an access key until it is enabled",
        "access_key",
        example="key disable AKIA…",
    )
    commands.add(
        "enable", key_enable, "let a disabled access key in again", "access_key", example="key enable AKIA…"
    )
    commands.add("revoke", key_revoke, "delete an access key", "access_key", example="key revoke AKIA…")


def _add_groups(commands: _Commands) -> None:
    add = commands.add("add", group_add, "create a group", "group", example="group add photos:editors")
    add.add_argument(
        "--plain", action="store_true", help="ACLs may name it without its tenant, as with tempauth"
    )
    add.add_argument("--note", default="", help="a text")
    commands.add("list", group_list, "list the groups of a tenant", "tenant", example="group list photos")
    commands.add(
        "show", group_show, "show a group and its members", "group", example="group show photos:editors"
    )
    commands.add(
        "remove", group_remove, "remove an empty group", "group", example="group remove photos:editors"
    )
    join = commands.add(
        "join", group_join, "add users to a group", "group", example="group join photos:editors alice"
    )
    join.add_argument("name", nargs="+", help="a user of the tenant, or a right such as .admin as group")
    leave = commands.add(
        "leave",
        group_leave,
        "remove users from a group",
        "group",
        example="group leave photos:editors alice",
    )
    leave.add_argument("name", nargs="+", help="a user of the tenant")


def _add_roles(commands: _Commands) -> None:
    add = commands.add(
        "add",
        role_add,
        "create a role",
        "role",
        example="role add ci:deploy --trust trust.json --policy readwrite",
    )
    add.add_argument(
        "--trust", required=True, metavar="FILE", help="trust policy: the callers that may take it"
    )
    add.add_argument("--policy", action="append", default=[], help="a policy to attach; may be repeated")
    add.add_argument("--owner", action="store_true", help="all rights in the tenant's account")
    add.add_argument("--max-session", default="1h", metavar="TIME", help="its longest session (%(default)s)")
    add.add_argument("--note", default="", help="a text")
    commands.add("list", role_list, "list the roles of a tenant", "tenant", example="role list ci")
    commands.add("show", role_show, "show a role", "role", example="role show ci:deploy")
    change = commands.add(
        "set", role_set, "change a role", "role", example="role set ci:deploy --trust trust.json"
    )
    change.add_argument("--trust", metavar="FILE", help="trust policy: the callers that may take it")
    change.add_argument("--max-session", metavar="TIME", help="its longest session")
    change.add_argument("--disable", action="store_true", help="refuse it and its sessions")
    change.add_argument("--enable", action="store_true", help="let it in again")
    commands.add("remove", role_remove, "remove a role", "role", example="role remove ci:deploy")
    commands.add("logout", role_logout, "end all sessions of a role", "role", example="role logout ci:deploy")


def _add_policies(commands: _Commands) -> None:
    add = commands.add(
        "add",
        policy_add,
        "create a policy from a file",
        "policy",
        "file",
        example="policy add photos:p p.json",
    )
    add.add_argument("--note", default="", help="a text")
    commands.add(
        "set",
        policy_set,
        "replace a policy by that of a file",
        "policy",
        "file",
        example="policy set photos:p p.json",
    )
    commands.add("list", policy_list, "list the policies of a tenant", "tenant", example="policy list photos")
    commands.add("show", policy_show, "show a policy", "policy", example="policy show photos:uploads")
    commands.add("remove", policy_remove, "remove a policy", "policy", example="policy remove photos:uploads")
    for name, run, text in (
        ("attach", policy_attach, "attach a policy to a user, group or role"),
        ("detach", policy_detach, "detach a policy from a user, group or role"),
    ):
        parser = commands.add(name, run, text, example=f"policy {name} readonly --user photos:alice")
        parser.add_argument("name", help="the policy, without its tenant")
        _add_holder(parser, "user", "group", "role")
    check = commands.add(
        "check",
        policy_check,
        "tell whether a user may do something, and which statement says so",
        example="policy check --user photos:alice s3:GetObject album/1.jpg",
    )
    _add_holder(check, "user", "role")
    check.add_argument("action", help="such as s3:GetObject")
    check.add_argument("resource", help="BUCKET, BUCKET/KEY, AUTH_OTHER:BUCKET/KEY or an ARN")
    check.add_argument(
        "--value", action="append", default=[], metavar="KEY=VALUE", help="such as aws:SourceIp=10.0.0.1"
    )


def _add_holder(parser: argparse.ArgumentParser, *kinds: str) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    for kind in kinds:
        group.add_argument(f"--{kind}", default="", metavar=_METAVARS[kind], help=f"the {kind}")


def _add_providers(commands: _Commands) -> None:
    put = commands.add(
        "set",
        provider_set,
        "create or replace a provider",
        "name",
        "file",
        example="provider set keycloak k.json",
    )
    put.add_argument("--secret", action="store_true", help="read the client's secret from standard input")
    commands.add("list", provider_list, "list the providers", example="provider list")
    commands.add("show", provider_show, "show a provider", "provider", example="provider show keycloak")
    commands.add(
        "remove", provider_remove, "remove a provider", "provider", example="provider remove keycloak"
    )


# --- running ------------------------------------------------------------------------------------------


class _NoIdentities:
    """Stands in for commands that need no records."""

    def call(self, operation: str, **_params: object) -> JsonObject:
        """Raise: nothing is called."""
        raise ConfigError(f"{operation} needs a cluster")


def _identities(args: argparse.Namespace) -> Identities:
    if args.run is login:
        if not args.url:
            raise ConfigError("a log-in needs the proxy: --url https://swift.example/auth/v1.0")
        return _NoIdentities()
    key_file = args.key_file or os.path.join(os.path.dirname(args.conf) or ".", KEY_FILE)
    if args.run is init:
        if not os.path.exists(key_file):
            create_key_file(key_file, _owner_of(os.path.dirname(key_file) or "."))
            print(f"{key_file} created; every proxy needs it", file=sys.stderr)
        return LocalIdentities(args.conf, key_file)
    if args.url:
        key = os.environ.get("ST_KEY") or _ask_key()
        return RemoteIdentities(args.url, args.as_user, key, ca_file=args.ca_file)
    return LocalIdentities(args.conf, key_file)


def _ask_key() -> str:
    if not sys.stdin.isatty():
        raise ConfigError("the operator's password is missing: set ST_KEY")
    return getpass.getpass("password of the operator: ")


def _owner_of(folder: str) -> tuple[int, int] | None:
    """Return the owner that a file made by root is given: that of its folder."""
    if os.geteuid() != 0:
        return None
    found = os.stat(folder)
    return found.st_uid, found.st_gid


@reports_errors(NAME)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 for an error, 2 for a wrong command line."""
    args = make_parser().parse_args(argv)
    try:
        result, lines = args.run(_identities(args), args)
    except Forbidden as error:
        raise SwiftError(str(error))
    print_report(args, result, lines)
    return 1 if result.get("damaged") or result.get("allowed") is False else 0


if __name__ == "__main__":
    sys.exit(main())
