"""Every request gets the cache of its server, as memcache.conf and the filter's section say."""

import pytest

from swift.base.errors import ConfigError
from swift.cluster.memcache import MemcacheRing
from swift.gateway.infocache import LocalCache
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.memcache import FILTER, Memcache
from test.support.sim import MemoryCache


class App:
    def handle(self, request):
        self.cache = request.env[environkeys.CACHE]
        return Response(204)


def cache_of(**conf):
    """The cache that requests get with such a section."""
    app = App()
    made = FILTER.build(app, conf)
    assert made.handle(Request("GET", "/v1/a", env={})).status == 204
    first = app.cache
    made.handle(Request("GET", "/v1/a", env={}))
    assert app.cache is first, "one for all requests"
    return first


def test_a_request_gets_the_cache_whatever_it_brings():
    app, cache = App(), MemoryCache()
    request = Request("GET", "/v1/a", env={environkeys.CACHE: "another"})
    assert Memcache(app, cache).handle(request).status == 204
    assert app.cache is cache


def test_values_are_believed_for_a_moment_unless_that_is_switched_off(tmp_path):
    assert isinstance(cache_of(swift_dir=str(tmp_path)), LocalCache)
    assert isinstance(cache_of(swift_dir=str(tmp_path), local_cache_seconds="0"), MemcacheRing)


def test_the_section_has_its_way_over_the_common_file(tmp_path):
    (tmp_path / "memcache.conf").write_text("[memcache]\ntries = many\n")
    with pytest.raises(ConfigError, match="tries"):
        cache_of(swift_dir=str(tmp_path))
    cache_of(swift_dir=str(tmp_path), tries="1")


def test_a_common_file_that_is_none_is_told(tmp_path):
    (tmp_path / "memcache.conf").write_text("no section\n")
    with pytest.raises(ConfigError, match=r"memcache\.conf"):
        cache_of(swift_dir=str(tmp_path))
