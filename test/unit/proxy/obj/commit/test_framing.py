"""Footers are a dictionary that does not care about case."""

from swift.proxy.obj.commit.framing import Footers


def test_names_are_found_in_any_case():
    footers = Footers({"X-Object-Meta-A": "1"})
    footers["ETAG"] = "e"
    footers.update({"X-Object-Meta-A": "2"})
    footers.setdefault("x-object-meta-b", 3)
    assert footers == {"x-object-meta-a": "2", "etag": "e", "x-object-meta-b": "3"}
    assert footers["Etag"] == footers.get("eTag") == "e"
    assert "X-OBJECT-META-A" in footers and 5 not in footers
    assert footers.pop("ETag") == "e" and footers.pop("etag", None) is None
    del footers["X-Object-Meta-B"]
    assert list(footers) == ["x-object-meta-a"]
