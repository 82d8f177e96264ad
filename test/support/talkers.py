"""Servers that answer tools by path, whatever a test likes."""

import json

from swift.cluster.transport import Reply, TransportError


class Talkers:
    """A transport: (port, path) → JSON value, ``Reply`` or error; what is not there is 404."""

    def __init__(self, said):
        self.said = said
        self.asked = []

    def request(self, ip, port, method, path, headers, body=b"", *, connect_timeout_s, timeout_s):
        self.asked.append((port, method, path))
        answer = self.said.get((port, path), self.said.get(path, Reply(404, reason="Not Found")))
        if isinstance(answer, TransportError):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(200, body=json.dumps(answer).encode())


#: JSON that no server should say.
NONSENSE = (
    None,
    True,
    5,
    -1.5,
    "text",
    [],
    {},
    [None, 1, "x", [], {}, {"device": {"a": 1}, "mounted": True}],
    {"x": [1]},
    float("nan"),
    float("inf"),
    10**400,
    1e17,
)
