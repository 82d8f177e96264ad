"""Clusters of benches: options and the pace of slow devices."""

from pathlib import Path

from swift.aio.make import make_cluster
from swift.aio.plan import new_plan
from swift.aio.temporary import PATIENCE_S, SYNC_MB, set_options, set_write_pace


def test_an_option_can_be_set_again_and_again(tmp_path):
    conf = tmp_path / "proxy-server.conf"
    conf.write_text("[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n")
    for memory in (5, 7):
        set_options(conf, "proxy", striping_memory=memory, striping_from=9)
    assert conf.read_text().splitlines() == [
        "[app:proxy-server]",
        "use = egg:swift#proxy",
        "striping_memory = 7",
        "striping_from = 9",
        "account_autocreate = true",
    ]


def test_slow_devices_are_written_all_the_time_and_waited_for(tmp_path):
    plan = new_plan(tmp_path / "c", nodes=2, replicas=2)
    make_cluster(plan)
    set_write_pace(plan)
    assert f"\nnode_timeout = {PATIENCE_S}\n" in (plan.etc / "proxy-server.conf").read_text()
    confs = list(Path(plan.etc / "object-server").glob("*.conf"))
    assert len(confs) == 2
    assert all(f"\nmb_per_sync = {SYNC_MB}\n" in conf.read_text() for conf in confs)
