"""Nodes that take uploads and say what a test wants, for sinks and what stands on them."""

from swift.cluster.transport import StreamReply, TransportError
from swift.http.body import WholeBody


class Talk:
    """An exchange that says what a test wants: ``says`` is the answers to waiting, in turn."""

    def __init__(self, *says, fails=(), final=201):
        self.continue_headers = {}
        self.sent = []
        self.trailers = "none"
        self.is_aborted = False
        self._says = list(says)
        self._fails = fails
        self._final = final

    def _may(self, what):
        if what in self._fails:
            raise TransportError(f"{what} failed")

    def send(self, data):
        self._may("send")
        self.sent.append(bytes(data))

    def finish(self, trailers=None):
        self._may("finish")
        self.trailers = trailers

    def wait_continue(self):
        self._may("wait")
        said = self._says.pop(0) if self._says else {}
        if isinstance(said, int):
            return StreamReply(said, {}, WholeBody(b"text"))
        self.continue_headers = said
        return None

    def begins(self, within_s):
        return True

    def reply(self):
        self._may("reply")
        return StreamReply(self._final, {}, WholeBody(b"done"))

    def abort(self):
        self.is_aborted = True


class Cluster:
    """Stands for ``Backends``: nodes by number, and what was said of them."""

    def __init__(self, **talks):
        self.talks = {int(name[1:]): talk for name, talk in talks.items()}
        self.failures = []
        self.judged = []
        self.asked = []
        #: Nodes that answer nobody.
        self.silent = set()

    def open(self, to, part, method, path, headers, *, body=b""):
        self.asked.append((to.id, dict(headers)))
        return self.talks.get(to.id)

    def failed(self, to, error, headers):
        self.failures.append((to.id, str(error)))

    def judge(self, to, status):
        self.judged.append((to.id, status))

    def falls_silent(self, to, exchange, nodes):
        return to.id in self.silent and nodes.pass_over(to)

    def refuses_date(self, to, answer, nodes):
        return False

    def ready(self, to):
        return

    def remember_promising(self, to, promises):
        return

    def reply(self, to, exchange, headers):
        try:
            return exchange.reply()
        except TransportError as error:
            self.failed(to, error, headers)
            return None
