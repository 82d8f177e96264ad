"""References to parts in objects and versions; the lifecycle daemon keeps these parts."""

import json

import pytest

from swift.http import fields
from swift.middleware.slo.filter import Slo
from swift.middleware.slo.settings import SloSettings
from swift.s3.api.partreferences import find_part_references
from swift.telemetry.log import silent_log
from test.support.s3_fixtures import BUCKET, LifecycleFixture


@pytest.fixture
def bench(sim, tmp_path):
    made = LifecycleFixture(sim, tmp_path / "rig")
    made.set_rules()
    return made


def test_an_object_names_its_parts_and_no_others(bench):
    bench.put_large("o", upload="id")
    named = find_part_references(bench.client, BUCKET, "o", "id")
    assert named == {("b+segments", "o/id/1"), ("b+segments", "o/id/2")}
    assert find_part_references(bench.client, BUCKET, "o", "other") == set()


def test_a_manifest_without_an_upload_id_is_read(bench):
    bench.put_large("o", upload="id")
    manifest = [{"path": "/b+segments/o/id/1"}]
    with bench.client.request(
        "PUT", BUCKET._replace(obj="o"), {}, json.dumps(manifest).encode(), query="multipart-manifest=put"
    ):
        pass
    assert find_part_references(bench.client, BUCKET, "o", "id") == {("b+segments", "o/id/1")}


@pytest.mark.parametrize("header", [fields.SYSMETA_VERSIONS_LOCATION, fields.SYSMETA_VERSIONS_CONTAINER])
def test_references_are_unknown_without_versions_in_the_pipeline(bench, header):
    bench.pipeline = Slo(bench.sim.app, SloSettings(), bench.sim.hasher, None, silent_log())
    assert bench.sim("POST", "/a/b", {header: "old"}).status == 204
    assert find_part_references(bench.client, BUCKET, "o", "id") is None
