"""Where accounts, containers and objects live."""

import hashlib

import pytest

from swift.base.hashing import PathHasher


def test_a_path_stands_between_the_prefix_and_the_suffix_of_the_cluster():
    hasher = PathHasher(b"start", b"end")
    for names in (("a",), ("a", "c"), ("a", "c", "o/p")):
        expected = hashlib.md5(b"start/" + "/".join(names).encode() + b"end").digest()
        assert hasher.digest(*names) == expected
        assert hasher.hexdigest(*names) == expected.hex()


def test_names_that_are_no_utf8_hash_as_the_bytes_they_came_as():
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert PathHasher().digest("a", name) == hashlib.md5(b"/a/\xff\xfe").digest()


def test_an_object_without_a_container_has_no_place():
    with pytest.raises(ValueError, match="needs a container"):
        PathHasher().digest("a", None, "o")


def test_the_secrets_of_a_cluster_are_not_shown():
    assert "hidden-in" not in repr(PathHasher(b"hidden-in", b"hidden-in"))
