"""What tests of the S3 filter share."""

import pytest

from test.support.s3front import Front


@pytest.fixture
def front():
    return Front()
