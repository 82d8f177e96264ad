"""Pipelines from PasteDeploy configuration (spec: cli-and-config.md §1, proxy.md §18).

The text is read by ``config.files`` (directories, bare ``%``), the meaning is PasteDeploy's. A proxy
pipeline gets the filters it must have, inserted where their declarations say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from paste.deploy import loadwsgi

from swift import DISTRIBUTION
from swift.base.errors import ConfigError
from swift.base.nearest import nearest
from swift.config.declared import filter_order, filters
from swift.config.files import parser_of


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
        """Return a context that knows the name by which the configuration calls it.

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
        for name, declared in reversed(list(filters("proxy").items())):
            if declared.required_after is None or name in self.names:
                continue
            context = loadwsgi.loadcontext(
                loadwsgi.FILTER, f"egg:{DISTRIBUTION}#{name}", global_conf=dict(global_conf)
            )
            self.filters.insert(self._insert_position(name, declared.required_after), context)
            added.append(name)
        return added

    def _insert_position(self, name: str, after: Sequence[str]) -> int:
        names = self.names
        if name == "gatekeeper":
            return 1 if names[:1] == ["catch_errors"] else 0
        positions = [names.index(other) for other in after if other in names]
        return max(positions) + 1 if positions else 0

    def check_order(self) -> None:
        """Raise ``ConfigError`` with the right order if the order of filters does harm."""
        names = self.names
        for (left, right), why in filter_order().items():
            if left in names and right in names and names.index(left) > names.index(right):
                raise ConfigError(
                    f"pipeline: {left} must come before {right}: {why};"
                    f" change the order to: {self._suggest_order()}"
                )

    def _suggest_order(self) -> str:
        """Return the sections of the configuration in a right order, as an operator would write them."""
        written: dict[str, list[str]] = {}
        for context in self.filters:
            written.setdefault(context.entry_point_name or "", []).append(getattr(context, "section", ""))
        sections = [written[name].pop(0) for name in _order_filters(self.names)]
        # What was added has none.
        return " ".join(filter(None, [*sections, getattr(self.app, "section", "")]))

    def create_app(self) -> object:
        """Return the app alone."""
        return self.app.create()

    def create(self) -> object:
        """Return the outermost filter over everything."""
        app = self.app.create()
        for context in reversed(self.filters):
            app = context.create()(app)
        return app


def _order_filters(names: list[str]) -> list[str]:
    """Return names in an order that obeys every rule and otherwise keeps the given order."""
    left, ordered = list(names), []
    while left:
        # A second proxy_logging and the like stays where it is.
        first = next(
            (n for n in left if not any(a in left and b == n and a != n for a, b in filter_order())), left[0]
        )
        left.remove(first)
        ordered.append(first)
    return ordered


def read_pipeline(path: str, global_conf: Mapping[str, object], name: str = "main") -> Pipeline:
    """Return the pipeline (or bare app) ``name`` of a configuration; raises ``ConfigError``."""
    loader = _Loader(path)
    try:
        context = loader.get_context(loadwsgi.APP, name, dict(global_conf))
    except (LookupError, OSError, ValueError, ImportError, AttributeError) as error:
        flaw = "" if isinstance(error, OSError) else _flaw(loader.parser, name)
        raise ConfigError(f"{path}: {flaw}" if flaw else f"cannot load the pipeline of {path}: {error}")
    if context.object_type is loadwsgi.PIPELINE:
        return Pipeline(context.app_context, list(context.filter_contexts))
    return Pipeline(context, [])


def _flaw(parser: ConfigParser, name: str) -> str:
    """Return why PasteDeploy cannot load a pipeline, in the words of its file; empty if that is not known."""
    heading = f"pipeline:{name}"
    if not parser.has_section(heading):
        return f"there is no [{heading}]{nearest(heading, parser.sections())}"
    names = parser.get(heading, "pipeline", fallback="").split()
    if not names:
        return f"[{heading}] has no option pipeline{nearest('pipeline', parser.options(heading))}"
    for each in names:
        kind = "app" if each is names[-1] else "filter"
        section = f"{kind}:{each}"
        if ":" not in each and not parser.has_section(section):
            known = [known.partition(":")[2] for known in parser.sections() if known.startswith(f"{kind}:")]
            return f"[{heading}] names {each}, and there is no [{section}]{nearest(each, known)}"
        use = each if ":" in each else parser.get(section, "use", fallback="")
        if use.startswith("egg:") and (flaw := _egg_flaw(use, kind)):
            return f"[{section}] use = {use}: {flaw}"
    return ""


def _egg_flaw(use: str, kind: str) -> str:
    """Return why there is no such filter or application; empty if there is one."""
    package, _, entry_point = use.removeprefix("egg:").partition("#")
    try:
        found = distribution(DISTRIBUTION if package == "swift" else package)
    except PackageNotFoundError:
        return f"the package {package} is not installed for {sys.executable}"
    known = [each.name for each in found.entry_points if each.group == f"paste.{kind}_factory"]
    wanted = entry_point or "main"
    if wanted in known:
        return ""
    what = "application" if kind == "app" else "filter"
    return f"the package {package} has no {what} {wanted}{nearest(wanted, known)}"


def server_of(path: str, name: str = "main") -> str:
    """Return the server whose application a configuration has, e.g. ``object-server``.

    Empty for applications of others and without a pipeline. Raises ``ConfigError`` for a file that cannot be
    read.
    """
    parser = parser_of(path)
    words = parser.get(f"pipeline:{name}", "pipeline", fallback="").split()
    use = parser.get(f"app:{words[-1]}", "use", fallback="") if words else ""
    entry_point = use.removeprefix("egg:swift#")
    is_server = entry_point != use and entry_point in ("proxy", "account", "container", "object")
    return f"{entry_point}-server" if is_server else ""


def load_app(path: str, global_conf: Mapping[str, Any], *, modify: bool = True) -> Any:
    """Return the application of a configuration file; raises ``ConfigError`` naming the file."""
    pipeline = read_pipeline(path, global_conf)
    if modify and pipeline.app.entry_point_name == "proxy":
        pipeline.insert_required(pipeline.app.global_conf)
    try:
        if pipeline.app.entry_point_name == "proxy":
            pipeline.check_order()
        return pipeline.create()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}")
