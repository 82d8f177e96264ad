"""The services of a node as ``swift-init`` knows them: names, groups, configuration and pid files.

spec: cli-and-config.md §8.1
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from swift.config.declared import daemons
from swift.config.files import parser_of

MAIN_SERVERS = ("proxy-server", "account-server", "container-server", "object-server")
OTHER_SERVICES = tuple(daemons())
GROUPS = {"all": (*MAIN_SERVERS, *OTHER_SERVICES), "main": MAIN_SERVERS, "rest": OTHER_SERVICES}
RUN_DIR = "/var/run/swift"
SWIFT_DIR = "/etc/swift"


@dataclass(frozen=True)
class Service:
    """A service, perhaps only with one of its configurations (``object.1``)."""

    name: str
    config: str = ""

    @property
    def program(self) -> str:
        """The command that runs it."""
        return f"swift-{self.name}"

    @property
    def is_server(self) -> bool:
        """True if it is one of the four servers, which have workers and listen."""
        return self.name in MAIN_SERVERS

    @property
    def is_known(self) -> bool:
        """True if there is such a service."""
        return self.name in GROUPS["all"]

    def __str__(self) -> str:
        return self.name


def parse_service(word: str) -> Service:
    """Return the service of a word: ``-server`` may be left out, ``.name`` chooses a configuration."""
    name, _, config = word.partition(".")
    return Service(name if "-" in name else f"{name}-server", config)


def is_group(word: str) -> bool:
    """Return True if a word stands for several services, of which some may well not be configured."""
    return word in GROUPS or "*" in word


def parse_services(words: Iterable[str]) -> list[Service]:
    """Return the services that words stand for, each once.

    Unknown names are services too, for the caller to see.
    """
    found: dict[Service, None] = {}
    for word in words:
        if word in GROUPS:
            found.update(dict.fromkeys(Service(name) for name in GROUPS[word]))
        elif "*" in word:
            names = fnmatch.filter(GROUPS["all"], word)
            found.update(dict.fromkeys(Service(name) for name in names))
        else:
            found[parse_service(word)] = None
    return list(found)


def _config_base_name(service: Service, swift_dir: str) -> str:
    """Return the name of its configuration without ``.conf``."""
    declared = daemons().get(service.name)
    if declared is not None and declared.conf_name:
        return declared.conf_base
    if service.name == "object-expirer" and not _expirer_is_in_object_server(service, swift_dir):
        return "object-expirer"
    return f"{service.name.partition('-')[0]}-server"


def _expirer_is_in_object_server(service: Service, swift_dir: str) -> bool:
    paths = _paths("object-server", service.config, swift_dir)
    return any(parser_of(path).has_section("object-expirer") for path in paths)


def is_configured(service: Service, config: str) -> bool:
    """Return True if the configuration of a daemon has its section; raises ``ConfigError``."""
    return service.is_server or parser_of(config).has_section(service.name)


def _paths(base: str, config: str, swift_dir: str) -> list[str]:
    """Return configuration files and directories of a base name, sorted."""
    root = Path(swift_dir)
    if config:
        inside = root / base
        found = [inside / f"{config}.conf", inside / f"{config}.conf.d"]
        return [str(path) for path in found if path.exists()]
    found = [path for path in root.glob(f"{base}*") if path.suffix == ".conf" and path.is_file()] + [
        path for path in root.glob(f"{base}*.conf.d") if path.is_dir()
    ]
    for directory in root.glob(f"{base}*"):
        if directory.is_dir() and directory.name == base:
            found += [path for path in directory.iterdir() if path.name.endswith((".conf", ".conf.d"))]
    return sorted(str(path) for path in found if not path.name.startswith("."))


def config_paths(service: Service, swift_dir: str = SWIFT_DIR, number: int = 0) -> list[str]:
    """Return the configurations of a service.

    With ``number`` (from 1) only that one. Raises ``ConfigError``.
    """
    found = _paths(_config_base_name(service, swift_dir), service.config, swift_dir)
    if number:
        return found[number - 1 : number]
    return found


def pid_file(service: Service, config: str, run_dir: str, swift_dir: str = SWIFT_DIR) -> str:
    """Return the path of the pid file of a configuration's process."""
    below = os.path.relpath(config, swift_dir)
    base = _config_base_name(service, swift_dir)
    head, dot, rest = below.partition(base)
    stem = (head + service.name + rest) if dot else below
    return os.path.join(run_dir, stem.removesuffix(".d").removesuffix(".conf") + ".pid")


def pid_files(service: Service, run_dir: str) -> list[str]:
    """Return the pid files of a service that are there, whatever became of its configurations."""
    root = Path(run_dir)
    if service.config:
        found: Sequence[Path] = [root / service.name / f"{service.config}.pid"]
    else:
        found = [*root.glob(f"{service.name}*.pid"), *(root / service.name).glob("*.pid")]
    return sorted(str(path) for path in found if path.exists())
