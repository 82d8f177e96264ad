"""swift-object-auditor on the devices of a running cluster finds, quarantines and reports damage."""

import json

import pytest

from test.support.cluster import LiveCluster
from test.support.peer import run


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = LiveCluster(tmp_path_factory.mktemp("audited"), proxy_workers=1)
    cluster.start()
    for node in cluster.plan.node_numbers():
        # The auditors of the cluster would find the damage first.
        cluster.kill(f"daemons-{node}")
    assert cluster.request("PUT", "c").status == 201
    yield cluster
    cluster.stop()


@pytest.mark.parametrize(
    ("name", "harm", "words", "kind"),
    [
        ("rot", lambda stored: stored.damage(0), (), "ALL"),
        ("cut", lambda stored: stored.damage_head(), ("-z", "1000"), "ZBF"),
    ],
)
def test_a_damaged_copy_is_quarantined_and_the_object_stays_readable(cluster, name, harm, words, kind):
    assert cluster.request("PUT", f"c/{name}", body=b"content of it").status == 201
    before = set(cluster.stored())
    victim = next(each for each in before if name.encode() in each.metadata())
    harm(victim)
    node = cluster.node_of(victim)
    cluster.run_once("object-auditor", node, ("once", *words))
    assert (victim.device / "quarantined" / "objects" / victim.hash).is_dir()
    stats = json.loads((cluster.plan.recon(node) / "object.recon").read_text())
    assert stats[f"object_auditor_stats_{kind}"]["quarantined"] == 1
    assert cluster.request("GET", f"c/{name}").body == b"content of it"
    assert set(cluster.stored()) == before - {victim}


def test_an_invalid_watcher_is_logged_without_a_traceback(cluster, tmp_path):
    conf = tmp_path / "object.conf"
    text = (cluster.plan.etc / "object-server" / "1.conf").read_text()
    conf.write_text(text.replace("[object-auditor]", "[object-auditor]\nwatchers = nobody"))
    done = run("swift-object-auditor", conf, "once")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "there is no watcher 'nobody'" in line
