"""What a container tells account servers, and what it makes of their answers (account-container.md §12)."""

import pytest

from swift.base.entity import EntityPath
from swift.cluster.transport import BackendResponse, TransportError
from swift.container.accounts import AccountResponse, AccountUpdater, ContainerSettings, split_host
from swift.container.broker import ContainerFacts
from swift.dbserver.app import StorageTarget
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.daemons import ErrorLog


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("10.0.0.1:6202", ("10.0.0.1", 6202)), ("[::1]:6202", ("::1", 6202)), ("node:1", ("node", 1))],
)
def test_a_host_has_an_address_and_a_port(host, wanted):
    assert split_host(host) == wanted


@pytest.mark.parametrize("host", ["", "10.0.0.1", "10.0.0.1:", "10.0.0.1:x", "10.0.0.1:-1", ":²"])
def test_anything_else_is_no_host(host):
    with pytest.raises(ValueError, match="not an address with a port"):
        split_host(host)


class Accounts:
    """A transport whose answers a test scripts by port."""

    def __init__(self, answers):
        self.answers = answers
        self.requests = []

    def request(self, request):
        ip, port = request.node.ip, request.node.port
        method, path, headers = request.method, request.path, request.headers
        self.requests.append((ip, port, method, path, dict(headers)))
        answer = self.answers.get(port, 201)
        if isinstance(answer, TransportError):
            raise answer
        return BackendResponse(answer)


INFO = ContainerFacts(
    *("AUTH_a", "c", "1", "2.00000", "0", "1", 3, 40, "0", "0", 0, 0, "h", "id", {}, -1, -1, 1, "unsharded")
)
TARGET = StorageTarget("sdb", "7", EntityPath("AUTH_a", "c"))


def report(answers, *, times=1, log=None, **changes):
    """The last outcome, and the requests that were made, of two account servers."""
    headers = {
        "x-account-host": "10.0.0.1:6201, 10.0.0.2:6202",
        "x-account-device": "sda, sdb",
        "x-account-partition": "9",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    accounts = Accounts(answers)
    context = BackendContext(
        devices=Devices("/srv", mount_check=False),
        transport=accounts,
        telemetry=Telemetry(log or silent_log()),
    )
    updater = AccountUpdater(context, ContainerSettings())
    request = Request("PUT", "/sdb/7/AUTH_a/c", {k: v for k, v in headers.items() if v is not None})
    for _ in range(times):
        outcome = updater.report(request, TARGET, INFO)
    return outcome, accounts.requests


def test_every_named_server_is_told_of_the_counts():
    outcome, asked = report({})
    assert outcome is AccountResponse.TOLD
    assert sorted((ip, port, method, path) for ip, port, method, path, _headers in asked) == [
        ("10.0.0.1", 6201, "PUT", "/sda/9/AUTH_a/c"),
        ("10.0.0.2", 6202, "PUT", "/sdb/9/AUTH_a/c"),
    ]
    told = asked[0][4]
    assert (told["x-object-count"], told["x-bytes-used"], told["x-put-timestamp"]) == ("3", "40", "2.00000")
    assert told["x-backend-storage-policy-index"] == "1"
    assert "x-account-override-deleted" not in told


def test_only_when_all_say_404_there_is_no_account():
    assert report({6201: 404, 6202: 404})[0] is AccountResponse.ALL_MISSING
    for other in (201, 503, TransportError("refused")):
        assert report({6201: 404, 6202: other})[0] is AccountResponse.TOLD


def test_a_server_that_cannot_be_asked_is_left_to_the_updater():
    assert report({6201: TransportError("refused"), 6202: 507})[0] is AccountResponse.TOLD
    outcome, asked = report({}, x_account_host="nonsense, 10.0.0.2:6202")
    assert (outcome, len(asked)) == (AccountResponse.TOLD, 1)


def test_servers_that_fail_are_told_of_once_not_with_every_container():
    log = ErrorLog()
    report({6201: TransportError("refused"), 6202: 507}, times=3, log=log)
    assert [line.partition("later): ")[2] for line in sorted(log.sentences)] == [
        "Response 507 ",
        "refused",
    ]


@pytest.mark.parametrize("missing", [["x_account_partition"], ["x_account_host", "x_account_device"]])
def test_without_a_place_nobody_is_told(missing):
    assert report({}, **dict.fromkeys(missing)) == (AccountResponse.TOLD, [])


def test_lists_that_do_not_fit_together_are_400():
    with pytest.raises(HTTPError) as raised:
        report({}, x_account_device="sda")
    assert raised.value.response.status == 400


def test_an_override_is_passed_on():
    _outcome, asked = report({}, x_account_override_deleted="yes")
    assert asked[0][4]["x-account-override-deleted"] == "yes"
