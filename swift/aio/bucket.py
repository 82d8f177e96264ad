"""Create the container, or S3 bucket, that a new cluster is asked for."""

from __future__ import annotations

import http.client
from contextlib import closing
from urllib.parse import quote, urlsplit

from swift.aio.plan import ClusterPlan
from swift.base.errors import ConfigError

#: Seconds until the proxy of this machine must respond.
TIMEOUT_S = 30.0


def create_bucket(plan: ClusterPlan, name: str) -> None:
    """Create a container in the user's account of a running cluster; one that exists stays as it is.

    Raises ``ConfigError`` when the proxy refuses the name or does not respond.
    """
    server = urlsplit(plan.url)
    path = f"{urlsplit(plan.storage_url).path}/{quote(name, safe='')}"
    try:
        with closing(http.client.HTTPConnection(server.netloc, timeout=TIMEOUT_S)) as connection:
            token = _token(connection, plan)
            connection.request("PUT", path, headers={"X-Auth-Token": token, "Content-Length": "0"})
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise ConfigError(f"bucket {name} cannot be created: {error}")
    if response.status not in (201, 202):
        raise ConfigError(f"bucket {name} cannot be created: {response.status} {text.strip()}")


def _token(connection: http.client.HTTPConnection, plan: ClusterPlan) -> str:
    login = {"X-Auth-User": plan.user, "X-Auth-Key": plan.key}
    connection.request("GET", urlsplit(plan.auth_url).path, headers=login)
    response = connection.getresponse()
    response.read()
    return response.headers.get("X-Auth-Token", "")
