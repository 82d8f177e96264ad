"""swift-user on a proxy: a wrong URL is one line."""

import pytest

from swift.operations.identities import IdentityError, RemoteIdentities


@pytest.mark.parametrize(
    "url",
    [
        "",
        "swift",
        "ftp://h/auth",
        "http://",
        "http://[x",
        "http://h:99999/auth",
        "http://h:port/",
        "http://h\n",
    ],
)
def test_what_is_no_url_of_a_log_in_is_named(url):
    with pytest.raises(IdentityError, match="is no URL of a log-in|cannot reach") as error:
        RemoteIdentities(url, "a:b", "key")
    assert "\n" not in str(error.value)
