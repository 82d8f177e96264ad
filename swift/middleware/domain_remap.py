"""Accounts and containers in host names: ``container.account.example.com/o`` (spec: middleware.md §15)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from swift.config.schema import Settings, option
from swift.http.environ import split_host
from swift.http.request import Request
from swift.http.response import TEXT, Response, error_response
from swift.middleware.filter import App, Filter, FilterDeclaration


@dataclass(frozen=True)
class DomainRemapSettings(Settings):
    """``[filter:domain_remap]``."""

    storage_domain: tuple[str, ...] = option(("example.com",), "Domains below which names are accounts.")
    path_root: str = option("v1", "First segment of the API's path.")
    reseller_prefixes: tuple[str, ...] = option(("AUTH",), "Prefixes that account names in host names have.")
    default_reseller_prefix: str = option("", "Prefix of accounts that have none of these.")
    mangle_client_paths: bool = option(False, "Leave out path_root where the client's path has it too.")


class DomainRemap(Filter):
    """Converts account and container in the host name to a path."""

    def __init__(self, app: App, settings: DomainRemapSettings):
        super().__init__(app)
        self._domains = ["." + domain.lstrip(".").lower() for domain in settings.storage_domain]
        self._path_root = "/" + settings.path_root.strip("/")
        self._prefixes = settings.reseller_prefixes
        self._default_prefix = settings.default_reseller_prefix
        self._mangles_paths = settings.mangle_client_paths

    def handle(self, request: Request) -> Response:
        """Rewrite the path of a request whose host names an account."""
        host = split_host(request.headers.get("host", ""))[0]
        domain = next((d for d in self._domains if host.lower().endswith(d)), None)
        if domain is None:
            return self.forward(request)
        labels = host[: -len(domain)].split(".")
        if len(labels) > 2:
            return error_response(400, "Bad domain in host header", content_type=TEXT)
        account = self._parse_account(labels[-1]) if labels[-1] else None
        if account is None:
            return self.forward(request)
        added_path = "/".join(
            [
                self._path_root,
                *(quote(name, safe="", encoding="latin-1") for name in (account, *filter(None, labels[:-1]))),
            ]
        )
        path = request.raw_path
        if self._mangles_paths and (path + "/").startswith(self._path_root + "/"):
            path = path[len(self._path_root) :] or "/"
        request.raw_path = added_path + (path if path.startswith("/") else f"/{path}")
        response = self.forward(request)
        return self._restore_location(request, response, added_path)

    def _parse_account(self, label: str) -> str | None:
        """Return the account of a host name's label; None for no account.

        Many clients send host names in lower case, so prefixes are compared without case.
        """
        name = label if "_" in label else label.replace("-", "_", 1)
        prefix, separator, rest = name.partition("_")
        for reseller_prefix in self._prefixes:
            if prefix.lower() == reseller_prefix.rstrip("_").lower():
                return reseller_prefix.rstrip("_") + separator + rest
        if self._default_prefix:
            return f"{self._default_prefix}_{label}"
        return None if self._prefixes else name

    def _restore_location(self, request: Request, response: Response, added_path: str) -> Response:
        """Remove the added path from a Location, so that it fits the client's host name."""
        location = response.headers.get("location")
        if location is not None:
            base_url = f"{request.scheme}://{request.headers['host']}"
            path = location.removeprefix(base_url)
            if path.startswith(added_path + "/"):
                response.headers["location"] = location[: -len(path)] + path[len(added_path) :]
        return response


FILTER = FilterDeclaration(
    "domain_remap",
    DomainRemapSettings,
    lambda app, settings, _services: DomainRemap(app, settings),
    position=75,
    info=lambda settings: {"default_reseller_prefix": settings.default_reseller_prefix or None},
    left_of={"tempurl": "links are signed for paths"},
)
