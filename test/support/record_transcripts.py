"""Record the peer's responses to API cases: python -m test.support.record_transcripts [SET [OUT.json]]

``SWIFT_PEER_BIN`` names the directory of the peer's commands. Black box: the peer's servers are started
with this project's all-in-one configuration. Needs root and unshare(1): the peer looks for policies in
/etc/swift only.
"""

import json
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

from swift.aio.make import make_cluster
from swift.aio.plan import new_plan
from swift.aio.ports import PORTS_PER_NODE
from test.functional.every_api_case import SETS
from test.support.cluster import login, with_filters
from test.support.peer import peer_command
from test.support.processes import free_ports, free_range
from tools.bench.contestants import Contestant

KEPT = Path(__file__).parents[1] / "golden" / "data"


def program_of(kind, conf, *, swift_dir):
    # The limits are the peer's defaults, not those that fit into this machine's filesystem.
    settings = swift_dir / "swift.conf"
    settings.write_text(settings.read_text().partition("[swift-constraints]")[0])
    return peer_command(f"swift-{kind}-server", conf, "-v", swift_dir=swift_dir)


def main(name="api-answers", out=None):
    cases = SETS[name]
    with tempfile.TemporaryDirectory() as root:
        proxy_port, cache_port = free_ports(2)
        base_port = free_range(PORTS_PER_NODE * 5)
        ports = {"proxy_port": proxy_port, "cache_port": cache_port, "base_port": base_port}
        plan = new_plan(Path(root) / "data", ec="2+1", **ports)
        make_cluster(plan)
        conf = plan.etc / "proxy-server.conf"
        conf.write_text(with_filters(conf.read_text(), cases.places, cases.options))
        program = partial(program_of, swift_dir=plan.root / "etc")
        peer = Contestant("peer", plan, program)
        try:
            peer.start()
            asker = cases.asker(peer.host, cache(partial(login, peer.host)))
            cases.send(asker)
        finally:
            peer.stop()
    lines = ",\n".join(json.dumps(response, ensure_ascii=True) for response in asker.answers)
    Path(out or KEPT / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(asker.answers)} answers")


if __name__ == "__main__":
    main(*sys.argv[1:])
