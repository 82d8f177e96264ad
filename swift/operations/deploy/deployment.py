"""A deployment: the plan of an inventory, its application, and the comparison with the hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from swift.base.clock import Clock, SystemClock
from swift.base.errors import ConfigError
from swift.cluster.serverauth import LOOK_EVERY_S
from swift.operations.deploy.changes import FileChange, describe_change
from swift.operations.deploy.files import (
    ETC,
    FOREIGN_UNITS,
    SECRET_PATH,
    files_of,
    managed_units,
    secret_file,
    units_of,
)
from swift.operations.deploy.hosts import HostAccess, HostError, HostState
from swift.operations.deploy.inventory import AUTH_OFF, STORAGE, Host, Inventory
from swift.operations.deploy.plan import DeployPlan, HostPlan, HostTarget, check_identity, compare_host
from swift.operations.deploy.rings import RingSource, RingUpdate, has_devices, update_rings
from swift.operations.deploy.state import Secrets, State, complete_secrets, is_rotating, next_rotation

_CONNECTIONS = 16
#: Seconds after which all processes use a changed file of secrets.
SECRET_SEEN_S = 2 * LOOK_EVERY_S


@dataclass(frozen=True)
class PreparedPlan:
    """A plan with what ``apply`` writes into the state directory."""

    plan: DeployPlan
    secrets: Secrets


class Deployment:
    """The verbs on one inventory."""

    def __init__(
        self,
        inventory: Inventory,
        access: HostAccess,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self._inventory = inventory
        self._access = access
        self._sleep = sleep
        self._clock = clock or SystemClock()
        self.state = State(inventory.cluster.state)

    def _hosts(self, name: str) -> tuple[Host, ...]:
        hosts = tuple(host for host in self._inventory.hosts if name in ("", host.name))
        if not hosts:
            names = ", ".join(host.name for host in self._inventory.hosts)
            raise ConfigError(f"{self._inventory.path}: there is no host {name}; hosts: {names}")
        return hosts

    def prepare(self, *, host: str = "", remove: bool = False, go_on: bool = True) -> PreparedPlan:
        """Return the plan; nothing is written. ``host`` limits it to one host.

        See ``update_rings`` for ``remove`` and ``go_on``. Raises ``SwiftError`` and OSError.
        """
        hosts = self._hosts(host)
        known = self.state.load_secrets()
        secrets = complete_secrets(known, self._inventory)
        source = RingSource(self.state.load_builder, self._clock)
        # With a layout, hosts take their rings from each other, and devices are changed by swift-layout.
        rings = () if secrets.layout else update_rings(self._inventory, source, remove=remove, go_on=go_on)
        has_builder = {ring.name: self.state.load_builder(ring.name) is not None for ring in rings}

        def plan_of(each: Host) -> HostPlan:
            plan = self._compare(each, known, secrets, rings, has_builder)
            return plan if remove or not secrets.layout else keep_storage(plan)

        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            plans = tuple(pool.map(plan_of, hosts))
        return PreparedPlan(DeployPlan(rings, plans, tuple(_new_secrets(known, secrets))), secrets)

    def _compare(
        self,
        host: Host,
        known: Secrets | None,
        secrets: Secrets,
        rings: tuple[RingUpdate, ...],
        has_builder: dict[str, bool],
    ) -> HostPlan:
        target = self._target(host, secrets, rings)
        units = tuple(dict.fromkeys((*target.units, *managed_units(), *FOREIGN_UNITS.values())))
        try:
            state = self._access.inspect(host, target.files, units)
        except HostError as error:
            return HostPlan(host, error=str(error).removeprefix(f"host {host.name}: "))
        check_identity(state, host, known, [f"{ETC}/{ring.file_name}" for ring in rings], has_builder)
        plan = compare_host(target, state)
        try:
            changes = self._changes_of(plan, state, rings)
        except HostError as error:
            return replace(plan, error=str(error).removeprefix(f"host {host.name}: "))
        errors = [each for each in (plan.error, *(change.error for change in changes)) if each]
        return replace(plan, changes=changes, error=errors[0] if errors else "")

    def _changes_of(
        self, plan: HostPlan, state: HostState, rings: tuple[RingUpdate, ...]
    ) -> tuple[FileChange, ...]:
        """Return what the files of a plan change on its host. Raises ``HostError``."""
        files = (*plan.create, *plan.change)
        if not files:
            return ()
        found = self._access.read(plan.host, [file.path for file in files])
        updates = {f"{ETC}/{ring.file_name}": ring for ring in rings}
        return tuple(
            describe_change(
                file,
                found.get(file.path),
                updates.get(file.path),
                is_written=state.written.get(file.path, False),
            )
            for file in files
        )

    def _target(self, host: Host, secrets: Secrets, rings: tuple[RingUpdate, ...]) -> HostTarget:
        """Return the files and units of a host; it has the role storage while rings have its devices."""
        notes: tuple[str, ...] = ()
        serving = host
        if STORAGE not in host.roles and any(has_devices(ring, host) for ring in rings):
            serving = replace(host, roles=(*host.roles, STORAGE))
            notes = (
                "its storage services stay until its devices are removed from the rings: "
                "apply --remove, once swift-health reports nothing to move",
            )
        files = files_of(self._inventory, serving, secrets, rings)
        return HostTarget(host, files, units_of(self._inventory, serving), notes)

    def apply(self, prepared: PreparedPlan, report: Callable[[str], None]) -> list[str]:
        """Carry out a plan: the state directory first, then the files of all hosts, then their units;
        files of former roles go last.

        ``report`` gets a sentence for each host. Returns the errors of hosts. Raises OSError.
        """
        plan = prepared.plan
        if plan.secrets:
            self.state.save_secrets(prepared.secrets)
        self.state.save_rings(plan.rings)
        changed = [host for host in plan.hosts if not host.is_empty]
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            results = list(pool.map(self._install, changed))
        errors = [error for error in results if error]
        if any(file.path == SECRET_PATH for host in changed for file in (*host.create, *host.change)):
            if errors:
                # Servers that demand signatures would refuse the requests of these hosts.
                return errors
            self._sleep(SECRET_SEEN_S)
        # One host after the other, so that a configuration that fails stops no more than one.
        for host_plan in [each for each, error in zip(changed, results, strict=True) if not error]:
            error = self._switch(host_plan)
            if error:
                return [*errors, error]
            report(f"host {host_plan.host.name}: done")
        return errors

    def _install(self, plan: HostPlan) -> str:
        """Write the files of a host; return the error, or an empty text."""
        files = (*plan.create, *plan.change)
        try:
            if files:
                self._access.install(plan.host, files, plan.reload)
        except HostError as error:
            return str(error)
        return ""

    def rotate_secret(self, report: Callable[[str], None]) -> list[str]:
        """Replace the secret that signs requests between servers on all hosts, in three steps.

        After each of them all servers accept what all others send. A rotation that broke off is completed.
        Returns the errors of hosts. Raises ``ConfigError`` and OSError.
        """
        known = self.state.load_secrets()
        if self._inventory.cluster.server_auth == AUTH_OFF or known is None or not known.servers:
            raise ConfigError(
                f"{self._inventory.path}: there is no secret yet: set server_auth in [cluster], and apply"
            )
        # An earlier step may not have reached all hosts.
        errors = self._distribute(known)
        while not errors:
            known = replace(known, servers=next_rotation(known.servers))
            is_last = not is_rotating(known.servers)
            if not is_last:
                self.state.save_secrets(known)
            errors = self._distribute(known)
            if not errors:
                ids = [line.split(" ")[0] for line in known.servers.splitlines()]
                also = f", also accepted: {ids[1]}" if len(ids) > 1 else ""
                report(f"all hosts sign with the secret {ids[0]}{also}")
                if is_last:
                    # Until now another run would have completed this rotation, from now on it begins one.
                    self.state.save_secrets(known)
                    return []
        return errors

    def _distribute(self, secrets: Secrets) -> list[str]:
        """Write the secrets of servers to all hosts, and wait until these use them."""
        file = secret_file(self._inventory, secrets)
        hosts = [host for host in self._inventory.hosts if host.roles]

        def install(host: Host) -> str:
            try:
                self._access.install(host, [file], [])
            except HostError as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            errors = [error for error in pool.map(install, hosts) if error]
        self._sleep(SECRET_SEEN_S)
        return errors

    def _switch(self, plan: HostPlan) -> str:
        """Enable, disable and reload the units of a host, then remove files.

        Returns the error, or an empty text.
        """
        try:
            if plan.enable or plan.disable or plan.reload:
                self._access.switch_units(plan.host, plan.enable, plan.disable, plan.reload)
            if plan.remove:
                self._access.remove(plan.host, plan.remove)
        except HostError as error:
            return str(error)
        return ""


def keep_storage(plan: HostPlan) -> HostPlan:
    """Return an error instead of a plan that stops storage services: the layout may have their devices."""
    if STORAGE in plan.host.roles or not any("-object" in unit for unit in plan.disable):
        return plan
    return HostPlan(
        plan.host,
        error="its storage services run, and it is no storage host of the inventory; drain its devices with "
        "swift-layout, and use --remove when they are empty",
    )


def _new_secrets(known: Secrets | None, secrets: Secrets) -> Iterator[str]:
    if known is None:
        yield "create the hash path values"
    for name in secrets.keys:
        if known is None or name not in known.keys:
            yield f"create the key of the user {name}"
    if secrets.servers and (known is None or not known.servers):
        yield "create the secret of the servers"


#: Verb of a plan → what it means when nothing should differ.
_DRIFT = {
    "create": "{} is missing",
    "change": "{} differs",
    "drop": "{} is not in the inventory",
    "enable": "{} is not enabled and running",
    "disable": "{} is enabled or running, but not in the inventory",
    "remove": "{} is left from a former role",
    "reload": "{} has not reloaded its configuration",
}


def drift(plan: DeployPlan) -> list[str]:
    """Return what differs from the inventory, one sentence each."""
    found = [f"secrets: not done: {line}" for line in plan.secrets]
    for ring in plan.changed_rings:
        found += [f"ring {ring.name}: not done: {change}" for change in ring.changes]
    for host in plan.hosts:
        sentences = _drift_of(host)
        found += [f"host {host.host.name}: {sentence}" for sentence in sentences]
    return found


def _drift_of(host: HostPlan) -> Iterable[str]:
    if host.error:
        yield host.error
    # Services reload because files differ; then the files say all.
    differences = replace(host, reload=()) if host.create or host.change else host
    for verb, names in differences.as_json().items():
        if isinstance(names, list):
            yield from (_DRIFT[verb].format(name) for name in names)


def select_lines(plan: DeployPlan) -> Sequence[str]:
    """Return the lines of a plan and its notes, as ``plan`` prints them."""
    lines = list(plan.lines()) or ["nothing to do: all hosts match the inventory"]
    return [*plan.diffs(), *lines, *plan.notes()]
