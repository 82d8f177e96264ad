"""The peer's ``swift-recon`` understands the recon responses of our storage servers."""

import pytest

from test.probe.test_peer_ssync import Nodes
from test.support.peer import can_hide_etc, needs_peer, run_peer

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]


@pytest.fixture
def nodes(tmp_path):
    made = Nodes(tmp_path, pipeline="recon object-server")
    for name in ("object", "object-1"):
        made.write_ring(name, 2, [(0, "sda"), (1, "sdb")])
    made.start()
    yield made
    made.stop()


#: All but ``--md5``, which requires that a server's swift.conf is in /etc/swift.
CHECKS = (
    "--async --replication --reconstruction --auditor --updater --expirer --unmounted --diskusage "
    "--loadstats --quarantined --sockstat --driveaudit --validate-servers --time --swift-versions"
)


def test_swift_recon_understands_every_response(nodes):
    (nodes.root / "node0/sda/.ismount").touch()
    (nodes.root / "node1/sdb/quarantined/objects/abc").mkdir(parents=True)
    command = ("swift-recon", "object", "--verbose", *CHECKS.split())
    output = run_peer(*command, swift_dir=nodes.etc)
    assert "Traceback" not in output, output
    assert "Starting reconnaissance on 2 hosts" in output
    assert "2/2 hosts ok, 0 error[s] while checking hosts." in output
    assert "2/2 hosts matched, 0 error[s] while checking hosts." in output
    assert f"Not mounted: sdb on 127.0.0.1:{nodes.ports[1]}" in output
    assert "[quarantined_objects] low: 0, high: 1, avg: 0.5, total: 1, Failed: 0.0%" in output
    assert "Versions matched" in output
