"""swift-deploy makes a cluster of three hosts, changes it, and finds what was changed by hand."""

import shutil
import tempfile
from pathlib import Path

import pytest

from test.support.handbook import CLUSTER, DEPLOY, NODES, World, can_make_worlds

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not can_make_worlds(), reason="needs root and namespaces"),
]

UNITS = """
for unit in /opt/swift/src/etc/systemd/swift*; do
    sed 's#=/usr/bin/swift-#=/opt/swift/bin/python /opt/swift/bin/swift-#' $unit \\
        > /etc/systemd/system/${unit##*/}
done
"""


@pytest.fixture
def world():
    root = Path(tempfile.mkdtemp(prefix="deploy-"))
    root.chmod(0o755)
    made = World(root)
    for address in NODES:
        made.add_host(address)
        made.must(address, f"ip addr add {address.replace('10.0', '10.1', 1)}/32 dev lo")
    yield made
    made.end()
    print(made.times)
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.long
def test_three_hosts_are_deployed_changed_and_checked(world):
    world.paste(CLUSTER, until="## 3. What all hosts share")
    for address in NODES:
        world.must(address, UNITS)
    # The page deploys, stores and reads an object, adds a disk, and finds all hosts unchanged.
    world.paste(DEPLOY)
    first, second = NODES[:2]
    access = world.must(second, "stat -c %a /etc/swift/swift.conf /etc/swift/object.ring.gz")
    assert access.split() == ["640"] * 2
    assert world.must(first, "stat -c %a ~/cluster.state ~/cluster.state/secrets.json").split() == [
        "700",
        "600",
    ]
    running = world.must(second, "swift-init object-server.replication status")
    assert "/etc/swift/object-server/replication.conf" in running
    # The new disk has its share of what was stored before it came.
    share = world.must(first, "swift-ring-builder ~/cluster.state/object.builder | grep sdd")
    assert " 27 " in share or " 28 " in share, share

    world.must(second, "echo '# by hand' >> /etc/swift/object-server.conf")
    output, status = world.run(first, "swift-deploy check cluster.toml")
    assert (status, output.splitlines()) == (1, ["host two: /etc/swift/object-server.conf differs"])
    applied = world.must(first, "swift-deploy apply cluster.toml --yes && swift-deploy check cluster.toml")
    assert "host two: change /etc/swift/object-server.conf" in applied
    assert "host two: reload swift-object-server.service" in applied
    assert "@replication" not in applied
    assert applied.splitlines()[-1] == "all hosts match the inventory"

    # A host that loses a role loses its services and its files, and nothing that swift-deploy did not write.
    third = NODES[2]
    world.must(third, "cp -p /etc/memcached.conf /etc/swift/kept && touch /etc/swift/mine.conf")
    applied = world.must(
        first,
        """sed -i '/name = "three"/,$s/"proxy", //' cluster.toml
        swift-deploy plan cluster.toml && swift-deploy apply cluster.toml --yes &&
            swift-deploy check cluster.toml""",
    )
    for line in ("disable swift-proxy-server.service", "remove /etc/swift/proxy-server.conf"):
        assert applied.count(f"host three: {line}") == 2, applied
    assert applied.splitlines()[-1] == "all hosts match the inventory"
    left, _status = world.run(
        third,
        "for unit in swift-proxy-server memcached swift-object-server; do "
        "systemctl is-active $unit || true; done; "
        "ls /etc/swift; "
        "cmp /etc/memcached.conf /etc/swift/kept || true",
    )
    assert left.split()[:3] == ["inactive", "inactive", "active"], left
    assert "mine.conf" in left and "proxy-server.conf" not in left and "differ" in left
