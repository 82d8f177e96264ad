"""The process that asks key services: credentials, and errors as one line.

What Barbican and KMIP services answer is in ``test/probe/test_key_services.py``.
"""

import json
import subprocess
import sys

import pytest

from swift.base.extras import install_command
from swift.middleware.keymaster.fetch import keystone_credentials


@pytest.mark.parametrize(
    ("options", "credentials"),
    [
        (
            {"username": "u", "project_name": "p"},
            {"user_domain_name": "Default", "project_domain_name": "Default"},
        ),
        ({"username": "u", "user_domain_id": "d"}, {"user_domain_id": "d"}),
        ({"user_id": "1", "project_id": "2"}, {}),
        ({"username": "u", "user_domain_name": "d", "trust_id": "t"}, {"user_domain_name": "d"}),
        ({"username": "u", "domain_name": "x"}, {"user_domain_name": "Default"}),
    ],
)
def test_domains_are_the_default_one_where_names_need_one(options, credentials):
    found = keystone_credentials({**options, "password": "p", "auth_endpoint": "x"})
    assert found == {**options, **credentials}


@pytest.mark.process
@pytest.mark.parametrize("service", ["kms", "kmip"])
def test_a_client_that_is_not_installed_is_named(service):
    hide = "import sys; sys.modules.update({'castellan': None, 'kmip': None}); "
    run = "from swift.middleware.keymaster.fetch import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", hide + run],
        input=json.dumps({"service": service, "options": {}, "key_ids": ["1"]}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""
    package = {"kms": "castellan", "kmip": "kmip"}[service]
    assert done.stderr.startswith(f"the package {package}") and done.stderr.count("\n") == 1
    assert install_command(f"{service}_keymaster") in done.stderr
