"""Requests to the smaller filters, in a pipeline that has them all."""

A = "/v1/AUTH_test"
#: Filter → the one that it goes before.
PLACES = {
    "domain_remap": "listing_formats",
    "etag-quoter": "listing_formats",
    "crossdomain": "tempurl",
    "name_check": "tempurl",
    "list-endpoints": "tempurl",
    "read_only": "staticweb",
}
OPTIONS = r"""
[filter:domain_remap]
use = egg:swift#domain_remap
storage_domain = example.com, .h.example.org
reseller_prefixes = AUTH, OTHER
mangle_client_paths = yes

[filter:etag-quoter]
use = egg:swift#etag_quoter

[filter:name_check]
use = egg:swift#name_check
forbidden_chars = "`<>
maximum_length = 60
forbidden_regexp = /\./|/\.\./|/\.$|/\.\.$

[filter:ratelimit]
use = egg:swift#ratelimit
max_sleep_time_seconds = 0.2
account_blacklist = AUTH_black
container_ratelimit_100000 = 50

[filter:container_sync]
use = egg:swift#container_sync
allow_full_urls = false

[filter:tempurl]
use = egg:swift#tempurl
methods = GET PUT
allowed_digests = sha256
"""


def send_small(both):
    """Send every case."""
    for part in (crossdomain, etags, names, domains, read_only, endpoints, sync, limited):
        part(both)


def crossdomain(both):
    """The policy file."""
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        for path in ("/crossdomain.xml", "/crossdomain%2Exml", "/crossdomain.xml/", "/crossdomain.xml?x=y"):
            both(method, path, user=None)


def etags(both):
    """Quoted ETags."""
    both("PUT", A + "/eq")
    both("PUT", A + "/eq/o", body=b"hello")
    for path, kind in ((A + "/eq", "Container"), (A, "Account")):
        for value in ("true", "x", "", "1", "false", " "):
            both("POST", path, {f"X-{kind}-Rfc-Compliant-Etags": value})
            both("HEAD", path)
            both("HEAD", A + "/eq/o")
        both("POST", path, {f"X-{kind}-Rfc-Compliant-Etags": "yes"})
        for method in ("GET", "HEAD", "PUT", "POST", "OPTIONS"):
            both(method, A + "/eq/o", body=b"hello" if method == "PUT" else None)
        etag = "5d41402abc4b2a76b9719d911017c592"
        for headers in ({"If-None-Match": f'"{etag}"'}, {"If-Match": etag}, {"Range": "bytes=9-"}):
            both("GET", A + "/eq/o", headers)
        both("GET", A + "/eq?format=json")
        both("GET", A + "/eq/none")
        both("POST", path, {f"X-Remove-{kind}-Rfc-Compliant-Etags": "x"})
        both("HEAD", A + "/eq/o")
    both("PUT", A + "/eq2", {"X-Container-Rfc-Compliant-Etags": "on"})
    both("PUT", A + "/eq2/o", body=b"hello")


def names(both):
    """Names that are not wanted."""
    for path in (
        *(
            "/eq/a%22b",
            "/eq/a%60b",
            "/eq/%3Ca%3E",
            "/eq/./a",
            "/eq/../a",
            "/eq/.",
            "/eq/..",
            "/eq/a/.",
            "/eq/.a",
        ),
        *(
            "/eq/a..",
            "/eq/...",
            "/./o",
            "/../o",
            "/eq/" + "x" * 60,
            "/eq/" + "\xc3\xa9" * 25,
            "/eq/%C3%A9" * 5,
        ),
        *("/eq/%ff", "/eq/" + "%C3%A9" * 40, "/eq/" + "x" * 39, "/eq/" + "x" * 40, "/eq/" + "x" * 41),
    ):
        both("GET", A + path)
    both("PUT", A + "/eq/a%3Eb", body=b"x")
    both("GET", "/%3C", user=None)
    both("GET", "/v1/AUTH_%3C", user=None)


def domains(both):
    """Names in the Host header."""
    for host in (
        *(
            "AUTH_test.example.com",
            "auth-test.example.com",
            "auth_test.example.com",
            "AUTH-test.h.example.org:80",
        ),
        *("eq.auth-test.example.com", "eq.AUTH_test.example.com:8080", "x.eq.auth-test.example.com"),
        *("other-test.example.com", "nobody.example.com", "example.com", ".example.com", "a..example.com"),
        *("auth-.example.com", "auth.example.com", "auth-te-st.example.com"),
        *("127.0.0.1", "[::1]:80", "localhost"),
    ):
        for path in ("/", "", "/o", "/eq/o", "/v1/AUTH_test/eq/o", "/v1", "/v1/eq/o", "/info"):
            both("GET", path or "/?x=y", {"Host": host})


def read_only(both):
    """Nothing is set, so everything may be written."""
    for method in ("PUT", "POST", "DELETE"):
        both(method, A + "/ro")


def endpoints(both):
    """Where things are: only that somebody answers, since ports and partitions differ."""
    for path in ("", "v9/AUTH_test", "v1", "v1/", "v2/", "v9", "/AUTH_test"):
        for method in ("GET", "HEAD", "PUT"):
            both(method, "/endpoints/" + path, user=None)


def sync(both):
    """Container sync without realms."""
    both("PUT", A + "/sy")
    for value in ("http://x/y", "//a/b/c/d", "https://x/y", "", "x"):
        both("POST", A + "/sy", {"X-Container-Sync-To": value})
        both("PUT", A + "/sy", {"X-Container-Sync-To": value})
    for value in ("a b c", "a b", "", "a b c d"):
        for method, path in (("PUT", "/sy/o"), ("GET", "/sy"), ("GET", ""), ("GET", "/sy/o")):
            both(method, A + path, {"X-Container-Sync-Auth": value}, b"x" if method == "PUT" else None)
            both(
                method,
                A + path,
                {"X-Container-Sync-Auth": value},
                b"x" if method == "PUT" else None,
                user=None,
            )


def limited(both):
    """Accounts that are refused, and links that were narrowed."""
    for method in ("GET", "PUT", "DELETE"):
        both(method, "/v1/AUTH_black/c", user="admin:admin")
    both("GET", A + "/eq/o?temp_url_sig=" + "0" * 40 + "&temp_url_expires=9999999999", user=None)
    both("DELETE", A + "/eq/o?temp_url_sig=" + "0" * 64 + "&temp_url_expires=9999999999", user=None)
