"""Requests as values: what their path names, and when that changes."""

import pytest

from swift.base.entity import Entity, EntityPath
from swift.http.request import Request


@pytest.mark.parametrize(
    ("raw_path", "version", "names"),
    [
        ("/v1/a", "v1", ("a",)),
        ("/v1/a/", "v1", ("a",)),
        ("/v1.0/a/c", "v1.0", ("a", "c")),
        ("/v1/a/c/", "v1", ("a", "c")),
        ("/v1/a/c/o", "v1", ("a", "c", "o")),
        ("/v1/a/c/o/", "v1", ("a", "c", "o/")),
        ("/v1/a/c//o", "v1", ("a", "c", "/o")),
        ("/v1/a%20b/%C3%A4%2Fo", "v1", ("a b", "\xe4", "o")),
    ],
)
def test_a_path_names_an_entity(raw_path, version, names):
    entity = Request("GET", raw_path).entity
    assert entity == Entity(version, EntityPath(*names))


@pytest.mark.parametrize("raw_path", ["", "/", "/v1", "/v1/", "//a", "/v1//c", "/v1/a//o", "/v1/%FF", "*"])
def test_other_paths_name_none(raw_path):
    assert Request("GET", raw_path).entity is None


def test_it_is_parsed_once_and_again_when_a_filter_rewrites_the_path():
    request = Request("GET", "/v1/a/c/o")
    assert request.entity is request.entity
    request.raw_path = "/v1/a/c"
    assert request.entity == Entity("v1", EntityPath("a", "c"))
    request.raw_path = "/healthcheck"
    assert request.entity is None


@pytest.mark.parametrize("names", [("a",), ("a", "c \xe4"), ("a", "c", "/o?%"), ("a", "c", "\0o")])
def test_an_entity_and_its_path_are_equal(names):
    entity = Entity("v1", EntityPath(*names))
    assert Request("GET", entity.raw_path).entity == entity


def test_a_name_needs_no_parsing_and_is_that_of_its_path():
    request = Request("GET", "/nothing")
    for names in (("a",), ("a:b", "c"), ("a", "c", "o/ü ?x"), ("a", "c", "/o/")):
        entity = Entity("v1", EntityPath(*names))
        request.set_entity(entity)
        assert request.entity is entity
        assert Entity.parse(request.raw_path) == entity
