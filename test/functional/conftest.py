"""Clusters with options of the S3 API that several modules share."""

import pytest

from test.support.s3 import cluster_with

OPTIONS = """[filter:s3api]
use = egg:swift#s3api
anonymous_account = AUTH_test
website_domain = web.test
storage_domain = s3.test
log_delivery_seconds = 1
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A cluster with anonymous requests, web sites and access logs."""
    with cluster_with(tmp_path_factory.mktemp("site"), OPTIONS) as live:
        yield live
