"""Where blocking calls run when there are no threads: where they are made."""

from __future__ import annotations

import threading

import pytest

from swift.store.calls import Effort, InlinePools


def test_without_threads_every_call_runs_where_it_is_made():
    pools = InlinePools()
    for run in (pools.run("sda"), pools.threads("sda"), pools.threads("sdb", Effort.AUDIT.value)):
        assert run(lambda *args: (threading.get_ident(), *args), 1, 2) == (threading.get_ident(), 1, 2)


def test_an_error_comes_to_who_called():
    with pytest.raises(ZeroDivisionError):
        InlinePools().run("sda")(lambda: 1 // 0)


def test_each_kind_of_long_call_has_a_purpose_of_its_own_so_that_none_waits_for_another():
    purposes = [effort.value for effort in Effort]
    assert len(set(purposes)) == len(purposes)
    assert Effort.LONG.value == "", "bodies have the threads that have no purpose"
