"""Requests of the query protocol, for STS and IAM, and their errors."""

from __future__ import annotations

import time
from collections.abc import Callable

from swift.gateway.documents import Conflict, StoreUnavailable
from swift.http.request import Request
from swift.http.response import Response
from swift.identity.admin.base import IdentityExists, InUse, NoSuchIdentity
from swift.identity.directory import Caller
from swift.identity.names import InvalidIdentity
from swift.identity.operations import Forbidden
from swift.identity.records import DamagedRecord
from swift.identity.turns import TooManyLogins
from swift.middleware.swiftauth import iam, sts
from swift.middleware.swiftauth.iam import Iam
from swift.middleware.swiftauth.query import (
    Query,
    QueryError,
    access_denied,
    error_response,
    read_form,
    respond,
)
from swift.middleware.swiftauth.service import IdentityService
from swift.middleware.swiftauth.sts import Sts


class QueryApi:
    """Serves the actions of both services."""

    def __init__(self, service: IdentityService, now: Callable[[], float] = time.time):
        self.sts = Sts(service, now)
        self._iam = Iam(service)
        self._log = service.log

    def serve(self, request: Request, caller: Caller | None, access_key: str) -> Response:
        """Respond to a form; ``access_key`` is empty for requests without a signature."""
        namespace = iam.NAMESPACE
        try:
            query = Query(read_form(request), caller, access_key, request)
            action = query.action
            if action in self.sts.handlers:
                namespace, handler = sts.NAMESPACE, self.sts.handlers[action]
            elif action in self._iam.handlers:
                handler = self._iam.handlers[action]
            else:
                raise QueryError("NotImplemented", f"the action {action[:64]!a} is not implemented", 501)
            if caller is None and access_key:
                raise QueryError("SignatureDoesNotMatch", "the access key or the signature is wrong", 403)
            if caller is None and action not in self.sts.unsigned:
                raise QueryError("MissingAuthenticationToken", "the request has no signature", 403)
            return respond(request, query, namespace, handler)
        except (QueryError, Forbidden, InvalidIdentity, Conflict, TooManyLogins) as error:
            return error_response(request, _query_error(error), namespace)
        except (StoreUnavailable, DamagedRecord) as error:
            self._log.error(f"an identity request is refused: {error}")
            code = "ServiceUnavailable" if isinstance(error, StoreUnavailable) else "InternalFailure"
            status = 503 if isinstance(error, StoreUnavailable) else 500
            return error_response(request, QueryError(code, "records cannot be read now", status), namespace)


_CODES = {
    NoSuchIdentity: ("NoSuchEntity", 404),
    IdentityExists: ("EntityAlreadyExists", 409),
    InUse: ("DeleteConflict", 409),
}


def _query_error(error: Exception) -> QueryError:
    if isinstance(error, QueryError):
        return error
    if isinstance(error, Forbidden):
        return access_denied(str(error))
    if isinstance(error, Conflict):
        return QueryError("ConcurrentModification", str(error), 409)
    if isinstance(error, TooManyLogins):
        return QueryError("Throttling", "too many passwords are verified now; try again", 429)
    assert isinstance(error, InvalidIdentity), "no other error is passed"
    code, status = _CODES.get(type(error), ("ValidationError", 400))
    if status == 400 and error.field in ("document", "trust"):
        code = "MalformedPolicyDocument"
    return QueryError(code, str(error), status)
