"""Options of keystoneauth, and the roles of each reseller prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from swift.config.schema import Settings, option


@dataclass(frozen=True)
class KeystoneauthSettings(Settings):
    """``[filter:keystoneauth]``; lists of roles can be set per prefix, as ``SERVICE_service_roles``."""

    option_patterns: ClassVar[tuple[str, ...]] = (
        "*operator_roles",
        "*service_roles",
        "*project_reader_roles",
    )

    reseller_prefix: tuple[str, ...] = option(("AUTH",), "Prefixes of the accounts that it governs.")
    operator_roles: tuple[str, ...] = option(
        ("admin", "swiftoperator"), "Roles that own their project's account; also per prefix."
    )
    service_roles: tuple[str, ...] = option(
        (), "Roles of which a service must have one besides; also per prefix: SERVICE_service_roles."
    )
    project_reader_roles: tuple[str, ...] = option(
        (), "Roles that may read their project's account; also per prefix."
    )
    reseller_admin_role: str = option("ResellerAdmin", "The role that owns all accounts.")
    system_reader_roles: tuple[str, ...] = option((), "Roles that may read all accounts.")
    allow_overrides: bool = option(True, "Let swift.authorize_override of other filters pass.")
    default_domain_id: str = option("default", "The domain whose names container ACLs may have.")
    allow_names_in_acls: bool = option(
        True, "Container ACLs may have names of projects and users, not only ids."
    )
    without_effect: ClassVar[Mapping[str, str]] = {
        "is_admin": "a user called like its project is not its owner; give it an operator role"
    }


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles with rights on the accounts of one prefix, in lower case."""

    operator: frozenset[str]
    service: frozenset[str]
    reader: frozenset[str]


def roles_by_prefix(
    settings: KeystoneauthSettings, conf: Mapping[str, object], prefixes: list[str]
) -> dict[str, Roles]:
    """Return the roles by prefix; ``<PREFIX>_operator_roles`` and the like override the general lists."""

    def read_list(prefix: str, name: str, general: tuple[str, ...]) -> frozenset[str]:
        override = conf.get(f"{prefix}{name}") if prefix else None
        names = general if override is None else str(override).split(",")
        return fold_roles(names)

    return {
        prefix: Roles(
            read_list(prefix, "operator_roles", settings.operator_roles),
            read_list(prefix, "service_roles", settings.service_roles),
            read_list(prefix, "project_reader_roles", settings.project_reader_roles),
        )
        for prefix in prefixes
    }


def fold_roles(names: tuple[str, ...] | list[str]) -> frozenset[str]:
    """Return role names in lower case, for comparisons."""
    return frozenset(name.strip().lower() for name in names if name.strip())
