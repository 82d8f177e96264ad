"""Unreachable primaries cause 503: a 404 of handoffs proves nothing."""

import contextlib

import pytest

ALL = range(1, 7)


@pytest.fixture(params=["replicated", "coded"])
def sim(request, make_sim):
    """A cluster with an object of either kind of policy."""
    cluster = make_sim(log_handoffs=False)
    policy = {"x-storage-policy": "ec32"} if request.param == "coded" else {}
    assert cluster("PUT", "/a/c", policy).status == 201
    assert cluster("PUT", "/a/c/o", {}, b"body").status == 201
    cluster.policy = 1 if policy else 0
    cluster.cache.values.clear()
    return cluster


@contextlib.contextmanager
def unavailable(sim, how, kind, *names):
    """Make the primaries of an entity unavailable."""
    nodes = sim.primaries(kind, *names, policy=sim.policy)
    with contextlib.ExitStack() as stack:
        if how == "refused":
            stack.enter_context(sim.refusing(kind, *nodes))
        elif how == "avoided":
            sim.avoid(kind, *nodes)
            stack.enter_context(sim.refusing(kind, *nodes))
        else:
            stack.enter_context(sim.responding(kind, how, *nodes))
        yield
    sim.clear_node_errors()


@pytest.fixture(params=["refused", "avoided", 500, 507])
def how(request):
    return request.param


def statuses(sim, path, *methods):
    """Return the statuses of two requests per method; the second one may find nodes avoided."""
    return {method: [sim(method, path).status for _ in range(2)] for method in methods}


def all_503(*methods):
    return {method: [503, 503] for method in methods}


def test_unavailable_objects_are_503(sim, how):
    methods = ("GET", "HEAD", "POST")
    with unavailable(sim, how, "object", "a", "c", "o"):
        assert statuses(sim, "/a/c/o", *methods) == all_503(*methods)
    assert sim("GET", "/a/c/o").body == b"body"


@pytest.mark.parametrize("concurrent", [False, True])
def test_unavailable_objects_are_503_with_concurrent_gets(make_sim, how, concurrent):
    sim = make_sim(log_handoffs=False, concurrent_gets=concurrent, concurrency_timeout=0.01)
    sim.policy = 0
    sim("PUT", "/a/c")
    sim("PUT", "/a/c/o", {}, b"body")
    with unavailable(sim, how, "object", "a", "c", "o"):
        assert statuses(sim, "/a/c/o", "GET") == all_503("GET")


def test_unavailable_containers_are_503(sim, how):
    methods = ("GET", "HEAD", "POST", "DELETE")
    with unavailable(sim, how, "container", "a", "c"):
        assert statuses(sim, "/a/c", *methods) == all_503(*methods)
    sim.cache.values.clear()
    assert sim("HEAD", "/a/c").status == 204


def test_objects_of_unavailable_containers_are_503(sim, how):
    methods = ("GET", "HEAD", "PUT", "POST", "DELETE")
    with unavailable(sim, how, "container", "a", "c"):
        assert statuses(sim, "/a/c/o", *methods) == all_503(*methods)
    sim.cache.values.clear()
    assert sim("GET", "/a/c/o").body == b"body"


def test_accounts_are_neither_empty_nor_new(sim, how):
    methods = ("GET", "HEAD", "POST")
    with unavailable(sim, how, "account", "a"):
        assert statuses(sim, "/a", *methods) == all_503(*methods)
        assert sorted(sim.root.glob("node*/sdb*/accounts/*/*/*/*.db")) == account_files(sim)
    sim.cache.values.clear()
    assert b"c" in sim("GET", "/a").body


def account_files(sim):
    nodes = sim.primaries("account", "a")
    return sorted(path for n in nodes for path in sim.root.glob(f"node{n}/sdb*/accounts/*/*/*/*.db"))


def test_content_of_unavailable_accounts_is_503(sim, how):
    with unavailable(sim, how, "account", "a"):
        for target in ("/a/c", "/a/c/o", "/a/new"):
            for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
                assert (method, target, sim(method, target).status) == (method, target, 503)
        assert sorted(sim.root.glob("node*/sdb*/accounts/*/*/*/*.db")) == account_files(sim), "none is new"
    sim.cache.values.clear()
    assert sim("GET", "/a/c/o").body == b"body"


def test_a_404_of_one_primary_is_not_enough_for_404(sim):
    primaries = sim.primaries("object", "a", "c", "gone", policy=sim.policy)
    with sim.refusing("object", *primaries[1:]):
        assert statuses(sim, "/a/c/gone", "GET", "HEAD") == all_503("GET", "HEAD")
        # Tombstones on a majority delete it; one archive's handoffs are too few for those of a coded one.
        assert sim("DELETE", "/a/c/gone").status == (404 if sim.policy == 0 else 503)
    sim.clear_node_errors()
    sim.avoid("object", *primaries[1:])
    assert sim("GET", "/a/c/gone").status == 404, "the avoided ones are asked after all"


def test_a_handoff_that_saw_the_deletion_proves_it(make_sim):
    sim = make_sim(log_handoffs=False)
    sim.policy = 0
    sim("PUT", "/a/c")
    with unavailable(sim, "refused", "object", "a", "c", "o"):
        sim("PUT", "/a/c/o", {}, b"body")
        assert sim("DELETE", "/a/c/o").status == 204
        assert sim("GET", "/a/c/o").status == 404


def test_a_deletion_counts_when_one_primary_had_the_object_and_handoffs_keep_its_tombstones(make_sim):
    sim = make_sim(log_handoffs=False)
    sim("PUT", "/a/c")
    sim("PUT", "/a/c/o", {}, b"body")
    primaries = sim.primaries("object", "a", "c", "o", policy=0)
    with sim.refusing("object", *primaries[1:]):
        assert sim("DELETE", "/a/c/o").status == 204
        assert sim("GET", "/a/c/o").status == 404
        assert b"name" not in sim("GET", "/a/c?format=json").body


def test_a_deletion_without_the_primaries_that_have_the_object_is_not_undone_when_they_return(make_sim):
    sim = make_sim(log_handoffs=False)
    sim.policy = 0
    sim("PUT", "/a/c")
    first, *others = sim.primaries("object", "a", "c", "o", policy=0)
    with sim.refusing("object", first):
        assert sim("PUT", "/a/c/o", {}, b"body").status == 201
    with sim.refusing("object", *others):
        assert sim("DELETE", "/a/c/o").status in (204, 404)
    with unavailable(sim, "refused", "object", "a", "c", "o"):
        assert sim("GET", "/a/c/o").status == 404, "a handoff has the tombstone"
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).status == 404


def test_a_deletion_that_no_primary_got_holds_on_handoffs(sim, how):
    with unavailable(sim, how, "object", "a", "c", "o"):
        status = sim("DELETE", "/a/c/o").status
        assert status == (404 if sim.policy == 0 else 503)
    sim.clear_node_errors()
    if status == 404:
        assert sim("GET", "/a/c/o", {"x-newest": "true"}).status == 404
