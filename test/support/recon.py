"""A cluster's recon data from a table, for pages that show them."""

import json

from swift.cluster.transport import BackendResponse, TransportError
from swift.console.core.cluster import ClusterWatch
from swift.operations.recon.client import ReconClient
from swift.policy.policy import Policies, Policy
from test.support.peer import make_rings

PORTS = {"account": 6202, "container": 6201, "object": 6200}
USAGE = {"device": "sda", "mounted": True, "size": 1000_000_000, "used": 400_000_000}
#: Checks of every server; a test changes them, for all or by address.
GOOD = {"devices": {"/srv/node": ["sda"]}, "unmounted": [], "diskusage": [USAGE]}


class FakeServers:
    """A transport to servers that respond from ``checks``, or from what ``own`` has for their address.

    Those in ``down`` do not respond.
    """

    def __init__(self, now_s):
        self.checks = {**GOOD, "time": now_s}
        self.own = {}
        self.down = set()
        self.requests = []

    def request(self, request):
        """Return the response to a recon check."""
        node, check = request.node, request.path.removeprefix("/recon/")
        self.requests.append((node.ip, node.port, check))
        if node.ip in self.down:
            raise TransportError("refused")
        found = {**self.checks, **self.own.get(node.ip, {})}
        if check not in found:
            return BackendResponse(404, reason="Not Found")
        return BackendResponse(200, body=json.dumps(found[check]).encode())


def make_watch(folder, servers, **options):
    """Return the view of a cluster of three nodes with a device ``sda`` each."""
    for name, port in PORTS.items():
        make_rings(folder, [(f"10.0.0.{n}", port, "sda") for n in (1, 2, 3)], names=(name,))
    client = ReconClient(1.0, transport=servers)
    return ClusterWatch(str(folder), Policies([Policy(0, "gold", is_default=True)]), client=client, **options)
