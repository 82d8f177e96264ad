"""Other nodes' copies of databases, as a replicator meets them."""

import json

from swift.base.timestamp import Timestamp
from swift.cluster.transport import Reply, TransportError


class Replicas:
    """A transport; ``says`` has a status or an error for each node that does not have all we have."""

    def __init__(self):
        self.says = {}
        #: Number and operation of every message.
        self.told = []
        #: Called before each answer.
        self.meanwhile = lambda number, operation: None

    def request(self, ip, port, method, path, headers, body=b"", *, connect_timeout_s, timeout_s):
        number = port - 6200
        operation = json.loads(body)[0] if method == "REPLICATE" else method
        self.told.append((number, operation))
        self.meanwhile(number, operation)
        said = self.says.get(number)
        if isinstance(said, TransportError):
            raise said
        if said is not None:
            return Reply(said)
        if method != "REPLICATE":
            return Reply(202)
        times = dict.fromkeys(("created_at", "put_timestamp"), Timestamp(5).internal)
        state = {"id": f"db{number}", "hash": "", "delete_timestamp": "0", "metadata": "", **times}
        return Reply(200, body=json.dumps({**state, "max_row": 99, "point": 99}).encode())

    @property
    def asked(self):
        """Who was asked, in order."""
        return [number for number, operation in self.told if operation == "sync"]
