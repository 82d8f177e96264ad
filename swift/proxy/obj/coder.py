"""What uploads of replicated and of erasure coded objects differ in: the bytes that each node gets.

``proxy.obj.put`` opens nodes, judges what they answer and tells the client, for all uploads alike. A
``Coder`` (``copies.CopyCoder``, ``ec.upload.ArchiveCoder``) frames the attempts and starts an ``Upload``,
which moves one body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.proxy.context import ProxyContext
from swift.proxy.obj.documents import Documents, Footers
from swift.proxy.obj.sinks import Sink
from swift.proxy.obj.target import ObjectTarget


def is_small(request: Request, context: ProxyContext) -> bool:
    """Whether the body fits into one piece of memory; nodes may hash such a one themselves."""
    length = request.body.length
    return length is not None and length <= context.settings.client_chunk_size


class Upload(ABC):
    """One body on its way to its sinks."""

    def __init__(self) -> None:
        #: Bytes of the object; known, like the rest, after ``send``.
        self.size = 0
        #: The object's MD5, empty where only nodes know it.
        self.etag = ""
        #: The MD5 that the proxy computed for nodes which do not compute it themselves.
        self.received_etag = ""
        #: What filters added, and what the container is told.
        self.footers = Footers()

    @abstractmethod
    def send(self) -> None:
        """Read the body and send every sink its part, to the end of the first round.

        Raises ``HTTPError`` 413, 422, and 503 when too few sinks are left; and body errors.
        """


class Coder(ABC):
    """Makes uploads of one kind of policy."""

    @abstractmethod
    def documents(self, request: Request, *, is_conditional: bool) -> Documents | None:
        """How a streamed upload is framed; None when its body is just the object."""

    @abstractmethod
    def frame(
        self,
        attempts: Sequence[HeaderMap],
        target: ObjectTarget,
        documents: Documents | None,
        length: int | None,
    ) -> None:
        """Say in the attempts' headers how the body is framed; ``length`` is the object's, if it is known."""

    @abstractmethod
    def start(
        self,
        request: Request,
        target: ObjectTarget,
        documents: Documents | None,
        sinks: Sequence[Sink],
        need: int,
    ) -> Upload:
        """An upload to these sinks; below ``need`` of them it ends with 503 (raised here already)."""
