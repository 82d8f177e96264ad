"""Names of buckets and of the containers that belong to them."""

import pytest

from swift.s3.names import bucket_of, own_parts, segments_of


@pytest.mark.parametrize("kind", ["", "COLD", "STANDARD_IA"])
def test_a_container_of_parts_tells_its_bucket(kind):
    assert bucket_of(segments_of("bucket", kind)) == "bucket"


@pytest.mark.parametrize(
    "name",
    ["bucket", "bucket+", "+segments", "+COLD+segments", "b+cold+segments", "b+C+D+segments", "b+segmentsx"],
)
def test_any_other_container_belongs_to_itself(name):
    assert bucket_of(name) == name


def test_of_a_manifest_only_what_is_in_the_containers_of_its_bucket_is_its_own():
    names = [
        "/b+segments/k/id/1",
        "b+COLD+segments/k/id/1",
        "/b/k",
        "/c+segments/k/id/1",
        "/b+x+segments/k",
        "",
    ]
    assert own_parts("b", [{"name": name} for name in names] + [{"data": "AA=="}]) == [
        ("b+segments", "k/id/1"),
        ("b+COLD+segments", "k/id/1"),
    ]
