"""The devices of a ring that are this node's (spec: replication.md §1)."""

from __future__ import annotations

from swift.platform.addresses import matches_any_address, own_addresses
from swift.ring.device import Device
from swift.ring.view import RingView


class OwnDevices:
    """The devices of this node, by its address and its replication port; read again for every new ring."""

    def __init__(self, ring_ip: str, ring_port: int):
        """Port 0 matches any port: a server may have a port for each device."""
        self._ip = ring_ip
        self._port = ring_port
        self._known: tuple[RingView, frozenset[int]] | None = None
        #: Number of rings read; it changes when the ring has changed.
        self.rings_seen = 0

    def ids(self, view: RingView) -> frozenset[int]:
        """Return the ids of the devices of this node."""
        if self._known is None or self._known[0] is not view:
            addresses = own_addresses(self._ip)
            ids = frozenset(
                device.id
                for device in view.devices
                if device is not None
                and (not self._port or device.replication_port == self._port)
                and matches_any_address(device.replication_ip, addresses)
            )
            self._known = view, ids
            self.rings_seen += 1
        return self._known[1]

    def names(self, view: RingView) -> list[str]:
        """Return the names of the devices of this node, sorted."""
        return sorted({device.device for device in self._devices(view)})

    def ids_of(self, view: RingView, name: str) -> frozenset[int]:
        """Return the ids of the own devices with a name; none when it has left the ring."""
        return frozenset(device.id for device in self._devices(view) if device.device == name)

    def _devices(self, view: RingView) -> list[Device]:
        ids = self.ids(view)
        return [device for device in view.devices if device is not None and device.id in ids]

    def forget(self) -> None:
        """Read the devices again the next time, as if the ring had changed."""
        self._known = None

    def __repr__(self) -> str:
        return f"OwnDevices({self._ip!r}, {self._port})"
