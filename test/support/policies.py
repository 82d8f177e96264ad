"""Policies of a bucket called photos, callers, and what is known of a request."""

import json

from swift.identity.policy.document import parse_policy
from swift.identity.policy.evaluate import PolicyRequest, PolicyVerdict, evaluate_policy
from swift.identity.policy.principals import Principal

ANN = Principal("acme:ann", frozenset(("acme", "AUTH_acme")))
BOB = Principal("acme:bob", frozenset(("acme", "AUTH_acme")))
EVE = Principal("other:eve", frozenset(("other", "AUTH_other")))
KEY = Principal("0123abcd", frozenset(("AUTH_p1",)))
NOBODY = Principal()
ALLOW, DENY, SILENT = PolicyVerdict.ALLOW, PolicyVerdict.DENY, PolicyVerdict.SILENT


class Known:
    """Policy context with the test's values; records the requested keys."""

    def __init__(self, **values):
        self.found = {
            name.replace("__", ":"): v if isinstance(v, list) else [v] for name, v in values.items()
        }
        self.asked = []

    def with_(self, pairs):
        self.found.update({name: v if isinstance(v, list) else [v] for name, v in pairs.items()})
        return self

    def values(self, key):
        self.asked.append(key)
        return self.found.get(key)


def statement(effect="Allow", principal="*", action="s3:GetObject", resource="photos/*", **more):
    found = {"Effect": effect, "Action": action, "Resource": f"arn:aws:s3:::{resource}", **more}
    if "NotPrincipal" not in more:
        found["Principal"] = principal
    return found


def policy(*statements, version="2012-10-17"):
    return parse_policy(json.dumps({"Version": version, "Statement": list(statements)}), "photos")


def verdict(found, caller=BOB, action="s3:GetObject", key="k", facts=None):
    return evaluate_policy(found, PolicyRequest(caller, action, "photos", key, facts or Known())).verdict
