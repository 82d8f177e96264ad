"""A run's temporary folder is in memory, goes with the run, and stays on disk where memory cannot do."""

import os

from test.support.tmpfs import PREFIX, memory_folder


def test_a_folder_is_of_this_process_and_what_dead_ones_left_goes(tmp_path, monkeypatch):
    monkeypatch.delenv("SWIFT_TEST_TMP", raising=False)
    left, living = tmp_path / f"{PREFIX}999999999-x", tmp_path / f"{PREFIX}{os.getpid()}-x"
    for folder in (left, living):
        folder.mkdir()
    made = memory_folder(tmp_path)
    assert not left.exists() and living.exists()
    assert made is None or made.name.startswith(f"{PREFIX}{os.getpid()}-")


def test_where_there_is_no_memory_or_it_is_not_wanted_there_is_none(tmp_path, monkeypatch):
    monkeypatch.delenv("SWIFT_TEST_TMP", raising=False)
    assert memory_folder(tmp_path / "missing") is None
    monkeypatch.setenv("SWIFT_TEST_TMP", "disk")
    assert memory_folder(tmp_path) is None
