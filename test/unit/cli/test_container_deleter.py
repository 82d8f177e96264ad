"""swift-container-deleter: objects get tasks in the expirer's queue, and errors are reported."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cli import container_deleter
from swift.gateway.internal_client import UnexpectedResponse
from test.support.peer import SWIFT_CONF, run


class Client:
    """An internal client whose container has ``names``; queues exist once they are created."""

    def __init__(self, names, there, fail_at):
        self.names, self.there, self.fail_at = names, set(there), fail_at
        self.asked, self.created, self.said = [], [], []

    def objects(self, account, container, **limits):
        assert (account, container) == ("AUTH_a", "c")
        self.said.append(limits)
        return ({"name": name} for name in self.names)

    @contextmanager
    def request(self, method, path, headers, content, *, accept=(2,)):
        rows = json.loads(content)
        self.asked.append((method, path.container, [row["name"] for row in rows], sorted(headers.items())))
        if self.fail_at and len(self.asked) >= self.fail_at:
            raise UnexpectedResponse(method, path, 503, "no")
        yield SimpleNamespace(is_success=path.container in self.there)

    def create(self, path):
        self.created.append(path.container)
        self.there.add(path.container)


def delete(names, *, there=(), batch=1000, fail_at=0):
    client = Client(names, there, fail_at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container_deleter, "BATCH", batch)
        try:
            result = container_deleter.enqueue_listing(
                client,
                PathHasher(b"", b"s"),
                EntityPath("AUTH_a", "c"),
                Timestamp("1795000000.00000"),
                say=client.said.append,
                prefix="p",
            )
        except UnexpectedResponse as error:
            result = str(error)
    return result, client.asked, client.created, client.said


def test_every_object_has_one_task_with_the_time_of_the_order():
    result, asked, created, _said = delete(["a", "b/c", "ü\n"])
    tasks = [name for _method, queue, names, _headers in asked if queue in created for name in names]
    assert result == 3
    assert sorted(set(tasks)) == [f"1795000000.00000-AUTH_a/c/{name}" for name in ("a", "b/c", "ü\n")]


def test_a_queue_that_is_not_there_is_made_and_asked_again():
    _result, asked, created, _said = delete(["a"])
    assert len(created) == 1 and [queue for _method, queue, *_ in asked] == created * 2
    again = delete(["a"], there=created)
    assert again[2] == [] and len(again[1]) == 1
    assert again[1][0][0] == "UPDATE"


def test_nothing_to_delete_asks_nobody():
    assert delete([]) == (0, [], [], [{"prefix": "p"}])


def test_where_a_failure_stopped_it_is_told_for_the_next_run():
    _, first, created, _ = delete(["a", "b"], batch=1)
    result, _asked, _created, said = delete(["a", "b"], batch=1, there=created, fail_at=2)
    assert "503" in str(result)
    assert said[-1] == "Marked 1 objects for deletion, through 'a'"
    assert len(first) >= 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["AUTH_a", "c/o"], "'c/o' is no name of an account or container"),
        (["AUTH_a", ""], "'' is no name"),
        (["a/b", "c"], "'a/b' is no name"),
        (["a", "c", "--timestamp", "yesterday"], "'yesterday' is no timestamp"),
        (["a", "c", "--config", "/nonexistent/x.conf"], "/nonexistent/x.conf"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path, words, text):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    done = run("swift-container-deleter", *words)
    assert done.returncode == 1 and text in done.stderr and done.stderr.count("\n") == 1
