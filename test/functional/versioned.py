"""Requests that many cases about versioned containers share."""

A = "/v1/AUTH_test"
OTHER = "test2:tester2"
RESERVED = {"X-Allow-Reserved-Names": "true"}


def put(both, path, body=b"x", headers=None, **who):
    """PUT an object; return the id of its version."""
    return both("PUT", A + path, headers, body, **who).headers.get("x-object-version-id", "none")


def looked_at(both, path, **who):
    """Send GET and HEAD."""
    for method in ("GET", "HEAD"):
        both(method, A + path, **who)


def rows_of(both, container):
    """List versions, objects and hidden objects."""
    both("GET", f"{A}/{container}?versions&format=json")
    both("GET", f"{A}/{container}?format=json")
    both("HEAD", f"{A}/{container}")
    both("GET", f"{A}/%00versions%00{container}?format=json", RESERVED)
