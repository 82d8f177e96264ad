"""ListBuckets: owners, pages, and containers that are no buckets."""

import pytest

from test.support.s3_fixtures import OTHER, SECOND, S3Cluster


@pytest.fixture
def many(s3):
    for name in ("aa1", "aa2", "aa3", "zz1"):
        assert s3("PUT", f"/{name}").status == 200
    return s3


def test_buckets_are_listed_with_their_owner(many):
    response = many("GET", "/")
    assert response.texts("Name") == ["aa1", "aa2", "aa3", "bucket", "zz1"]
    assert response.texts("ID") == ["test:tester"]


def test_a_page_continues_after_the_previous_one(many):
    first = many("GET", "/?max-buckets=2&prefix=aa")
    assert (first.texts("Name"), first.texts("Prefix")) == (["aa1", "aa2"], ["aa"])
    [token] = first.texts("ContinuationToken")
    rest = many("GET", f"/?prefix=aa&continuation-token={token}")
    assert (rest.texts("Name"), rest.texts("ContinuationToken")) == (["aa3"], [])


def test_a_last_page_that_is_exactly_full_has_no_token(many):
    assert many("GET", "/?max-buckets=5").texts("ContinuationToken") == []


def test_containers_that_are_no_buckets_are_not_listed_or_counted(many):
    for name in ("AA", "a", "aa%2Bsegments", "aa_1"):
        assert many.sim("PUT", f"/AUTH_test/{name}").status == 201
    assert many("GET", "/?max-buckets=5").texts("Name") == ["aa1", "aa2", "aa3", "bucket", "zz1"]


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "%D9%A1", "9" * 5000])
def test_an_invalid_page_size_is_refused(s3, text):
    response = s3("GET", f"/?max-buckets={text}")
    assert response.code == "InvalidArgument"


@pytest.mark.parametrize("query", ["prefix=%FF", "continuation-token=%FF"])
def test_parameters_with_invalid_utf_8_are_refused(s3, query):
    assert s3("GET", f"/?{query}").code == "InvalidArgument"


@pytest.fixture
def owners(sim):
    """Return the API with s3_acl; two administrators of one account have buckets."""

    def make(**options):
        world = S3Cluster(sim, s3_acl="true", **options)
        for name in ("mine1", "mine2", "mine3"):
            assert world("PUT", f"/{name}").status == 200
        assert world("PUT", "/mine2x", **SECOND).status == 200
        assert world.sim("PUT", "/AUTH_test/swift").status == 201
        return world

    return make


def test_administrators_list_only_their_own_buckets(owners):
    s3 = owners(check_bucket_owner="true")
    assert s3("GET", "/").texts("Name") == ["mine1", "mine2", "mine3"]
    assert s3("GET", "/", **SECOND).texts("Name") == ["mine2x"]
    first = s3("GET", "/?max-buckets=2")
    assert first.texts("Name") == ["mine1", "mine2"]
    [token] = first.texts("ContinuationToken")
    rest = s3("GET", f"/?continuation-token={token}")
    assert (rest.texts("Name"), rest.texts("ContinuationToken")) == (["mine3"], [])


def test_without_the_option_an_administrator_sees_the_whole_account(owners):
    assert owners()("GET", "/", **SECOND).texts("Name") == ["mine1", "mine2", "mine2x", "mine3", "swift"]


@pytest.mark.parametrize("option", ["true", "false"])
def test_a_user_without_rights_in_the_account_lists_its_own_buckets(owners, option):
    s3 = owners(check_bucket_owner=option)
    response = s3("GET", "/", **OTHER)
    assert (response.status, response.texts("Name")) == (200, [])
    given = {"x-container-sysmeta-s3api-acl": '{"Owner":"test:tester3","Grant":[]}'}
    assert s3.sim("POST", "/AUTH_test/mine3", given).status == 204
    s3.sim.cache.values.clear()
    assert s3("GET", "/", **OTHER).texts("Name") == ["mine3"]
    assert s3("GET", "/", user="test:tester3", secret="wrong").code == "SignatureDoesNotMatch"


def test_without_s3_acl_only_rights_in_the_account_count(sim):
    s3 = S3Cluster(sim, check_bucket_owner="true")
    s3("PUT", "/bucket")
    assert s3("GET", "/", **SECOND).texts("Name") == ["bucket"]
    assert s3("GET", "/", **OTHER).code == "AccessDenied"


@pytest.mark.long
def test_the_cost_of_a_page_of_buckets_depends_on_its_size(s3):
    for number in range(200):
        s3.sim("PUT", f"/AUTH_test/b{number:03}")
    rows = []

    def instead(request):
        if request.method == "GET" and request.entity.path == ("AUTH_test", None, None):
            rows.append(int(request.params.get("limit", 10000)))

    s3.bottom.instead = instead
    assert s3("GET", "/?max-buckets=3").texts("Name") == ["b000", "b001", "b002"]
    # One of the two requests is for the hidden containers of versions.
    assert len(rows) == 2 and max(rows) <= 16
    rows.clear()
    assert len(s3("GET", "/?max-buckets=100").texts("Name")) == 100
    assert len(rows) == 2 and max(rows) <= 202
