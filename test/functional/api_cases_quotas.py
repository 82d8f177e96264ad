"""Requests about quotas of containers and accounts."""

A = "/v1/AUTH_test"
B = "/v1/AUTH_quota"
ADMIN = "admin:admin"
OWNER = "test2:tester2"


def send_quotas(both):
    """Send every case."""
    both("PUT", A + "/cq", {"X-Container-Meta-Quota-Bytes": "10", "X-Container-Meta-Quota-Count": "3"})
    for value in ("x", "-1", "1.5", "", " 5", "+5", "9" * 26, "0x5", "10"):
        both("POST", A + "/cq", {"X-Container-Meta-Quota-Bytes": value})
        both("PUT", A + "/cq", {"X-Container-Meta-Quota-Bytes": value})
    both("POST", A + "/cq", {"X-Container-Meta-Quota-Count": "x"})
    both("POST", A + "/cq", {"X-Container-Meta-Quota-Bytes": "x", "X-Container-Meta-Quota-Count": "x"})
    both("PUT", A + "/cqn", {"X-Container-Meta-Quota-Count": "x"})
    for user in ("test:tester", "test:tester3", OWNER, None):
        both("PUT", A + "/cq/a", body=b"x" * 11, user=user)
        both("POST", A + "/cq/a", {"X-Object-Meta-A": "1"}, user=user)
    both("PUT", A + "/cq/a", body=b"x" * 10)
    both("PUT", A + "/cqnone/a", body=b"x" * 11)
    both("POST", A + "/cq", {"X-Container-Meta-Quota-Bytes": "0"})
    both("PUT", A + "/cq/a", body=b"x")
    both("PUT", A + "/cq/a", body=b"")
    both("POST", A + "/cq", {"X-Container-Meta-Quota-Bytes": "", "X-Container-Meta-Quota-Count": "0"})
    both("PUT", A + "/cq/a", body=b"")
    both("POST", A + "/cq", {"X-Remove-Container-Meta-Quota-Count": "x"})
    both("PUT", A + "/cq/a", body=b"x" * 11)
    accounts(both)


def accounts(both):
    """Quotas of accounts."""
    both("PUT", B, user=ADMIN)
    for name in (
        "X-Account-Quota-Bytes",
        "X-Account-Quota-Count",
        "X-Account-Meta-Quota-Bytes",
        "X-Account-Quota-Count-Policy-eC",
        "X-Account-Quota-Bytes-Policy-None",
        "X-Account-Meta-Quota-Count",
        "X-Remove-Account-Quota-Count",
        "X-Remove-Account-Quota-Count-Policy-Ec",
        "X-Remove-Account-Meta-Quota-Bytes",
    ):
        for value in ("1000", "x", "", "-1", "9" * 26, "1000"):
            both("POST", B, {name: value}, user=ADMIN)
            both("POST", "/v1/AUTH_test2", {name: value}, user=OWNER)
        both("HEAD", B, user=ADMIN)
    both("GET", B, user=ADMIN)
    both("PUT", B, {"X-Account-Quota-Bytes": "77"}, user=ADMIN)
    both("PUT", B, {"X-Account-Quota-Bytes": "x"}, user=ADMIN)
    both("POST", B + "/c", {"X-Account-Quota-Bytes": "x"}, user=ADMIN)
    both("PUT", "/v1/AUTH_test2/c", {"X-Account-Quota-Bytes": "x"}, user=OWNER)
    both("POST", "/v1/AUTH_test2", {"X-Account-Quota-Bytes": "10"}, user=ADMIN)
    for user in (OWNER, "test:tester", None):
        both("PUT", "/v1/AUTH_test2/c/a", body=b"x" * 11, user=user)
    both("PUT", "/v1/AUTH_test2/c/a", body=b"x" * 10, user=OWNER)
    both("PUT", "/v1/AUTH_test2/none/a", body=b"x" * 11, user=OWNER)
    both("PUT", "/v1/AUTH_test2/c/a", body=b"x" * 11, user=ADMIN)
    sent = {"X-Account-Quota-Bytes": "", "X-Account-Quota-Count": "0"}
    both("POST", "/v1/AUTH_test2", sent, user=ADMIN)
    both("PUT", "/v1/AUTH_test2/c/b", body=b"", user=OWNER)
    sent = {"X-Remove-Account-Quota-Count": "1", "X-Account-Meta-Quota-Bytes": "5"}
    both("POST", "/v1/AUTH_test2", sent, user=ADMIN)
    both("PUT", "/v1/AUTH_test2/c/b", body=b"x" * 6, user=OWNER)
    sent = {"X-Account-Meta-Quota-Bytes": ""}
    both("POST", "/v1/AUTH_test2", sent, user=ADMIN)
    both("PUT", "/v1/AUTH_test2/e", {"X-Storage-Policy": "ec"}, user=OWNER)
    both("POST", "/v1/AUTH_test2", {"X-Account-Quota-Bytes-Policy-ec": "5"}, user=ADMIN)
    for container in ("c", "e"):
        both("PUT", f"/v1/AUTH_test2/{container}/b", body=b"x" * 6, user=OWNER)
    both("POST", "/v1/AUTH_test2", {"X-Remove-Account-Quota-Bytes-Policy-ec": "5"}, user=ADMIN)
    both("PUT", "/v1/AUTH_test2/e/b", body=b"x" * 6, user=OWNER)
