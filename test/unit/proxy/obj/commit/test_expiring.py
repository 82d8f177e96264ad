"""The expirer ends nothing that was written since (412), whatever single nodes have."""

from types import SimpleNamespace

import pytest

from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse, NodeRequest, NodeTimeouts
from swift.http.response import HTTPError
from swift.proxy.obj.commit.stored import IF_DELETE_AT, check_expiry_unchanged

TARGET = SimpleNamespace(policy=SimpleNamespace(index=0), part=1, path="/a/c/o")


class Nodes:
    """Answers of nodes by number; None: it cannot be reached."""

    def __init__(self, *answers):
        self.responses = answers

    def make_request(self, node, part, method, path, headers):
        return NodeRequest(node, method, "", headers, b"", NodeTimeouts(1.0, 1.0))

    def request(self, request):
        assert request.method == "HEAD"
        assert request.headers["x-backend-open-expired"] == "true", "what has expired must be seen"
        return self.responses[request.node]


def has(at, delete_at=None, *, status=200, posted=None):
    headers = {"x-backend-data-timestamp" if status == 200 else "x-backend-timestamp": Timestamp(at).internal}
    if posted:
        headers["x-backend-timestamp"] = Timestamp(posted).internal
    if delete_at is not None:
        headers["x-delete-at"] = str(delete_at)
    return BackendResponse(status, headers, b"")


def check(*answers, moment="100"):
    check_expiry_unchanged(Nodes(*answers), TARGET, range(len(answers)), {IF_DELETE_AT: moment})


def refused(*answers, **given):
    with pytest.raises(HTTPError) as found:
        check(*answers, **given)
    return found.value.response.status == 412


def test_what_is_to_expire_then_may_end():
    check(has(1, 100), has(1, 100), None)


def test_a_newer_version_that_one_node_has_is_not_ended():
    assert refused(has(1, 100), has(1, 100), has(2))
    assert refused(has(1, 100), has(2, 200), None)


def test_newer_metadata_that_one_node_has_counts_as_well():
    assert refused(has(1, 100), has(1, 300, posted=2))
    check(has(1, 300), has(1, 100, posted=2))


def test_a_newer_tombstone_is_no_reason_against_it():
    check(has(1, 100), has(3, status=404))


def test_where_nobody_has_it_or_answers_nodes_decide():
    check(None, None)
    check(BackendResponse(503, {}, b""))
    check(BackendResponse(200, {"x-backend-data-timestamp": "nonsense"}, b""))


@pytest.mark.parametrize("moment", ["", "soon", "nan", "inf", "1_0", "1" * 31])
def test_a_moment_that_is_none_is_left_to_object_servers(moment):
    check(has(2), moment=moment)
