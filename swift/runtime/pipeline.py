"""Pipelines from PasteDeploy configuration (spec: cli-and-config.md §1, proxy.md §18).

The text is read by ``config.files`` (directories, bare ``%``), the meaning is PasteDeploy's. A proxy
pipeline gets the filters it must have inserted where the table says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from paste.deploy import loadwsgi

from swift import DISTRIBUTION
from swift.base.errors import ConfigError
from swift.config.files import parser_of

#: Filters that a proxy pipeline must have, in order of insertion, each with those it goes after.
_FRONT = ("catch_errors", "gatekeeper", "proxy_logging")
_COPY_AFTER = ("staticweb", "tempauth", "keystoneauth", *_FRONT)
_DLO_AFTER = ("copy", *_COPY_AFTER)
REQUIRED_FILTERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("versioned_writes", ("slo", "dlo", *_DLO_AFTER)),
    ("dlo", _DLO_AFTER),
    ("copy", _COPY_AFTER),
    ("listing_formats", (*_FRONT, "memcache")),
    ("gatekeeper", ("catch_errors",)),
    ("catch_errors", ()),
)

_AUTH = ("tempauth", "keystoneauth")
_KEYMASTERS = ("keymaster", "kms_keymaster", "kmip_keymaster")
#: What goes wrong when a filter stands right of another: (left, right) → why. Only pairs are here that are
#: wrong for every operator; the recommended order is that of ``proxy-server.conf-sample``.
ORDER: dict[tuple[str, str], str] = {
    **{("gatekeeper", name): "clients could send what only filters may say" for name in _AUTH},
    **{("memcache", name): "tokens are kept in the cache" for name in _AUTH},
    **{
        (name, auth): "what it lets in would be refused"
        for name in ("tempurl", "formpost", "container_sync")
        for auth in _AUTH
    },
    **{
        (auth, name): "nobody would know yet who may write"
        for auth in _AUTH
        for name in ("account_quotas", "container_quotas", "staticweb")
    },
    **{(name, auth): "its requests would keep the rights of one" for name in ("bulk",) for auth in _AUTH},
    **{("s3api", name): "it asks it for what S3 requests are about" for name in (*_AUTH, "slo", "copy")},
    ("s3api", "s3token"): "nothing would be signed yet",
    ("s3token", "keystoneauth"): "nobody would know yet who signed",
    ("auth_token", "keystoneauth"): "nobody would know yet who asks",
    **{(name, "encryption"): "there would be no keys" for name in _KEYMASTERS},
    ("gatekeeper", "encryption"): "clients could see and set what is needed to decrypt",
    **{
        (name, "encryption"): "it would read and write what is encrypted"
        for name in ("copy", "slo", "dlo", "versioned_writes", "symlink", "s3api", "bulk", "staticweb")
    },
    ("gatekeeper", "s3api"): "clients could say what only it may say",
    ("memcache", "ratelimit"): "rates are counted in the cache",
    ("memcache", "admission"): "proxies tell each other there what they use",
    **{(auth, "admission"): "nobody would know yet who asks" for auth in _AUTH},
    **{("admission", name): "each of its requests would be asked about" for name in ("slo", "dlo", "copy")},
    ("gatekeeper", "container_sync"): "clients could choose timestamps",
    ("domain_remap", "tempurl"): "links are signed for paths, not for hosts",
    ("cname_lookup", "domain_remap"): "aliases must be ours before they name accounts",
}


class _Loader(loadwsgi.ConfigLoader):
    """PasteDeploy's loader over our parser."""

    def __init__(self, path: str):
        where = os.path.abspath(path)
        here = os.path.dirname(where) if os.path.isfile(where) else where
        self.filename = where
        self.parser = parser_of(path, {"here": here, "__file__": where})
        # PasteDeploy asks the parser for defaults(); ours gives them as they stand.
        self.parser.filename = where  # type: ignore[attr-defined]

    def get_context(
        self, object_type: object, name: str | None = None, global_conf: Mapping[str, object] | None = None
    ) -> loadwsgi.LoaderContext:
        """A context that knows the name by which the configuration calls it.

        ``egg:swift`` is this distribution, whatever its name.
        """
        package, mark, entry_point = (name or "").partition("#")
        loaded = f"egg:{DISTRIBUTION}{mark}{entry_point}" if package == "egg:swift" else name
        context = super().get_context(object_type, loaded, global_conf)
        context.section = name
        return context


class Pipeline:
    """The contexts of an app and its filters, ready to be made."""

    def __init__(self, app: Any, filters: list[Any]):
        self.app = app
        self.filters = filters

    @property
    def names(self) -> list[str]:
        """Entry point names of the filters, outermost first."""
        return [context.entry_point_name or "" for context in self.filters]

    def insert_required(self, global_conf: Mapping[str, object]) -> list[str]:
        """Add missing filters to a proxy pipeline; the names added."""
        added = []
        for name, after in REQUIRED_FILTERS:
            if name in self.names:
                continue
            context = loadwsgi.loadcontext(
                loadwsgi.FILTER, f"egg:{DISTRIBUTION}#{name}", global_conf=dict(global_conf)
            )
            self.filters.insert(self._place(name, after), context)
            added.append(name)
        return added

    def _place(self, name: str, after: tuple[str, ...]) -> int:
        names = self.names
        if name == "gatekeeper":
            return 1 if names[:1] == ["catch_errors"] else 0
        positions = [names.index(other) for other in after if other in names]
        return max(positions) + 1 if positions else 0

    def check_order(self) -> None:
        """Raise ``ConfigError`` that says the right order when filters stand in one that does harm."""
        names = self.names
        for (left, right), why in ORDER.items():
            if left in names and right in names and names.index(left) > names.index(right):
                raise ConfigError(
                    f"pipeline: {left} must stand left of {right}, else {why}; right is: {self._advice()}"
                )

    def _advice(self) -> str:
        """The sections of the configuration in a right order, as an operator would write them."""
        written: dict[str, list[str]] = {}
        for context in self.filters:
            written.setdefault(context.entry_point_name or "", []).append(getattr(context, "section", ""))
        sections = [written[name].pop(0) for name in _sorted(self.names)]
        # What was added has none.
        return " ".join(filter(None, [*sections, getattr(self.app, "section", "")]))

    def create(self) -> object:
        """The outermost filter over everything."""
        app = self.app.create()
        for context in reversed(self.filters):
            app = context.create()(app)
        return app


def _sorted(names: list[str]) -> list[str]:
    """Names in an order that keeps every rule and, where none says otherwise, the given order."""
    left, ordered = list(names), []
    while left:
        # A second proxy_logging and the like stays where it is.
        first = next(
            (n for n in left if not any(a in left and b == n and a != n for a, b in ORDER)),
            left[0],
        )
        left.remove(first)
        ordered.append(first)
    return ordered


def read_pipeline(path: str, global_conf: Mapping[str, object], name: str = "main") -> Pipeline:
    """The pipeline (or bare app) ``name`` of a configuration; raises ``ConfigError``."""
    try:
        loader = _Loader(path)
        context = loader.get_context(loadwsgi.APP, name, dict(global_conf))
    except ConfigError:
        raise
    except (LookupError, OSError, ValueError, ImportError, AttributeError) as error:
        raise ConfigError(f"cannot load the pipeline of {path}: {error}")
    if context.object_type is loadwsgi.PIPELINE:
        return Pipeline(context.app_context, list(context.filter_contexts))
    return Pipeline(context, [])


def load_app(path: str, global_conf: Mapping[str, Any], *, modify: bool = True) -> Any:
    """The application of a configuration file; raises ``ConfigError`` naming the file."""
    pipeline = read_pipeline(path, global_conf)
    if modify and pipeline.app.entry_point_name == "proxy":
        pipeline.insert_required(pipeline.app.global_conf)
    try:
        if pipeline.app.entry_point_name == "proxy":
            pipeline.check_order()
        return pipeline.create()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}")
