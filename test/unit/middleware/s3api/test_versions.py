"""Names of versions."""

import pytest

from test.support.s3_fixtures import code_of


@pytest.mark.parametrize("version", ["odd", "1e999", "..", "%00", "-1.5", "1700000000.00000_x"])
def test_what_no_version_is_called_is_an_invalid_argument(front, version):
    front("PUT", "/bucket/key", {}, b"x")
    for method, path in (
        ("GET", "/bucket/key?"),
        ("DELETE", "/bucket/key?"),
        ("GET", "/bucket/key?tagging&"),
    ):
        answer = front(method, f"{path}versionId={version}")
        assert code_of(answer) == "InvalidArgument"
    source = {"x-amz-copy-source": f"/bucket/key?versionId={version}"}
    assert code_of(front("PUT", "/bucket/copy", source)) == "InvalidArgument"
    assert set(front.store.objects) == {("bucket", "key")}
