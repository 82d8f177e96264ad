"""The account, container and object rings of a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from swift.base.clock import Clock
from swift.policy.policy import Policies, Policy
from swift.ring.errors import RingError
from swift.ring.layoutfiles import TableCheck
from swift.ring.ring import Ring
from swift.ring.table import RingTable
from swift.ring.view import RingView


def _check_replicas(name: str, policy: Policy | None, replica_count: float) -> None:
    """Raise RingError if a policy cannot use a ring file with so many replicas."""
    if policy is not None and policy.ec and replica_count != policy.ec.replicas:
        raise RingError(
            f"{name}.ring.gz has {replica_count:g} replicas, policy {policy.name} "
            f"needs exactly {policy.ec.replicas}"
        )


def table_check(policies: Policies) -> TableCheck:
    """Return a function that raises RingError for the content of a ring file that its policy cannot use."""
    by_name = {policy.ring_name: policy for policy in policies}

    def check(name: str, table: RingTable) -> None:
        ring_name = name.removesuffix(".ring.gz")
        _check_replicas(ring_name, by_name.get(ring_name), table.replica_count)

    return check


class Rings:
    """Account, container and per-policy object rings below one directory, read when first used.

    ``report`` gets a sentence about each changed file that cannot be used.
    """

    def __init__(
        self,
        swift_dir: str,
        policies: Policies,
        *,
        report: Callable[[str], None] = lambda _message: None,
        clock: Clock | None = None,
    ):
        self.folder = swift_dir
        self._report = report
        self._clock = clock
        self.policies = policies
        self.account = self._ring("account")
        self.container = self._ring("container")
        self._objects: dict[int, Ring] = {}

    def _ring(self, name: str, policy: Policy | None = None) -> Ring:
        def validate(view: RingView) -> None:
            _check_replicas(name, policy, view.replica_count)

        path = os.path.join(self.folder, f"{name}.ring.gz")
        return Ring(path, validate=validate, report=self._report, clock=self._clock)

    def object(self, policy: Policy) -> Ring:
        """Return the ring of a policy."""
        ring = self._objects.get(policy.index)
        if ring is None:
            ring = self._objects[policy.index] = self._ring(policy.ring_name, policy)
        return ring

    def load(self) -> list[str]:
        """Read all rings; report and return which cannot be used. They are tried again at each use."""
        problems = []
        for ring in self._all():
            try:
                ring.view()
            except (OSError, RingError) as error:
                problems.append(f"{ring.path} cannot be used: {error}")
                self._report(problems[-1])
        return problems

    def damaged(self) -> list[str]:
        """Return a sentence for each ring file that cannot be used; a missing one is not damaged."""
        problems = []
        for ring in self._all():
            if not os.path.lexists(ring.path):
                continue
            try:
                ring.view()
            except (OSError, RingError) as error:
                problems.append(f"{ring.path} cannot be used: {error}")
        return problems

    def device_names(self) -> Iterator[str]:
        """Yield the names of all devices in rings that can be read."""
        for ring in self._all():
            with contextlib.suppress(OSError, RingError):
                yield from (device.device for device in ring.view().devices if device is not None)

    def is_only_server(self, ip: str, port: int) -> bool:
        """Return True if a ring that can be read has devices at this address, and nowhere else."""
        for ring in self._all():
            with contextlib.suppress(OSError, RingError):
                devices = [device for device in ring.view().devices if device is not None and device.weight]
                if {(device.ip, device.port) for device in devices} == {(ip, port)}:
                    return True
        return False

    def _all(self) -> Iterator[Ring]:
        yield from (self.account, self.container, *map(self.object, self.policies))

    def readable_views(self) -> list[RingView]:
        """Return the present states of all rings; one whose file is missing or damaged is left out."""
        views = []
        for ring in self._all():
            try:
                views.append(ring.view())
            except (OSError, RingError):
                continue
        return views

    def __repr__(self) -> str:
        return f"<Rings in {self.folder}>"
