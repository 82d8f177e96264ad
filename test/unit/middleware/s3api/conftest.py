"""What the tests of the S3 filter share."""

import pytest

from test.support.s3front import Front


@pytest.fixture
def front():
    """The filter over a store in memory."""
    return Front()
