"""A cluster that was made by hand becomes an inventory whose plan changes neither devices nor policies."""

import json
import re
from dataclasses import replace

import pytest

from swift.base.errors import ConfigError
from swift.cli.deploy import main
from swift.config.files import parse_raw
from swift.operations.deploy.adopt import AdoptError, adopt
from swift.operations.deploy.deployment import Deployment
from swift.operations.deploy.files import HostFile
from swift.operations.deploy.hosts import RemoteHosts
from swift.operations.deploy.inventory import load_inventory
from swift.operations.deploy.state import next_rotation
from swift.ring.builder import RingBuilder
from swift.ring.ringfile import encode
from test.support.deploy import MemoryHosts, inventory_of

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
[DEFAULT]
bind_ip = 0.0.0.0
bind_port = 8888
workers = 7
log_name = by-hand
[pipeline:main]
pipeline = catch_errors gatekeeper cache tempauth meter copy audit_log
    keymaster encryption proxy-logging proxy-server
[app:proxy-server]
use = egg:swift#proxy
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
memcache_servers = 10.0.0.8:11211
[filter:tempauth]
use = egg:swift#tempauth
storage_url_scheme = https
user_test_tester = testing .admin
user64_YWJj_dV92 = key .reseller_admin
user_far_away = hidden .admin https://far.example.org/v1/AUTH_far
[filter:meter]
paste.filter_factory = meter:filter_factory
url = rabbit://meter:hidden@10.0.0.7/
[filter:copy]
use = egg:swift#copy
[filter:audit_log]
use = egg:swift#audit_log
path = /srv/log/audit.log
[filter:keymaster]
use = egg:swift#keymaster
encryption_root_secret = aGlkZGVuIGhpZGRlbiBoaWRkZW4gaGlkZGVuIGhpZGRlbiA=
[filter:encryption]
use = egg:swift#encryption
[filter:proxy-logging]
use = egg:swift#proxy_logging
"""
OBJECT_CONF = """
[DEFAULT]
bind_ip = 10.0.0.1
bind_port = 6000
devices = /data
[pipeline:main]
pipeline = healthcheck recon backend_ratelimit object-server
[app:object-server]
use = egg:swift#object
set log_level = DEBUG
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:recon]
use = egg:swift#recon
[filter:backend_ratelimit]
use = egg:swift#backend_ratelimit
requests_per_device_per_second = 50
[object-replicator]
concurrency = 4
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
        (self.etc / "object-server.conf").write_text(OBJECT_CONF)
        (self.etc / "keymaster.conf").write_text("")
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
    assert "ring object: apply will" not in output
    assert "container-server.conf: " in output and "keymaster.conf: an inventory does not have" in output
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
    assert not re.search("suffix|testing|hidden|aGlkZ", adopted.text)
    assert "testing" not in repr(adopted) and "hidden" not in repr(adopted)
    assert "testing" not in json.dumps(adopted.notes)


class Site:
    """Hosts that have the files of a cluster that was made by hand, and its adopted deployment."""

    def __init__(self, handmade):
        assert main(["adopt", handmade.path, "--swift-dir", str(handmade.etc), *PROXIES]) == 0
        self.handmade, self.hosts = handmade, MemoryHosts()
        for host in self.inventory().hosts:
            names = ["swift.conf", *(["proxy-server.conf"] if "proxy" in host.roles else [])]
            for name in [*names, *(["object-server.conf"] if host.disks else [])]:
                self.write(host.name, name, (handmade.etc / name).read_bytes())

    def inventory(self):
        return load_inventory(self.handmade.path)

    def write(self, host, name, content):
        file = HostFile(f"/etc/swift/{name}", content, "root:swift")
        self.hosts.files.setdefault(host, {})[file.path] = file

    def text(self, host, name):
        return self.hosts.files[host][f"/etc/swift/{name}"].content.decode("latin-1")

    def apply(self, *words):
        return main(["apply", self.handmade.path, "--yes", *words], self.hosts)


PROXIES = ("--proxy", "10.0.0.1", "--proxy", "10.0.0.9")


@pytest.fixture
def site(handmade):
    return Site(handmade)


def test_an_adopted_cluster_keeps_its_pipelines_options_and_secrets(site, capsys):
    assert site.apply() == 0
    output = capsys.readouterr().out
    assert "drop " not in output
    for secret in ("testing", "hidden", "aGlkZ", "by-hand\n+swift_hash"):
        assert secret not in output
    for host, name, former in (
        ("10.0.0.1", "proxy-server.conf", PROXY_CONF),
        ("10.0.0.9", "proxy-server.conf", PROXY_CONF),
        ("10.0.0.1", "object-server.conf", OBJECT_CONF),
        ("10.0.0.4", "object-server.conf", OBJECT_CONF.replace("10.0.0.1", "10.0.0.4")),
    ):
        before, after = parse_raw(former, "before"), parse_raw(site.text(host, name), "after")
        for section, options in before.items():
            for option, value in options.items():
                assert after[section][option].split() == value.split(), (host, name, section, option)
        assert "use" not in after.get("filter:meter", {})
    after = parse_raw(site.text("10.0.0.9", "proxy-server.conf"), "after")
    assert after["app:proxy-server"]["account_autocreate"] == "false"
    after = parse_raw(site.text("10.0.0.1", "object-server.conf"), "after")
    assert after["object-replicator"] == {"sync_method": "rsync", "concurrency": "4"}
    capsys.readouterr()
    assert site.apply() == 0 and capsys.readouterr().out.startswith("nothing to do")


@pytest.mark.parametrize(
    ("name", "old", "new", "items"),
    [
        (
            "proxy-server.conf",
            "keymaster encryption",
            "ratelimit keymaster encryption",
            ["proxy-server.conf/pipeline:main/pipeline/ratelimit"],
        ),
        ("proxy-server.conf", "workers = 7", "workers = 7\nset x = 1", ["proxy-server.conf/DEFAULT/set x"]),
        ("proxy-server.conf", "#proxy\n", "#proxy\n[filter:z]\nuse = x\n", ["proxy-server.conf/filter:z"]),
        ("proxy-server.conf", "egg:swift#copy", "egg:mine#copy", ["proxy-server.conf/filter:copy/use"]),
        ("proxy-server.conf", "= meter:f", "= mine:f", [
            "proxy-server.conf/filter:meter/paste.filter_factory"
        ]),
        ("proxy-server.conf", "aGlkZ", "bGlkZ", [
            "proxy-server.conf/filter:keymaster/encryption_root_secret"
        ]),
        ("proxy-server.conf", "meter:hidden", "meter:else", ["proxy-server.conf/filter:meter/url"]),
        ("proxy-server.conf", "user_test_", "user_x_", ["proxy-server.conf/filter:tempauth/user_x_tester"]),
        ("object-server.conf", "[object-replicator]", "[object-replicator]\nx = 1", [
            "object-server.conf/object-replicator/x"
        ]),
        ("object-server.conf", "[DEFAULT]", "DEFAULT]", ["object-server.conf"]),
        ("swift.conf", "[swift-constraints]", "[storage-policy:7]\nname = x\n[swift-constraints]", [
            "swift.conf/storage-policy:7"
        ]),
        ("swift.conf", "aliases = best", "deprecated = no\naliases = best", [
            "swift.conf/storage-policy:0/deprecated"
        ]),
    ],
)  # fmt: skip
def test_what_the_inventory_does_not_know_is_removed_only_if_it_is_named(site, capsys, name, old, new, items):
    before = site.text("10.0.0.1", name)
    assert old in before
    site.write("10.0.0.1", name, before.replace(old, new, 1).encode())
    capsys.readouterr()
    assert site.apply() == 2
    output = capsys.readouterr()
    assert (
        f"nothing is changed: hosts have what the inventory does not know: {', '.join(items)};" in output.err
    )
    assert site.hosts.calls == [] and site.text("10.0.0.1", name) != before
    for item in items:
        assert f"host 10.0.0.1: drop {item}" in output.out
    assert main(["plan", site.handmade.path, "--format", "json"], site.hosts) == 0
    planned = json.loads(capsys.readouterr().out)["hosts"]["10.0.0.1"]
    assert planned["drop"] == items and planned["diff"][f"/etc/swift/{name}"].startswith("--- /etc")
    assert site.apply(*(word for item in items for word in ("--drop", item))) == 0


@pytest.mark.parametrize("found", [{}, {"encryption_root_secret": "YW5vdGhlciBzZWNyZXQ="}])
def test_a_secret_that_an_old_state_directory_lacks_is_removed_only_if_it_is_named(site, capsys, found):
    assert site.apply() == 0
    path = site.inventory().cluster.state + "/secrets.json"
    with open(path) as file:
        values = json.load(file)
    values["options"]["proxy-server.conf"]["filter:keymaster"] = found
    del values["options"]["proxy-server.conf"]["filter:meter"]
    with open(path, "w") as file:
        json.dump(values, file)
    before = site.text("10.0.0.1", "proxy-server.conf")
    capsys.readouterr()
    assert site.apply() == 2 and site.text("10.0.0.1", "proxy-server.conf") == before
    items = [f"proxy-server.conf/filter:{name}" for name in ("meter/url", "keymaster/encryption_root_secret")]
    assert f"hosts have what the inventory does not know: {', '.join(items)};" in capsys.readouterr().err
    assert site.apply(*(word for item in items for word in ("--drop", item))) == 0


def test_a_device_that_was_added_by_hand_is_removed_only_if_it_is_named(site, capsys):
    site.apply()
    # The ring of one host has another device; its builder was not copied to the state directory.
    builder = RingBuilder.load(str(site.handmade.etc / "object.builder"))
    builder.pretend_min_part_hours_passed()
    builder.add_device(region=1, zone=9, ip="10.0.0.7", port=6000, device="sdx", weight=100.0)
    builder.rebalance(seed="2")
    ring = encode(builder.table(), "object.ring.gz")
    site.write("10.0.0.3", "object.ring.gz", ring)
    capsys.readouterr()
    assert site.apply("--drop", "object.ring.gz/10.0.0.7:6000/sdx") == 1
    output = capsys.readouterr().out
    assert "host 10.0.0.3: /etc/swift/object.ring.gz has version" in output
    assert "copy the newer builder there" in output
    builder.version = 1
    site.write("10.0.0.3", "object.ring.gz", encode(builder.table(), "object.ring.gz"))
    assert site.apply() == 2
    output = capsys.readouterr()
    assert "does not know: object.ring.gz/10.0.0.7:6000/sdx;" in output.err
    assert "-d8 r1z9-10.0.0.7:6000/sdx weight 100" in output.out and "have another device" in output.out
    assert site.apply("--drop", "object.ring.gz/10.0.0.7:6000/sdx") == 0


def test_filters_and_policies_that_apply_wrote_are_removed_only_if_they_are_named(site, tmp_path, capsys):
    site.apply()
    path = tmp_path / "cluster.toml"
    text = path.read_text()
    path.write_text(text.replace('"keymaster", "encryption", ', "").replace('"concurrency" = "4"\n', ""))
    capsys.readouterr()
    assert site.apply() == 2
    told = capsys.readouterr().err
    assert "pipeline/keymaster, proxy-server.conf/pipeline:main/pipeline/encryption;" in told
    assert "concurrency" not in told
    for pattern in (
        r'\[\[policy\]\]\nname = "archive".*?\n\n',
        r'\[conf."swift.conf"."storage-policy:2"\].*?\n\n',
        r"(, )?object-2 = [0-9.]+",
    ):
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    path.write_text(text)
    assert site.apply() == 2
    assert "does not know: swift.conf/storage-policy:2;" in capsys.readouterr().err


def test_options_of_a_directory_in_the_place_of_a_file_are_found(tmp_path):
    (tmp_path / "a.conf.d").mkdir()
    for number, text in enumerate((b"[a]\nb = 1", b"[c]\nd = 2\n")):
        (tmp_path / f"a.conf.d/{number}.conf").write_bytes(text)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "b.conf").write_bytes(b"\0\xff")
    options = inventory_of(tmp_path).cluster
    access = RemoteHosts(replace(options, ssh=()))
    host = replace(inventory_of(tmp_path).hosts[0], target="")
    paths = [str(tmp_path / name) for name in ("a.conf", "b.conf", "empty", "none")]
    assert access.read(host, paths) == {
        paths[0]: b"[a]\nb = 1\n[c]\nd = 2\n\n",
        paths[1]: b"\0\xff",
        paths[2]: b"",
    }


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


def test_the_authentication_of_servers_is_kept_with_its_secrets(handmade):
    conf = handmade.etc / "swift.conf"
    conf.write_text(f"{conf.read_text()}\n[swift-servers]\nmode = accept\nwindow = 30\n")
    with pytest.raises(AdoptError, match="is missing"):
        handmade.adopt()
    (handmade.etc / "server.secret").touch(0o600)
    (handmade.etc / "server.secret").write_text(f"# by hand\nold\t{'11' * 32}\n")
    adopted = handmade.adopt()
    assert adopted.inventory.cluster.server_auth == "accept"
    assert adopted.secrets.servers == f"old {'11' * 32}\n"
    assert adopted.inventory.conf["swift.conf"]["swift-servers"] == {"window": "30"}
    assert "11" * 32 not in adopted.text
    assert [line.split()[0] for line in next_rotation(adopted.secrets.servers).splitlines()] == ["old", "1"]
