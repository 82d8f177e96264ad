"""ListBuckets: what is a bucket, in pages."""

import pytest


@pytest.fixture
def many(s3):
    for name in ("aa1", "aa2", "aa3", "zz1"):
        assert s3("PUT", f"/{name}").status == 200
    return s3


def test_buckets_are_listed_with_their_owner(many):
    answer = many("GET", "/")
    assert answer.texts("Name") == ["aa1", "aa2", "aa3", "bucket", "zz1"]
    assert answer.texts("ID") == ["test:tester"]


def test_a_page_goes_on_where_the_last_one_ended(many):
    first = many("GET", "/?max-buckets=2&prefix=aa")
    assert (first.texts("Name"), first.texts("Prefix")) == (["aa1", "aa2"], ["aa"])
    [token] = first.texts("ContinuationToken")
    rest = many("GET", f"/?prefix=aa&continuation-token={token}")
    assert (rest.texts("Name"), rest.texts("ContinuationToken")) == (["aa3"], [])


def test_a_page_that_is_just_full_is_the_last(many):
    assert many("GET", "/?max-buckets=5").texts("ContinuationToken") == []


def test_containers_that_are_no_buckets_are_not_shown_and_take_no_place(many):
    for name in ("AA", "a", "aa%2Bsegments", "aa_1"):
        assert many.sim("PUT", f"/AUTH_test/{name}").status == 201
    assert many("GET", "/?max-buckets=5").texts("Name") == ["aa1", "aa2", "aa3", "bucket", "zz1"]


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "%D9%A1", "9" * 5000])
def test_a_page_has_a_size(s3, text):
    answer = s3("GET", f"/?max-buckets={text}")
    assert answer.code == "InvalidArgument"


@pytest.mark.parametrize("query", ["prefix=%ff", "continuation-token=%ff"])
def test_what_is_no_text_is_refused(s3, query):
    assert s3("GET", f"/?{query}").code == "InvalidURI"
