"""Apache libcloud: its object storage driver of OpenStack Swift."""

from __future__ import annotations

import json

from test.clients.site import Outcome, Site

_SCRIPT = """
import io, json, sys, urllib.request
from libcloud import __version__
from libcloud.storage.providers import get_driver
from libcloud.storage.types import ContainerDoesNotExistError, ObjectDoesNotExistError, Provider
auth, user, key = sys.argv[1:]
login = urllib.request.Request(auth, headers={"X-Auth-User": user, "X-Auth-Key": key})
given = urllib.request.urlopen(login).headers
driver = get_driver(Provider.OPENSTACK_SWIFT)(
    user, key, ex_force_base_url=given["X-Storage-Url"], ex_force_auth_token=given["X-Auth-Token"],
    ex_force_auth_url=auth, ex_force_auth_version="1.0",
)
checks = {}
box = driver.create_container("libcloud")
checks["container is listed"] = "libcloud" in [c.name for c in driver.list_containers()]
made = driver.upload_object_via_stream(io.BytesIO(b"content" * 1000), box, "a b/\\u00fc")
checks["stream upload"] = made.size == 7000
checks["listing"] = [o.name for o in driver.list_container_objects(box)] == ["a b/\\u00fc"]
found = driver.get_object("libcloud", "a b/\\u00fc")
checks["download"] = b"".join(found.as_stream()) == b"content" * 1000
checks["range"] = b"".join(driver.download_object_range_as_stream(found, 7, 14)) == b"content"
checks["delete object"] = driver.delete_object(found)
try:
    driver.get_object("libcloud", "a b/\\u00fc")
    checks["deleted is gone"] = False
except ObjectDoesNotExistError:
    checks["deleted is gone"] = True
checks["delete container"] = driver.delete_container(box)
try:
    driver.get_container("libcloud")
    checks["container is gone"] = False
except ContainerDoesNotExistError:
    checks["container is gone"] = True
print(json.dumps({"version": __version__, "checks": checks}))
"""


def driver(site: Site) -> Outcome:
    """Containers and objects through the driver."""
    python = site.install("libcloud", "apache-libcloud", "requests") / "python"
    done = site.run(python, "-c", _SCRIPT, site.auth_url, site.user, site.key)
    if done.returncode:
        return Outcome("libcloud", failed=[done.stderr[-400:]])
    told = json.loads(done.stdout.splitlines()[-1])
    outcome = Outcome("libcloud", told["version"])
    for what, holds in told["checks"].items():
        outcome.check(what, holds)
    return outcome
