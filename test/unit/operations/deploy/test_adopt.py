"""A cluster that was made by hand becomes an inventory whose plan changes neither devices nor policies."""

import json
import re

import pytest

from swift.base.errors import ConfigError
from swift.cli.deploy import main
from swift.operations.deploy.adopt import AdoptError, adopt
from swift.operations.deploy.deployment import Deployment
from swift.operations.deploy.files import HostFile
from swift.operations.deploy.inventory import load_inventory
from swift.ring.builder import RingBuilder
from test.support.deploy import MemoryHosts

SWIFT_CONF = """
[swift-hash]
swift_hash_path_suffix = by-hand
[storage-policy:0]
name = gold
aliases = best, first
default = yes
[storage-policy:2]
name = archive
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
ec_object_segment_size = 65536
[swift-constraints]
max_file_size = 1073741824
"""
PROXY_CONF = """
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
user64_YWJj_dV92 = key .reseller_admin
"""
PORTS = {"account": 6002, "container": 6001, "object": 6000}
RINGS = {"account": 3, "container": 3, "object": 2.5, "object-2": 3}


class Handmade:
    """A configuration directory: four hosts, each with a zone for each of its two disks."""

    def __init__(self, folder):
        self.etc = folder / "etc"
        self.etc.mkdir()
        self.path = str(folder / "cluster.toml")
        (self.etc / "swift.conf").write_text(SWIFT_CONF)
        (self.etc / "proxy-server.conf").write_text(PROXY_CONF)
        for ring in RINGS:
            self.make(ring)

    def make(self, ring, **different):
        builder = RingBuilder(different.get("part_power", 5), RINGS[ring], 7)
        builder.overload = 0.1
        for number in range(1, 5):
            for zone, device in ((1, "sdb"), (2, "sdc")):
                # Databases are on the first disk, with a weight of its own.
                if device == "sdc" and not ring.startswith("object"):
                    continue
                builder.add_device(
                    region=1 + number // 3,
                    zone=zone,
                    ip=f"10.0.0.{number}",
                    port=different.get("port", PORTS[ring.partition("-")[0]]),
                    replication_ip=f"10.1.0.{number}",
                    replication_port=PORTS[ring.partition("-")[0]],
                    device=device,
                    weight=0.0 if number == 4 else {"account": 10.5, "container": 10.5}.get(ring, 100.0),
                    meta=f"serial-{number}",
                )
        builder.rebalance(seed="1")
        builder.save(str(self.etc / f"{ring}.builder"))
        builder.write_ring(str(self.etc / f"{ring}.ring.gz"))

    def adopt(self):
        return adopt(str(self.etc), ["10.0.0.1", "10.0.0.9"], self.path)


@pytest.fixture
def handmade(tmp_path):
    return Handmade(tmp_path)


def devices_of(builder):
    keys = ("region", "zone", "ip", "port", "replication_ip", "device", "weight", "meta", "id")
    return [[dev[key] for key in keys] for dev in builder.live_devs]


def test_the_plan_of_an_adopted_cluster_changes_no_ring(handmade, tmp_path, capsys):
    words = [
        "adopt",
        handmade.path,
        "--swift-dir",
        str(handmade.etc),
        "--proxy",
        "10.0.0.1",
        "--proxy",
        "10.0.0.9",
    ]
    assert main(words) == 0
    output = capsys.readouterr().out
    assert "apply will" not in output and "proxy-server.conf: its options are not adopted" in output
    inventory = load_inventory(handmade.path)
    hosts = MemoryHosts()
    prepared = Deployment(inventory, hosts).prepare()
    assert prepared.plan.changed_rings == () and prepared.plan.secrets == ()
    for ring in prepared.plan.rings:
        before = RingBuilder.load(str(handmade.etc / f"{ring.name}.builder"))
        assert devices_of(ring.builder) == devices_of(before)
        assert [list(row) for row in ring.builder.rows] == [list(row) for row in before.rows]
        assert (ring.builder.min_part_hours, ring.builder.overload) == (7, 0.1)
    # A change of the inventory is one of the devices that are there.
    text = re.sub(r"object = 100", "object = 50", (tmp_path / "cluster.toml").read_text(), count=1)
    (tmp_path / "cluster.toml").write_text(text)
    changes = Deployment(load_inventory(handmade.path), hosts).prepare().plan.changed_rings
    assert [change for ring in changes for change in ring.changes if not change.startswith("move")] == [
        "change weight of serial-1/sdb from 100 to 50"
    ]


def test_hosts_keep_their_hash_path_values_and_options(handmade):
    adopted = handmade.adopt()
    hosts = MemoryHosts()
    conf = HostFile("/etc/swift/swift.conf", SWIFT_CONF.encode(), "root:swift")
    deployment = Deployment(adopted.inventory, hosts)
    deployment.state.save_secrets(adopted.secrets)
    deployment.state.save_rings(adopted.rings)
    hosts.install(adopted.inventory.hosts[0], [conf], [])
    plan = deployment.prepare().plan
    files = (*plan.hosts[0].change, *plan.hosts[0].create)
    written = {file.path: file.content.decode("latin-1") for file in files}
    text = written["/etc/swift/swift.conf"]
    for line in (
        "swift_hash_path_suffix = by-hand",
        "aliases = best, first",
        "ec_object_segment_size = 65536",
        "max_file_size = 1073741824",
        "ec_num_data_fragments = 2",
    ):
        assert f"{line}\n" in text
    assert "bind_port = 6000\n" in written["/etc/swift/object-server.conf"]
    assert adopted.secrets.keys == {"test:tester": "testing", "abc:u_v": "key"}
    assert [host.roles for host in adopted.inventory.hosts] == [
        ("proxy", "storage"),
        *[("storage",)] * 3,
        ("proxy",),
    ]


def test_secrets_are_in_the_state_directory_alone(handmade):
    adopted = handmade.adopt()
    assert not re.search("by-hand|testing", adopted.text)
    assert "testing" not in repr(adopted)
    assert "testing" not in json.dumps(adopted.notes)


def test_a_missing_builder_is_named_with_the_way_to_make_it(handmade):
    (handmade.etc / "object-2.builder").unlink()
    with pytest.raises(AdoptError, match=r"object-2.builder is missing: copy it .* write_builder"):
        handmade.adopt()


def test_a_builder_that_is_not_that_of_the_ring_is_refused(handmade):
    path = str(handmade.etc / "object.builder")
    builder = RingBuilder.load(path)
    builder.pretend_min_part_hours_passed()
    builder.change_device(0, weight=1.0)
    builder.save(path)
    with pytest.raises(AdoptError, match="has changes that wait for a rebalance"):
        handmade.adopt()
    builder.rebalance(seed="2")
    builder.save(path)
    with pytest.raises(AdoptError, match=r"object.builder and .*object.ring.gz differ"):
        handmade.adopt()


@pytest.mark.parametrize(
    ("different", "said"),
    [({"part_power": 6}, "one part_power"), ({"port": 6010}, "another replication_port|one port")],
)
def test_rings_that_an_inventory_cannot_express_are_refused(handmade, different, said):
    handmade.make("object-2", **different)
    with pytest.raises(AdoptError, match=said):
        handmade.adopt()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("device", value) for value in ('d"\n[x]\ny = "', "a\x7f", "\ud800", "../../etc", "-o", "")),
        *(("ip", value) for value in ("-oProxyCommand=x", '10.0.0.1"\n', "a\x7f", "host")),
    ],
)
def test_a_name_in_a_builder_that_is_no_name_is_refused(handmade, field, value):
    path = str(handmade.etc / "object.builder")
    builder = RingBuilder.load(path)
    builder.live_devs[0][field] = value
    builder.save(path)
    (handmade.etc / "object.ring.gz").unlink()
    with pytest.raises(ConfigError, match=f"{'address|name' if field == 'ip' else 'device'} must be"):
        handmade.adopt()


def test_a_builder_without_devices_is_refused(handmade):
    builder = RingBuilder.load(str(handmade.etc / "account.builder"))
    builder.devs.clear()
    builder.save(str(handmade.etc / "account.builder"))
    (handmade.etc / "account.ring.gz").unlink()
    with pytest.raises(ConfigError, match="no devices"):
        handmade.adopt()


def test_nothing_is_overwritten_and_proxies_must_be_named(handmade, tmp_path, capsys):
    assert main(["adopt", handmade.path, "--swift-dir", str(handmade.etc)]) == 2
    assert "name each of them with --proxy ADDRESS" in capsys.readouterr().err
    assert not (tmp_path / "cluster.toml").exists() and not (tmp_path / "cluster.state").exists()
    (tmp_path / "cluster.toml").write_text("mine")
    assert main(["adopt", handmade.path, "--swift-dir", str(handmade.etc), "--proxy", "10.0.0.1"]) == 2
    assert (tmp_path / "cluster.toml").read_text() == "mine"
    assert not (tmp_path / "cluster.state").exists()


def test_a_directory_without_swift_conf_is_an_error(tmp_path):
    with pytest.raises((ConfigError, OSError)):
        adopt(str(tmp_path), ["10.0.0.1"], str(tmp_path / "cluster.toml"))
