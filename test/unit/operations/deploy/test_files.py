"""Files of hosts, as the servers themselves read them."""

from configparser import ConfigParser

import pytest

from swift.identity.clusterkeys import read_key_file
from swift.layout.fetching import parse_servers
from swift.middleware.tempauth.users import parse_users
from swift.operations.deploy.files import files_of, units_of
from swift.operations.deploy.inventory import InventoryError
from swift.operations.deploy.rings import RingSource, update_rings
from swift.operations.deploy.state import Secrets, complete_secrets
from test.support.deploy import INVENTORY, inventory_of

SECRETS = Secrets("the-prefix", "the-suffix", {"test:tester": "the-key"})

#: The units of daemons in place of one process.
SEPARATE = INVENTORY.replace("[proxy.users]", "[storage]\ndaemons_in_one_process = false\n[proxy.users]")


def rendered(folder, text=INVENTORY, host=0, secrets=SECRETS):
    """Return the files of a host: base name → text."""
    inventory = inventory_of(folder, text)
    files = files_of(inventory, inventory.hosts[host], complete_secrets(secrets, inventory), ())
    return {file.path.removeprefix("/etc/swift/"): file.content.decode() for file in files}


def section(text, name):
    parser = ConfigParser(interpolation=None, default_section="none", strict=True)
    parser.optionxform = str
    parser.read_string(text)
    return dict(parser[name])


def test_a_host_has_the_files_of_its_roles(tmp_path):
    common = {"swift.conf", "memcache.conf", "layout-agent.conf"}
    storage = {
        "internal-client.conf",
        *(f"{kind}-server.conf" for kind in ("account", "container", "object")),
    }
    once = {"container-reconciler.conf", "layout-controller.conf"}
    assert set(rendered(tmp_path)) == common | storage | once | {"proxy-server.conf", "/etc/memcached.conf"}
    assert set(rendered(tmp_path, host=1)) == common | storage


def test_rings_are_files_of_every_host(tmp_path):
    inventory = inventory_of(tmp_path)
    rings = update_rings(inventory, RingSource(lambda name: None), remove=False, go_on=True)
    found = {file.path: file for file in files_of(inventory, inventory.hosts[1], SECRETS, rings)}
    assert found["/etc/swift/object.ring.gz"].content == rings[2].content
    assert found["/etc/swift/object.ring.gz"].owner == "root:swift"


def test_swift_conf_has_the_secrets_and_the_policies(tmp_path):
    text = INVENTORY.replace("index = 0", "index = 0\ndefault = true").replace(
        "[[host]]", '[[policy]]\nname = "ec"\nindex = 1\ndata = 2\nparity = 1\n[[host]]', 1
    )
    conf = rendered(tmp_path, text)["swift.conf"]
    assert section(conf, "swift-hash") == {
        "swift_hash_path_prefix": "the-prefix",
        "swift_hash_path_suffix": "the-suffix",
    }
    assert section(conf, "storage-policy:0") == {"name": "gold", "default": "yes"}
    assert section(conf, "storage-policy:1")["ec_num_parity_fragments"] == "1"


def test_the_proxy_has_options_users_and_a_whole_pipeline(tmp_path):
    text = INVENTORY.replace(
        "[proxy.users]", '[proxy]\nport = 81\nworkers = 3\n[proxy.users]\n"A_b:c=d" = []'
    )
    conf = rendered(tmp_path, text.replace("zone = 1", 'zone = 1\nproxy_address = "192.0.2.1"'))[
        "proxy-server.conf"
    ]
    default = section(conf, "DEFAULT")
    assert (default["bind_ip"], default["bind_port"], default["workers"]) == ("192.0.2.1", "81", "3")
    pipeline = section(conf, "pipeline:main")["pipeline"].split()
    assert pipeline[-2:] == ["proxy-logging", "proxy-server"] and "tempauth" in pipeline
    for name in pipeline[:-1]:
        assert section(conf, f"filter:{name}")["use"].startswith("egg:swift#")
    users = parse_users(section(conf, "filter:tempauth"))
    assert set(users) == {("test", "tester"), ("A_b", "c=d")}
    assert users["test", "tester"].key == "the-key" and users["test", "tester"].groups == (".admin",)


def test_memcached_of_the_operator_is_left_alone(tmp_path):
    text = INVENTORY.replace(
        "[proxy.users]", '[memcached]\nservers = ["10.0.0.8:1", "10.0.0.9:1"]\n[proxy.users]'
    )
    files = rendered(tmp_path, text)
    assert section(files["memcache.conf"], "memcache") == {"memcache_servers": "10.0.0.8:1,10.0.0.9:1"}
    assert "/etc/memcached.conf" not in files
    inventory = inventory_of(tmp_path, text)
    assert "memcached" not in units_of(inventory, inventory.hosts[0])


def test_a_storage_server_listens_on_its_own_address_only(tmp_path):
    first, second = (rendered(tmp_path, host=number)["object-server.conf"] for number in (0, 1))
    assert section(second, "DEFAULT")["bind_ip"] == "10.0.0.2"
    assert section(second, "object-replicator") == {"sync_method": "ssync"}
    # One host deletes expired objects.
    assert section(first, "object-expirer") == {"dequeue_from_legacy": "true"}
    assert section(second, "object-expirer") == {}


def test_a_replication_network_has_servers_of_its_own(tmp_path):
    text = INVENTORY.replace("zone = 2", 'zone = 2\nreplication_address = "10.1.0.2"')
    files = rendered(tmp_path, text, host=1)
    assert section(files["object-server.conf"], "DEFAULT")["bind_ip"] == "10.0.0.2"
    assert section(files["object-server.conf"], "DEFAULT")["ring_ip"] == "10.1.0.2"
    assert section(files["object-server/replication.conf"], "DEFAULT")["bind_ip"] == "10.1.0.2"
    inventory = inventory_of(tmp_path, text)
    assert "swift-object-server@replication" in units_of(inventory, inventory.hosts[1])
    assert "swift-object-server@replication" not in units_of(inventory, inventory.hosts[2])


def test_rsync_is_configured_when_asked_for(tmp_path):
    text = INVENTORY.replace("part_power = 4", 'part_power = 4\nsync_method = "rsync"')
    files = rendered(tmp_path, text, host=1)
    assert "address = 10.0.0.2\n" in files["/etc/rsyncd.conf"] and "[object]" in files["/etc/rsyncd.conf"]
    assert section(files["object-server.conf"], "object-replicator")["sync_method"] == "rsync"
    inventory = inventory_of(tmp_path, text)
    assert "rsync" in units_of(inventory, inventory.hosts[1])


def test_options_of_the_inventory_come_last(tmp_path):
    text = INVENTORY.replace(
        "[proxy.users]",
        "[conf.'object-server.conf'.DEFAULT]\nbind_port = 7000\nmount_check = false\n"
        "[conf.'object-server.conf'.object-auditor]\ninterval = 5\n[proxy.users]",
    )
    conf = rendered(tmp_path, text)["object-server.conf"]
    assert section(conf, "DEFAULT")["bind_port"] == "7000"
    assert section(conf, "DEFAULT")["mount_check"] == "false"
    assert section(conf, "object-auditor") == {"interval": "5"}


def test_daemons_of_a_cluster_run_on_the_first_storage_host(tmp_path):
    inventory = inventory_of(tmp_path, SEPARATE)
    first, second, _third = (units_of(inventory, host) for host in inventory.hosts)
    only = {"swift-object-expirer", "swift-container-reconciler", "swift-layout-controller"}
    only |= {"swift-proxy-server", "memcached", "swift-health-history.timer"}
    assert set(first) - set(second) == only
    assert {"swift.target", "swift-recon-cron.timer", "swift-object-reconstructor"} <= set(second)


def test_daemons_share_a_process_that_reads_what_each_of_them_reads(tmp_path):
    inventory = inventory_of(tmp_path)
    units = {file.path: file.units for file in files_of(inventory, inventory.hosts[1], SECRETS, ())}
    assert units["/etc/swift/account-server.conf"] == ("swift-account-server", "swift-daemons")
    assert units["/etc/swift/internal-client.conf"] == ("swift-daemons",)
    assert "swift-object-auditor" not in units_of(inventory, inventory.hosts[1])


def test_a_changed_file_names_the_units_that_read_it(tmp_path):
    inventory = inventory_of(tmp_path, SEPARATE)
    units = {file.path: file.units for file in files_of(inventory, inventory.hosts[1], SECRETS, ())}
    assert "swift-account-server" in units["/etc/swift/account-server.conf"]
    assert "swift-account-reaper" in units["/etc/swift/account-server.conf"]
    assert "swift-object-server" not in units["/etc/swift/account-server.conf"]
    assert units["/etc/swift/internal-client.conf"] == ("swift-container-sharder", "swift-container-sync")


SWIFTAUTH = INVENTORY.replace("[proxy.users]", "[proxy]").replace(
    '"test:tester" = [".admin"]', 'auth = "swiftauth"'
)


def test_users_in_the_cluster_need_a_key_file_on_all_hosts(tmp_path):
    files = [
        rendered(tmp_path, SWIFTAUTH, host, Secrets("p", "s", {}, swiftauth="1 KEY\n")) for host in (0, 1)
    ]
    assert [each["swiftauth.key"] for each in files] == ["1 KEY\n", "1 KEY\n"]
    conf = files[0]["proxy-server.conf"]
    assert section(conf, "filter:swiftauth") == {"use": "egg:swift#swiftauth"}
    assert "tempauth" not in conf
    assert "swiftauth.key" not in rendered(tmp_path)


def test_the_key_is_made_once(tmp_path):
    inventory = inventory_of(tmp_path, SWIFTAUTH)
    made = complete_secrets(None, inventory)
    path = tmp_path / "swiftauth.key"
    path.write_text(made.swiftauth)
    path.chmod(0o640)
    assert read_key_file(str(path)).ids == ("1",)
    assert complete_secrets(made, inventory).swiftauth == made.swiftauth
    assert complete_secrets(None, inventory_of(tmp_path)).swiftauth == ""


def test_the_console_is_there_if_it_is_wanted(tmp_path):
    conf = rendered(tmp_path, SWIFTAUTH)["proxy-server.conf"]
    assert "console" not in conf
    wanted = SWIFTAUTH.replace('auth = "swiftauth"', 'auth = "swiftauth"\nconsole = true')
    conf = rendered(tmp_path, wanted)["proxy-server.conf"]
    assert section(conf, "filter:console") == {"use": "egg:swift#console", "public": "true"}
    assert " console cache " in section(conf, "pipeline:main")["pipeline"] + " "
    without = INVENTORY.replace("[proxy.users]", "[proxy]\nconsole = true\n[proxy.users]")
    with pytest.raises(InventoryError, match="swiftauth"):
        inventory_of(tmp_path, without)


@pytest.mark.parametrize(
    "more", ['[proxy.users]\n"a:b" = []', 'pipeline = ["cache", "tempauth", "proxy-server"]']
)
def test_what_contradicts_users_in_the_cluster_is_refused(tmp_path, more):
    with pytest.raises(InventoryError, match="swiftauth"):
        inventory_of(tmp_path, SWIFTAUTH.replace('auth = "swiftauth"', f'auth = "swiftauth"\n{more}'))


def test_every_host_has_a_layout_agent_with_seeds(tmp_path):
    inventory = inventory_of(tmp_path, SEPARATE)
    for host in inventory.hosts:
        assert "swift-layout-agent" in units_of(inventory, host)
    seeds = section(rendered(tmp_path)["layout-agent.conf"], "layout-agent")["seeds"].split(", ")
    assert len(parse_servers(seeds)) == len(seeds) > 0
    # All daemons of a storage host run in one process.
    assert "swift-layout-agent" not in units_of(inventory_of(tmp_path), inventory.hosts[1])
