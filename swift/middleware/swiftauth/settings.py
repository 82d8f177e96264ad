"""The options of ``[filter:swiftauth]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from swift.config.kinds import choice, integer, number
from swift.config.schema import Settings, option


@dataclass(frozen=True)
class SwiftauthSettings(Settings):
    """``[filter:swiftauth]``."""

    option_patterns: ClassVar[tuple[str, ...]] = ("*require_group",)

    reseller_prefix: tuple[str, ...] = option(
        ("AUTH",),
        "Prefixes of the accounts that it governs; the first one and the tenant are a user's account.",
    )
    require_group: str = option("", "Group that owners must be in; also per prefix: SERVICE_require_group.")
    auth_prefix: str = option("/auth/", "Path below which clients request tokens.")
    key_file: str = option(
        "", "File with the keys of the cluster; empty: swiftauth.key in swift_dir. swift-user init makes it."
    )
    token_life: int = option(86400, "Seconds a token is valid.", kind=integer(1))
    stale_seconds: float = option(
        30.0, "Seconds after which changes, revocations too, count on every proxy.", kind=number(1)
    )
    outage_seconds: float = option(
        3600.0,
        "Seconds for which known users are served while their records cannot be read.",
        kind=number(0),
    )
    pass_unknown: bool = option(
        False, "Leave users, keys and tokens that it does not know to the authentication filter after it."
    )
    public_url: str = option(
        "", "URL of the cluster as browsers see it, such as https://swift.example; for log-in by OIDC."
    )
    storage_url_scheme: str = option(
        "default", "Scheme of storage URLs: default, http or https.", kind=choice("default", "http", "https")
    )
    allow_overrides: bool = option(True, "Let swift.authorize_override of other filters pass.")
