"""The policy file for other domains (middleware.md §15)."""

from swift.middleware.crossdomain import Crossdomain, CrossdomainSettings
from test.support.filters import SmallBackend, ask


def test_the_policy_file_has_what_the_operator_wrote():
    filter_ = Crossdomain(SmallBackend(), CrossdomainSettings(cross_domain_policy="<allow/>"))
    answer = ask(filter_, path="/crossdomain.xml")
    assert answer.headers["content-type"] == "application/xml"
    assert answer.body.endswith(b"<cross-domain-policy>\n<allow/>\n</cross-domain-policy>")
    for method, path in (("PUT", "/crossdomain.xml"), ("GET", "/crossdomain.xml/"), ("GET", "/v1/a")):
        assert ask(filter_, method, path).body == b""
