"""Inventories: good ones become values, bad ones are refused in one line that names table and key."""

import pytest

from swift.operations.deploy.inventory import load_inventory
from swift.operations.deploy.tables import InventoryError
from test.support.deploy import INVENTORY, inventory_of

EC = '[[policy]]\nname = "ec"\nindex = 1\ndata = 2\nparity = 1\n'


def test_defaults_are_those_of_a_small_cluster(tmp_path):
    inventory = inventory_of(tmp_path)
    one, two, _three = inventory.hosts
    assert one.roles == ("proxy", "storage") and two.roles == ("storage",)
    assert (one.target, one.replication_address, one.region) == ("10.0.0.1", "10.0.0.1", 1)
    assert inventory.cluster.state == str(tmp_path / "cluster.state")
    assert inventory.memcache_servers() == ("10.0.0.1:11211",)
    assert [inventory.runs_once(host) for host in inventory.hosts] == [True, False, False]


def test_a_host_that_is_local_needs_no_ssh(tmp_path):
    assert (
        inventory_of(tmp_path, INVENTORY.replace("zone = 1", "zone = 1\nlocal = true")).hosts[0].target == ""
    )


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("part_power = 4", "", "[cluster]: part_power is missing"),
        ("part_power = 4", "part_power = 99", "[cluster]: part_power must be a whole number from 1 to 32"),
        ("part_power = 4", "part_power = true", "[cluster]: part_power must be"),
        ("part_power = 4", "part_power = 4\nssh = 'ssh'", "[cluster]: ssh must be a list"),
        ("part_power = 4", "part_power = 4\ncolour = 1", "[cluster]: colour is not known here"),
        ("part_power = 4", "part_power = 4\nsync_method = 'cp'", "[cluster]: sync_method must be one of"),
        ("part_power = 4", "part_power = 4\nsudo = 1", "[cluster]: sudo must be true or false"),
        ('"test:tester"', '"tester"', "[proxy.users]: 'tester' must be"),
        ('[".admin"]', '["a b"]', "[proxy.users]: test:tester must be a list of texts; it has 'a b'"),
        ("[proxy.users]", "[proxy]\nport = 0\n[proxy.users]", "[proxy]: port must be"),
        ("[proxy.users]", "[proxy]\nworkers = 'many'\n[proxy.users]", "[proxy]: workers must be"),
        ("[proxy.users]", "[storage]\nworkers = 0\n[proxy.users]", "[storage]: workers must be"),
        ("[proxy.users]", "[proxy]\npipeline = ['x']\n[proxy.users]", "[proxy]: pipeline has 'x'"),
        ("[proxy.users]", "[proxy]\npipeline = ['cache']\n[proxy.users]", "[proxy]: pipeline must end"),
        ("[proxy.users]", "[storage]\ndevices = 'srv'\n[proxy.users]", "[storage]: devices must be"),
        ("[proxy.users]", "[memcached]\nservers = ['x']\n[proxy.users]", "[memcached]: servers must be"),
        ("replicas = 3", "replicas = 0.5", "[[policy]] 1 (gold): replicas must be a number >= 1"),
        ("replicas = 3", "replicas = nan", "[[policy]] 1 (gold): replicas must be a number >= 1"),
        ("replicas = 3", "replicas = 3\ndata = 2", "[[policy]] 1 (gold): replicas and data, parity exclude"),
        ("replicas = 3", "data = 2", "[[policy]] 1 (gold): parity is missing"),
        (
            "replicas = 3",
            "replicas = 5",
            "top level: host has 4 disks without a class, but ring object has 5",
        ),
        ("replicas = 3", "replicas = 3\nclass = 'ssd'", "top level: host has 0 disks of class 'ssd'"),
        ('"gold"', '"g o"', "[[policy]] 1 (g o): name must be letters"),
        ("index = 0", "index = 1", "top level: policy must have index 0 once"),
        (
            '[[host]]\nname = "one"',
            EC.replace("index = 1", "index = 0") + '[[host]]\nname = "one"',
            "index 0 is",
        ),
        (
            '[[host]]\nname = "one"',
            EC + '[[host]]\nname = "one"',
            "top level: policy must have default = true",
        ),
        ('"10.0.0.2"', '"10.0.0.1"', "[[host]] 2 (two): address '10.0.0.1' is that of another host"),
        ('"10.0.0.2"', '"two"', "[[host]] 2 (two): address must be an IP address, not 'two'"),
        ('"10.0.0.2"', '"0.0.0.0"', "[[host]] 2 (two): address must be an address of this host alone"),
        ('name = "two"', 'name = "one"', "[[host]] 2 (one): name 'one' is that of another host"),
        (
            "zone = 1",
            "zone = 1\nlocal = true\ntarget = 'x'",
            "(one): target and local = true exclude each other",
        ),
        ("zone = 1", "zone = 1\ntarget = '-oProxyCommand=x'", "(one): target must be a name for ssh"),
        ('name = "two"', 'name = "two;id"', "[[host]] 2 (two;id): name must be"),
        (
            "zone = 2",
            "zone = 2\ntarget = '-oProxyCommand=id'",
            "[[host]] 2 (two): target must be a name for ssh",
        ),
        ("zone = 2", "zone = '2'", "[[host]] 2 (two): zone must be a whole number >= 1, not '2'"),
        ("zone = 2", "", "[[host]] 2 (two): zone is missing"),
        (
            '["storage"]',
            '["store"]',
            "[[host]] 2 (two): roles must be some of proxy, storage; it has 'store'",
        ),
        ('["storage"]', '["proxy"]', "[[host]] 2 (two): disks needs the role storage"),
        ('"sdc", weight = 100', '"sdc", weight = -1', "[[host]] 1 (one) disks 2 (sdc): weight must be"),
        ('"sdc"', '"../etc"', "[[host]] 1 (one) disks 2 (../etc): device must be"),
        ('"sdc"', '"sdb"', "[[host]] 1 (one) disks 2 (sdb): device 'sdb' is that of another disk"),
        ("[proxy.users]", "[conf.'x.conf'.a]\nb = 1\n[proxy.users]", "[conf]: 'x.conf' must be one of"),
        (
            "[proxy.users]",
            "[conf.'swift.conf'.swift-hash]\nswift_hash_path_prefix = 'x'\n[proxy.users]",
            "[conf.'swift.conf'.'swift-hash']: swift_hash_path_prefix is a secret",
        ),
        (
            "[proxy.users]",
            "[conf.'swift.conf'.a]\nb = \"x\\ny = 1\"\n[proxy.users]",
            "[conf.'swift.conf'.'a']: b must be one line",
        ),
    ],
)
def test_a_bad_value_is_named_by_file_table_and_key(tmp_path, old, new, where):
    assert old in INVENTORY
    with pytest.raises(InventoryError) as failed:
        inventory_of(tmp_path, INVENTORY.replace(old, new, 1))
    assert str(failed.value).startswith(f"{tmp_path}/cluster.toml: ")
    assert where in str(failed.value) and "\n" not in str(failed.value)


def test_a_missing_file_is_named_with_what_to_do(tmp_path):
    with pytest.raises(InventoryError, match=r"none.toml is missing: .* write a sample with init or adopt"):
        load_inventory(str(tmp_path / "none.toml"))


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("[cluster\n")
    with pytest.raises(InventoryError, match=r"bad\.toml: .*line 1"):
        load_inventory(str(path))


def test_erasure_coding_needs_as_many_disks_as_fragments(tmp_path):
    text = INVENTORY.replace("replicas = 3\n", "data = 3\nparity = 2\n", 1)
    with pytest.raises(InventoryError, match="ring object has 5 replicas"):
        inventory_of(tmp_path, text)
    policy = inventory_of(tmp_path, text.replace("data = 3", "data = 2")).policies[0]
    assert policy.section()["ec_num_data_fragments"] == "2"
