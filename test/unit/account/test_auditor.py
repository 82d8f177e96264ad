"""Totals of an account against its rows, and against those of its policies."""

from __future__ import annotations

import pytest

from swift.account.auditor import KIND, AccountAuditorSettings, totals
from swift.account.rows import ContainerRow
from swift.base.timestamp import Timestamp
from swift.db.broker import Engine
from test.support.databases import make_account


@pytest.fixture
def broker(tmp_path):
    made = make_account(tmp_path)
    stamp, later = Timestamp(6).internal, Timestamp(7).internal
    made.put_rows(
        [
            ContainerRow("here", stamp, "0", 2, 10, 0, 0),
            ContainerRow("gone", stamp, later, 0, 0, 1, 0),
            ContainerRow("there", stamp, "0", 3, 5, 0, 1),
        ]
    )
    made.info()
    yield made
    made.close()


def change(broker, *statements):
    for statement in statements:
        broker.write(lambda connection, text=statement: connection.execute(text).rowcount)


def test_totals_that_are_those_of_the_rows_are_nothing_to_tell(broker):
    assert broker.read(totals) == []


def test_an_account_without_rows_has_nothing_to_tell(broker):
    change(broker, "DELETE FROM container")
    assert broker.read(totals) == []
    change(broker, "DELETE FROM policy_stat")
    assert broker.read(totals) == [], "a policy that is not counted has nothing"


def test_a_policy_s_total_that_is_wrong_is_told_and_that_the_account_s_is_another(broker):
    change(broker, "UPDATE policy_stat SET object_count = 9 WHERE storage_policy_index = 1")
    assert broker.read(totals) == [
        "policy 1 counts (1, 9, 5), its rows say (1, 3, 5)",
        "the account counts (2, 5, 15), its policies (2, 11, 15)",
    ]


def test_an_account_s_total_that_is_wrong_is_told_although_its_policies_are_right(broker):
    change(broker, "UPDATE account_stat SET bytes_used = NULL")
    assert broker.read(totals) == ["the account counts (2, 5, None), its policies (2, 5, 15)"]


def test_rows_of_a_policy_that_nobody_counted_are_told(broker):
    change(broker, "DELETE FROM policy_stat WHERE storage_policy_index = 1")
    assert broker.read(totals)[0] == "policy 1 counts (0, 0, 0), its rows say (1, 3, 5)"


def test_a_database_is_looked_for_by_the_name_in_it(broker):
    found = KIND.open_found(broker.place, Engine())
    assert KIND.names(found) == ("a",)
    found.close()


def test_the_pace_of_a_pass_comes_from_the_options():
    schedule = AccountAuditorSettings(interval=9, accounts_per_second=7, report_interval=5).schedule
    assert (schedule.interval_s, schedule.units_per_second, schedule.report_interval_s) == (9, 7, 5)
