"""A client of an object server that goes on and on, and counts what it is answered."""

import http.client
import threading
import time
from collections import Counter


class LoadClient(threading.Thread):
    """Writes and reads at one port, on one connection or on a new one each time, until ``stop`` is set.

    ``partition_of`` gives the partition of a name, where the server has a ring.
    """

    def __init__(self, port, stop, *, device="sda", name="", keeps=True, partition_of=lambda name: 1):
        super().__init__()
        self.partition_of = partition_of
        self.port, self.device, self.stopping, self.keeps = port, device, stop, keeps
        self.prefix = name or f"{keeps:d}"
        #: Statuses, and errors as they read, with how often they came.
        self.seen = Counter()

    def run(self):
        connection, turn = None, 0
        while not self.stopping.is_set():
            turn += 1
            obj = f"{self.prefix}-{turn % 50}"
            path = f"/{self.device}/{self.partition_of(obj)}/a/c/{obj}"
            if connection is None or not self.keeps:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                headers = {"X-Timestamp": f"{time.time():.5f}", "Content-Type": "text/plain"}
                for method, body, sent in (("PUT", b"x" * 2000, headers), ("GET", None, {})):
                    connection.request(method, path, body, sent)
                    answer = connection.getresponse()
                    answer.read()
                    self.seen[answer.status] += 1
            except (OSError, http.client.HTTPException) as error:
                self.seen[repr(error)] += 1
                connection = None
