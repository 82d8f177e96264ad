"""Inventories for tests, and hosts in memory that a deployment changes."""

import hashlib
import re
import tomllib

from swift.operations.deploy.hosts import HostError, HostState, UnitState, state_of
from swift.operations.deploy.inventory import parse_inventory

INVENTORY = """
[cluster]
part_power = 4
min_part_hours = 0

[proxy.users]
"test:tester" = [".admin"]

[[policy]]
name = "gold"
index = 0
replicas = 3

[[host]]
name = "one"
address = "10.0.0.1"
zone = 1
disks = [{ device = "sdb", weight = 100 }, { device = "sdc", weight = 100 }]

[[host]]
name = "two"
address = "10.0.0.2"
zone = 2
roles = ["storage"]
disks = [{ device = "sdb", weight = 100 }]

[[host]]
name = "three"
address = "10.0.0.3"
zone = 3
roles = ["storage"]
disks = [{ device = "sdb", weight = 100 }]
"""


def inventory_of(folder, text=INVENTORY):
    """Parse an inventory whose state directory is in a folder."""
    return parse_inventory(tomllib.loads(text), str(folder / "cluster.toml"))


class MemoryHosts:
    """Hosts in memory: all units are installed, none is enabled; ``calls`` are the changes, in order."""

    def __init__(self):
        self.files = {}
        self.units = {}
        self.pending = {}
        #: Host → path → the file as it was written.
        self.record = {}
        self.calls = []
        #: (method, host's name) that fail.
        self.failing = set()

    def _check(self, method, host):
        if (method, host.name) in self.failing:
            raise HostError(f"host {host.name}: {method} failed: no route")

    def inspect(self, host, files, units):
        self._check("inspect", host)
        known = self.files.get(host.name, {})
        running = self.units.get(host.name, set())
        conf = known.get("/etc/swift/swift.conf")
        lines = re.findall(rb"(swift_hash_path_\w+) = (.+)\n", conf.content) if conf else []
        text = b"".join(name + b"=" + value + b"\n" for name, value in lines)
        return HostState(
            files={file.path: state_of(known[file.path]) for file in files if file.path in known},
            units={
                unit: UnitState(f"{unit}!", f"{unit}!" in running, f"{unit}!" in running) for unit in units
            },
            hash_digest=hashlib.sha256(text).hexdigest() if conf else "",
            pending=tuple(self.pending.get(host.name, ())),
            written={
                path: known[path] == file
                for path, file in self.record.get(host.name, {}).items()
                if path in known
            },
        )

    def read(self, host, paths):
        self._check("read", host)
        known = self.files.get(host.name, {})
        return {path: known[path].content for path in paths if path in known}

    def install(self, host, files, pending):
        self._check("install", host)
        self.calls.append(("install", host.name, [file.path for file in files], list(pending)))
        self.files.setdefault(host.name, {}).update({file.path: file for file in files})
        self.record.setdefault(host.name, {}).update({file.path: file for file in files})
        self.pending[host.name] = list(pending)

    def remove(self, host, paths):
        self._check("remove", host)
        self.calls.append(("remove", host.name, list(paths)))
        for path in paths:
            del self.files[host.name][path]
            del self.record[host.name][path]

    def switch_units(self, host, enable, disable, reload):
        self._check("switch_units", host)
        self.calls.append(("switch_units", host.name, list(enable), list(disable), list(reload)))
        running = self.units.setdefault(host.name, set())
        running |= set(enable)
        running -= set(disable)
        self.pending[host.name] = []

    def spoil(self, host_name, path):
        """Change a file by hand."""
        file = self.files[host_name][path]
        self.files[host_name][path] = type(file)(file.path, file.content + b"#", file.owner, file.mode)
