"""kmip_keymaster: its options."""

import pytest

from swift.base.errors import ConfigError
from swift.middleware.keymaster.kmip import make_kmip_keymaster


@pytest.mark.parametrize("port", ["65536", "x", "-1"])
def test_a_port_that_cannot_be_is_named(port):
    with pytest.raises(ConfigError, match="kmip_keymaster.*port"):
        make_kmip_keymaster(lambda environ, start: [], {"key_id": "1", "port": port}, lambda *_words: {})
