"""Watchers of the auditor see what is sound, ask for what they want, and harm nobody (replication.md §7)."""

import pytest

from swift.base.errors import ConfigError
from swift.obj.auditor.watchers import (
    DeleteRequest,
    QuarantineRequest,
    Watcher,
    Watchers,
    is_request,
    load_watchers,
)


class Log:
    """Keeps what is told of exceptions."""

    def __init__(self):
        self.told = []

    def exception(self, text, error):
        self.told.append((text, error))


class Recorder(Watcher):
    """Remembers its calls; raises what it is told to."""

    def __init__(self, raises=None):
        super().__init__({}, None)
        self.calls = []
        self.raises = raises

    def start(self, audit_type, **_more):
        self.calls.append(("start", audit_type))

    def see_object(self, object_metadata, data_file_path, **_more):
        self.calls.append(("see", data_file_path))
        object_metadata["name"] = "changed"
        if self.raises is not None:
            raise self.raises

    def end(self, **_more):
        self.calls.append(("end",))


def test_all_watchers_see_a_pass_and_its_objects():
    one, other = Recorder(), Recorder()
    watchers = Watchers({"one": one, "other": other}, Log())
    watchers.start("ALL")
    assert watchers.see({"name": "/a/c/o"}, "/path") is None
    watchers.end()
    assert one.calls == other.calls == [("start", "ALL"), ("see", "/path"), ("end",)]


def test_a_watcher_cannot_change_what_the_others_see():
    metadata = {"name": "/a/c/o"}
    Watchers({"one": Recorder()}, Log()).see(metadata, "/path")
    assert metadata == {"name": "/a/c/o"}


def test_the_first_request_counts_and_the_others_see_the_object_all_the_same():
    first, second = Recorder(QuarantineRequest("first")), Recorder(DeleteRequest("second"))
    log = Log()
    asked = Watchers({"first": first, "second": second}, log).see({}, "/path")
    assert str(asked) == "first"
    assert second.calls == [("see", "/path")]
    assert log.told == []


def test_a_watcher_that_fails_is_logged_and_harms_nobody():
    log, good = Log(), Recorder()
    watchers = Watchers({"bad": Recorder(ValueError("oops")), "good": good}, log)
    assert watchers.see({}, "/path") is None
    assert good.calls == [("see", "/path")]
    [(text, error)] = log.told
    assert "bad" in text and str(error) == "oops"


def test_requests_of_other_makers_are_known_by_their_name():
    foreign = type("QuarantineRequest", (Exception,), {})
    assert is_request(foreign())
    assert is_request(DeleteRequest())
    assert not is_request(ValueError())


def test_a_watcher_that_is_not_installed_is_named_with_those_that_are():
    with pytest.raises(ConfigError, match=r"no watcher 'nothing'; installed are .*dark_data"):
        load_watchers(["nothing"], lambda _name: {}, Log())


def test_no_watchers_are_none():
    assert not load_watchers([], lambda _name: {}, Log())
    assert Watchers({"one": Recorder()}, Log())
