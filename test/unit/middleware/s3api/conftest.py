"""What tests of the S3 filter share."""

import pytest

from test.support.s3_fixtures import S3Cluster, S3Fixture


@pytest.fixture
def front():
    return S3Fixture()


@pytest.fixture
def make_s3(sim):
    """The S3 API with options over the simulated cluster, with a bucket."""

    def make(**options):
        world = S3Cluster(sim, **options)
        assert world("PUT", "/bucket").status == 200
        return world

    return make


@pytest.fixture
def acls(make_s3):
    """Where ACLs of S3 decide."""
    return make_s3(s3_acl="true")
