"""Totals of a container against its rows."""

import pytest

from swift.base.timestamp import Timestamp
from swift.container.auditor import KIND, ContainerAuditorSettings, totals
from swift.container.rows import ObjectRow
from test.support.databases import make_container


@pytest.fixture
def broker(tmp_path):
    made = make_container(tmp_path)
    stamp = Timestamp(6).internal
    made.merge_rows(
        [
            ObjectRow("here", stamp, 3, "t/p", "e", 0, 0),
            ObjectRow("gone", stamp, 0, "t/p", "e", 1, 0),
            ObjectRow("there", stamp, 5, "t/p", "e", 0, 1),
        ]
    )
    made.info()
    yield made
    made.close()


def test_totals_that_are_those_of_the_rows_are_nothing_to_tell(broker):
    assert broker.read(totals) == []


def test_a_total_that_is_wrong_is_told_by_its_policy(broker):
    broker.write(
        lambda connection: (
            connection.execute(
                "UPDATE policy_stat SET object_count = 9 WHERE storage_policy_index = 1"
            ).rowcount
        )
    )
    assert broker.read(totals) == ["policy 1 counts (9, 5), its rows say (1, 5)"]


def test_a_database_is_looked_for_by_the_names_in_it(broker):
    assert KIND.names(broker) == ("a", "c")


def test_the_pace_of_a_pass_comes_from_the_options():
    schedule = ContainerAuditorSettings(interval=9, containers_per_second=7, report_interval=5).schedule
    assert (schedule.interval_s, schedule.report_interval_s) == (9, 5)
