"""Layouts in memory, and a cluster that follows one: nodes, replicators, writes and faults, by a seed."""

import hashlib
import random
from collections import Counter
from dataclasses import replace

from swift.gateway.documents import Conflict, StoreUnavailable
from swift.layout.controller import Controller, Pace
from swift.layout.dead import DrainPolicy
from swift.layout.edits import EditError, LayoutEdit, Selector
from swift.layout.observation import Observation, progress_of, unseen_servers
from swift.layout.operations import LayoutOperations
from swift.layout.plan import Usage, label_of
from swift.layout.state import LayoutState
from swift.layout.store import Held, LeaseKeeper, NoLayout, builder_of, packed_builder
from swift.operations.health.copies import DeviceCounts, HostCopies, RingPass, ring_copies
from swift.operations.recon.client import Host
from swift.ring.builder import RingBuilder
from swift.ring.errors import RingError
from swift.ring.ringfile import decode_file
from swift.ring.view import RingView

RING = "object"
STEP_S = 300.0
LEASE_S = 600.0
#: Proxies have a new ring after this time, which is less than min_part_hours.
PROXY_LAG_S = 1800.0


class Crash(Exception):
    """The controller ends here."""


class ManualTime:
    """Time of day that a test sets."""

    def __init__(self, now_s=1_000_000.0):
        self.now_s = now_s

    def time(self):
        return self.now_s

    def monotonic(self):
        return self.now_s


class MemoryLayoutStore:
    """A layout in memory; ``fault`` is called before and after each change."""

    def __init__(self, clock=None):
        self.document = None
        self.builders = {}
        self.lease = None
        self.writes = 0
        self.clock = clock
        self.fault = lambda _where: None

    def read(self):
        self.fault("read")
        if self.document is None:
            raise NoLayout("the cluster has no layout yet")
        return Held(LayoutState.from_document(self.document), self._etag(self.document))

    def write(self, state, etag):
        self.fault("before write")
        if (self._etag(self.document) if self.document else "") != etag:
            raise Conflict("state was changed by another client meanwhile")
        self.document = state.to_document()
        self.writes += 1
        self.fault("after write")
        return self._etag(self.document)

    def read_builder(self, name):
        if name not in self.builders:
            raise StoreUnavailable(f"cannot read builder {name}")
        return builder_of(self.builders[name], name, self.clock)

    def add_builder(self, builder):
        self.fault("builder")
        packed, name = packed_builder(builder)
        self.builders[name] = packed
        return name

    def remove_builders(self, needed):
        self.fault("remove")
        self.builders = {name: packed for name, packed in self.builders.items() if name in needed}

    def read_lease(self):
        return self.lease, "" if self.lease is None else str(self.lease.renewals)

    def write_lease(self, lease, etag):
        if etag != self.read_lease()[1]:
            raise Conflict("lease was changed by another client meanwhile")
        self.lease = lease
        return str(lease.renewals)

    @staticmethod
    def _etag(document):
        return hashlib.md5(document, usedforsecurity=False).hexdigest()


def make_builder(devices, *, part_power=4, replicas=3, hours=0, clock=None):
    """Return a rebalanced builder with devices (region, zone, ip, device, weight)."""
    builder = RingBuilder(part_power, replicas, hours, clock=clock)
    for region, zone, ip, device, weight in devices:
        builder.add_device(region=region, zone=zone, ip=ip, port=6200, device=device, weight=weight)
    builder.rebalance(seed="first")
    return builder


class Published:
    """Rings as they were published, which nodes and proxies have sooner or later."""

    def __init__(self):
        self.rings = {}
        self.newest_s = 0.0

    def view(self, version):
        return self.rings[version]


class LayoutWorld:
    """A cluster with one ring whose controllers, nodes and operators act in an order that a seed gives."""

    def __init__(self, seed, *, drain="on", hours=1):
        self.random = random.Random(seed)
        self.clock = ManualTime()
        self.store = MemoryLayoutStore(self.clock)
        self.published = Published()
        self.problems = []
        self.crashing = 0.0
        self.failing = 0.01
        zones = self.random.choice((1, 2, 3, 4))
        nodes = max(zones, self.random.randint(3, 5))
        self.replicas = 3
        self.hosts = [f"10.0.0.{number}" for number in range(1, nodes + 1)]
        self.zone_of = {ip: index % zones + 1 for index, ip in enumerate(self.hosts)}
        #: A server of OpenStack Swift, which replicates but reports nothing.
        self.silent = {self.hosts[-1]} if seed % 4 == 0 and nodes > 3 else set()
        devices = [
            (1, self.zone_of[ip], ip, f"sd{letter}", 100.0)
            for ip in self.hosts
            for letter in "ab"[: self.random.randint(1, 2)]
        ]
        builder = make_builder(devices, hours=hours, clock=self.clock)
        self.parts = builder.parts
        self.operations = LayoutOperations(self.store, self.clock.time)
        self.operations.create({RING: builder})
        #: Host → version of its ring; label → partition → newest write that it has.
        self.ring_at = dict.fromkeys(self.hosts, 0)
        self.data = {f"{ip}/{device}": {} for _, _, ip, device, _ in devices}
        self.acknowledged = dict.fromkeys(range(self.parts), 0)
        self.reports = {}
        #: Partition and label of copies that steps have put there, and that have not arrived.
        self.arriving = set()
        self.dead = set()
        #: A step is judged by what was away when it was decided; a crash may delay its publication.
        self.away_at_decision = set()
        self.cut_off = set()
        self.versions_here = {"one": 0, "two": 0}
        self.drain = DrainPolicy(drain, after_s=20 * STEP_S, devices_max=2)
        self.controllers = {name: self._controller(name) for name in self.versions_here}
        self.writes = 0
        self.steps_seen = 0

    # --- controllers ---------------------------------------------------------------------------------

    def _controller(self, name):
        offset_s = self.random.choice((0.0, 5000.0, -5000.0))
        lease = LeaseKeeper(self.store, f"{name}-{self.random.random()}", LEASE_S, self.clock.monotonic)
        return Controller(
            self.store,
            _WorldObserver(self, offset_s),
            _WorldPublisher(self, name),
            lease,
            pace=Pace(step_percent=self.random.choice((5.0, 20.0, 100.0))),
            drain=self.drain,
        )

    def tick(self, name):
        """Let a controller decide; it may end at any fault, and another one begins in its place."""

        def fault(where):
            if where == "before write":
                self.away_at_decision = self.gone()
            if self.random.random() < self.crashing:
                raise Crash

        self.store.fault = fault
        try:
            self.controllers[name].tick()
        except Crash:
            self.controllers[name] = self._controller(name)
        except (StoreUnavailable, Conflict):
            pass
        finally:
            self.store.fault = lambda _where: None

    def publish(self, name, version, files):
        """Check the rules for rings that are published, and keep them."""
        content = files[f"{RING}.ring.gz"]
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        view = RingView(replace(decode_file(content), digest=digest))
        known = self.published.rings.get(version)
        if known is not None:
            if known.digest != view.digest:
                self.problems.append(f"version {version} stands for two rings")
        else:
            self._check_step(version, view)
            self.published.rings[version] = view
            self.published.newest_s = self.clock.now_s
        self.versions_here[name] = max(self.versions_here[name], version)

    def _check_step(self, version, view):
        if not self.published.rings:
            return
        before = self.published.rings[max(self.published.rings)]
        if version != max(self.published.rings) + 1:
            self.problems.append(f"version {version} follows {max(self.published.rings)}")
        for part in range(self.parts):
            old, new = self._labels(before, part), self._labels(view, part)
            lost = old - new
            if len(lost) > 1:
                self.problems.append(f"version {version}: {len(lost)} copies of {part} move at once")
            if lost and len(new) < self.replicas:
                self.problems.append(f"version {version}: partition {part} has {len(new)} devices")
            self.arriving = {each for each in self.arriving if each[0] not in self.data.get(each[1], {})}
            lacking = [label for label in new & old if (part, label) in self.arriving]
            if self.data_of(part):
                self.arriving.update((part, label) for label in new - old)
            if lost and lacking:
                self.problems.append(f"version {version}: {part} moves while {lacking} lack it")
            if self._reached(old, part) and not self._reached(new, part):
                self.problems.append(f"version {version}: {part} is out of reach")

    def data_of(self, part):
        """Return the devices with data of a partition."""
        return [label for label, parts in self.data.items() if part in parts]

    def _reached(self, labels, part):
        newest = self.acknowledged[part]
        return any(
            self.data.get(label, {}).get(part, 0) >= newest and label not in self.away_at_decision
            for label in labels
        )

    @staticmethod
    def _labels(view, part):
        return {f"{node.ip}/{node.device}" for node in view.primaries(part)}

    # --- nodes ---------------------------------------------------------------------------------------

    def gone(self):
        """Return the labels of devices that are away."""
        return {label for label in self.data if self._is_away(label)}

    def _is_away(self, label):
        ip = label.partition("/")[0]
        return label in self.dead or ip in self.cut_off

    def fetch(self, ip):
        """Let a node have the newest ring, unless it is cut off."""
        if ip not in self.cut_off and self.published.rings:
            self.ring_at[ip] = max(self.published.rings)

    def replicate(self, ip):
        """Make one pass over the devices of a node by its ring."""
        version = self.ring_at[ip]
        if ip in self.cut_off or version not in self.published.rings:
            return
        view = self.published.view(version)
        counts = {}
        for device in view.devices:
            if device is not None and device.ip == ip:
                self.data.setdefault(f"{ip}/{device.device}", {})
        for label in [each for each in self.data if each.startswith(f"{ip}/") and each not in self.dead]:
            counts[label.partition("/")[2]] = self._replicate_device(view, label)
        began = RingPass(self.clock.now_s, self.clock.now_s, counts)
        if ip not in self.silent:
            self.reports[ip] = HostCopies({RING: began}, {})

    def _replicate_device(self, view, label):
        misplaced, failed, missing = 0, 0, Counter()
        for part, newest in list(self.data[label].items()):
            primaries = [f"{node.ip}/{node.device}" for node in view.primaries(part)]
            reached = []
            # A missing copy is reported by the replica before it, unless it cannot be asked.
            after = self._reported_by(primaries, label) if label in primaries else ""
            for other in primaries:
                if other == label:
                    continue
                has = self.data.setdefault(other, {})
                if self._is_away(other) or self.random.random() < self.failing:
                    failed += 1
                    continue
                if self.random.random() < self.failing:
                    missing[other] += other == after and part not in has
                    failed += 1
                    continue
                has[part] = max(newest, has.get(part, 0))
                reached.append(other)
            if label not in primaries:
                if len(reached) == len(primaries):
                    del self.data[label][part]
                else:
                    misplaced += 1
        return DeviceCounts(
            view.digest, len(self.data[label]), misplaced, sum(missing.values()), failed, 0, missing
        )

    def _reported_by(self, primaries, label):
        """Return the next device of a partition whose server reports."""
        place = primaries.index(label)
        following = primaries[place + 1 :] + primaries[:place]
        return next((each for each in following if each.partition("/")[0] not in self.silent), "")

    # --- clients -------------------------------------------------------------------------------------

    def write(self):
        """Write to a partition by the newest ring, or by the one before, which proxies have for a while."""
        if not self.published.rings:
            return
        newest = max(self.published.rings)
        lag = self.random.random() < 0.3 and self.clock.now_s < self.published.newest_s + PROXY_LAG_S
        view = self.published.view(max(1, newest - lag))
        part = self.random.randrange(self.parts)
        self.writes += 1
        stored = 0
        primaries = [f"{node.ip}/{node.device}" for node in view.primaries(part)]
        # One server may fail; that more of them do is for the tests of proxies.
        failed = self.random.choice(primaries) if self.random.random() < 0.1 and not self.gone() else ""
        for label in primaries:
            if not self._is_away(label) and label != failed:
                self.data.setdefault(label, {})[part] = self.writes
                stored += 1
        for node in view.handoffs(part):
            if stored >= len(primaries):
                break
            label = f"{node.ip}/{node.device}"
            if not self._is_away(label):
                self.data.setdefault(label, {})[part] = self.writes
                stored += 1
        if stored > len(primaries) // 2:
            self.acknowledged[part] = self.writes

    # --- operators -----------------------------------------------------------------------------------

    def operate(self):
        """Do something that an operator may do at any time."""
        kinds = ("add", "drain", "weight", "remove", "replace", "zone", "revert", "pause", "resume", "apply")
        kind = self.random.choice(kinds)
        try:
            self._operate(kind)
        except (EditError, RingError, Conflict):
            # A change that cannot be made is refused, and leaves everything as it was.
            self.operations.discard()

    def _operate(self, kind):
        operations, rng = self.operations, self.random
        if kind == "pause":
            operations.pause("a test")
        elif kind == "resume":
            operations.resume()
        elif kind == "revert":
            operations.revert(Usage(), force=rng.random() < 0.5)
        else:
            if kind != "apply":
                operations.stage(self._edit(kind))
            if rng.random() < 0.7:
                operations.apply(Usage(), force=rng.random() < 0.5)

    def _edit(self, kind):
        rng = self.random
        state = self.store.read().state
        builder = self.store.read_builder(state.rings[RING].builder)
        dev = rng.choice(builder.live_devs)
        select = Selector(dev["region"], dev["zone"], dev["ip"], dev["port"], dev["device"])
        if kind == "add":
            ip = rng.choice([*self.hosts, f"10.0.0.{len(self.hosts) + 1}"])
            if ip not in self.hosts:
                self.hosts.append(ip)
                self.zone_of[ip] = rng.randint(1, 4)
                self.ring_at[ip] = 0
            device = f"sd{rng.choice('abcdef')}"
            select = Selector(1, self.zone_of[ip], ip, None, device)
            return LayoutEdit("add", select, weight=rng.choice((50.0, 100.0)))
        if kind == "replace":
            return LayoutEdit(
                "replace", select, place=Selector(ip=dev["ip"], device=f"sd{rng.choice('ghij')}")
            )
        if kind == "zone":
            return LayoutEdit("zone", select, place=Selector(zone=rng.randint(1, 4)))
        return LayoutEdit(kind, select, weight=rng.choice((0.0, 50.0, 200.0)))

    # --- time ----------------------------------------------------------------------------------------

    def step(self):
        """Let something happen."""
        rng = self.random
        self.clock.now_s += STEP_S * rng.random()
        self.tick(rng.choice(("one", "one", "two")))
        for ip in self.hosts:
            if rng.random() < 0.6:
                self.fetch(ip)
            if rng.random() < 0.5:
                self.replicate(ip)
        for _ in range(rng.randint(0, 4)):
            self.write()

    def hurt(self):
        """Let something fail, or come back."""
        rng = self.random
        what = rng.random()
        if what < 0.3 and len(self.dead | self.cut_off) < 1:
            self.dead.add(rng.choice(sorted(self.data)))
        elif what < 0.5 and len(self.dead | self.cut_off) < 1:
            self.cut_off.add(rng.choice(self.hosts))
        elif what < 0.8:
            self.dead.clear()
            self.cut_off.clear()

    def rest(self, steps=400):
        """End all faults and let everything go on until it is done; return whether it is."""
        self.dead.clear()
        self.cut_off.clear()
        self.crashing = self.failing = 0.0
        self.operations.resume()
        for _ in range(steps):
            self.step()
            state = self.store.read().state
            if not state.is_moving and not state.dead and max(self.published.rings) == state.version:
                for ip in 2 * self.hosts:
                    self.fetch(ip)
                    self.replicate(ip)
                return True
        return False

    @property
    def is_blind(self):
        """True if two copies of a partition are on the server that reports nothing: no step can follow."""
        view = self.published.view(max(self.published.rings))
        return bool(unseen_servers(view, {Host(ip, 6200) for ip in self.silent}, is_ordered=False))


class _WorldObserver:
    def __init__(self, world, offset_s):
        self._world = world
        self._offset_s = offset_s

    def look(self):
        world = self._world
        version = max(world.published.rings)
        view = world.published.view(version)
        away = frozenset(world.gone())
        reports = {Host(ip, 6200): each for ip, each in world.reports.items() if ip not in world.cut_off}

        def is_away(host, device):
            return f"{host.ip}/{device}" in away

        copies = ring_copies(view, RING, reports, is_away, world.clock.now_s)
        unseen = unseen_servers(view, copies.unknown, is_ordered=False)
        progress = progress_of(view.digest, copies, away, unseen=unseen)
        return Observation(world.clock.now_s + self._offset_s, {RING: progress}, away)


class _WorldPublisher:
    def __init__(self, world, name):
        self._world = world
        self._name = name

    def version(self):
        return self._world.versions_here[self._name]

    def publish(self, version, _issued_s, files):
        self._world.store.fault("before publish")
        self._world.publish(self._name, version, files)
        self._world.store.fault("after publish")


def placed(builder):
    """Return for each partition the labels of its devices."""
    names = {dev["id"]: label_of(dev) for dev in builder.live_devs}
    return [{names[row[part]] for row in builder.rows if part < len(row)} for part in range(builder.parts)]
