"""The parts and markers of multipart uploads as the lifecycle daemon reaches them."""

from __future__ import annotations

from collections.abc import Collection

from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient
from swift.http.headers import HeaderMap
from swift.s3.uploads import marker_of, number_of
from swift.s3.uploadstate import ObjectAnswer


class DaemonObjects:
    """``Objects`` with all rights; raises ``UnexpectedAnswer`` for 5xx but 501."""

    def __init__(self, client: InternalClient, account: str):
        self._client = client
        self._account = account

    def send(
        self,
        method: str,
        container: str,
        name: str,
        headers: HeaderMap | None = None,
        body: bytes = b"",
        *,
        query: str = "",
    ) -> ObjectAnswer:
        """See ``Objects``."""
        path = EntityPath(self._account, container, name)
        with self._client.ask(method, path, headers, body, query=query, accept=(2, 4, 501)) as response:
            content = response.read_body() if method == "GET" and response.is_success else b""
            return ObjectAnswer(response.status, response.headers, content)


def remove_parts(
    client: InternalClient,
    home: EntityPath,
    key: str,
    upload_id: str,
    but: Collection[tuple[str, str]] = (),
) -> list[int]:
    """Remove the objects of an upload's parts, but some, each (container, name); the statuses.

    Raises ``UnexpectedAnswer``.
    """
    prefix = f"{marker_of(key, upload_id)}/"
    statuses = []
    for row in client.listing(home, prefix=prefix):
        name = str(row["name"])
        # A longer name is of an upload of another key.
        if number_of(name[len(prefix) :]) is not None and (str(home.container), name) not in but:
            statuses.append(client.delete(home._replace(obj=name), accept=(2, 403, 404, 409)))
    return statuses
