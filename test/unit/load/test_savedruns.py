"""A run is read back from its JSON as it was; what is no run is refused in one line."""

import json

import pytest

from swift.load.savedruns import BadResult, parse_saved_run, read_saved_run
from swift.load.summary import operation_rows, phase_costs, to_json
from test.unit.load.test_summary import result_of, run_of, usage


def test_a_saved_run_is_the_run(tmp_path):
    run = run_of(result_of(errors=["503"]), usage())
    (tmp_path / "r.json").write_text(json.dumps(to_json(run, 2.0)))
    saved = read_saved_run(tmp_path / "r.json")
    assert saved.rows == operation_rows(run) and saved.costs == phase_costs(run, 2.0)
    assert saved.phases[0].result.to_json() == run.phases[0].result.to_json()
    assert (saved.workload, saved.is_interrupted) == ("w", False)


def damaged():
    found = to_json(run_of(result_of()), None)
    for name in ("workload", "rows", "costs", "phases", "interrupted"):
        yield {key: value for key, value in found.items() if key != name}
    for name in ("rows", "costs", "phases"):
        for wrong in (None, 7, "x", {}, [7], [{}], [{"unknown": 1}]):
            yield {**found, name: wrong}
    phase = found["phases"][0]
    for name, wrong in (("clients", "many"), ("rate", []), ("measured", {}), ("measured", None)):
        yield {**found, "phases": [{**phase, name: wrong}]}
    (row,) = found["rows"]
    for name, wrong in (("per_second", "x"), ("count", None), ("p99_ms", []), ("phase", 7), ("errors", {})):
        yield {**found, "rows": [{**row, name: wrong}]}


@pytest.mark.parametrize("found", list(damaged()))
def test_a_file_that_is_no_result_is_refused_and_named(tmp_path, found):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(found))
    with pytest.raises(BadResult, match=r"r\.json: no result of swift-load"):
        read_saved_run(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"7", b"[" * 100_000])
def test_a_file_that_is_not_even_json_is_refused(tmp_path, content):
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(BadResult, match=r"r\.json: "):
        read_saved_run(tmp_path / "r.json")
    with pytest.raises(BadResult, match="cannot be read"):
        read_saved_run(tmp_path)


def test_a_run_that_is_no_mapping_is_a_type_error():
    with pytest.raises(TypeError):
        parse_saved_run([])
