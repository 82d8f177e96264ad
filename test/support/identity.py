"""An authentication filter that gives users rights by policies, for tests of what asks for them."""

import json

from swift.http import environkeys
from swift.http.response import error_response
from swift.identity.policy.document import parse_identity_policy
from swift.identity.policy.evaluate import PolicyVerdict
from swift.identity.policy.principals import user_principal
from swift.identity.policy.resources import resource_of
from swift.identity.policy.swiftrequests import SwiftContext, level_of, swift_access
from swift.identity.rights import AccessRequest, NamedPolicy, Rights
from swift.middleware.tempauth.filter import Tempauth


class RightsAuth(Tempauth):
    """Tempauth whose users have rights (``rights``, by name); ACLs decide after silent policies."""

    def __init__(self, *args):
        super().__init__(*args)
        self.rights = {}

    def _set_identity(self, request, groups):
        rights = self.rights.get(groups.split(",")[1])
        if rights is not None:
            request.env[environkeys.IDENTITY] = rights
        return super()._set_identity(request, groups)

    def serve(self, request, user, *groups):
        """Respond to a request of the Swift API by a user."""
        tenant = user.partition(":")[0]
        return self._set_identity(request, ",".join((tenant, user, *groups)))

    def authorise(self, request):
        """Return the denial of a request, None if it is allowed."""
        rights = request.env.get(environkeys.IDENTITY)
        if rights is None:
            return super().authorise(request)
        path = request.entity.path
        access = swift_access(request.method, level_of(path), request.params, request.headers)

        def verdict_on(actions):
            asked = AccessRequest(actions, path.account, SwiftContext(request, path), *resource_of(path))
            return rights.decide(asked, None).verdict

        verdict = verdict_on(access.actions)
        if verdict is PolicyVerdict.DENY:
            return error_response(403)
        if verdict is PolicyVerdict.SILENT:
            return super().authorise(request)
        if not access.owner_action or verdict_on((access.owner_action,)) is PolicyVerdict.ALLOW:
            request.env[environkeys.OWNER] = True
        return None


def named_policy(*statements, name="mine"):
    """Return a policy of an identity."""
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **one} for one in statements]}
    return NamedPolicy(name, parse_identity_policy(json.dumps(document)))


def rights_of(tenant, name, *policies, groups=(), **more):
    """Return the rights of a user."""
    account = f"AUTH_{tenant}"
    values = {"aws:username": name, "aws:userid": f"{tenant}:{name}", "aws:principaltype": "User"}
    principal = user_principal(tenant, name, account, groups)
    return Rights(principal, account, policies=policies, condition_values=values, **more)
