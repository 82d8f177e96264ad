"""The search tries what may win, and misses nothing by what it leaves out."""

import tomllib
from dataclasses import replace

import pytest

from swift.plan.catalogue import RENTED_2012, WORKLOADS, parse_catalogue, read_catalogue
from swift.plan.cluster import predict, throughput_bound
from swift.plan.errors import PlanError
from swift.plan.search import grow, scale, search

SMALL = """
[disks]
hdd = { seek_ms = 8, rotation_ms = 4, mb_s = 150 }
[proxies]
plain = { cores = 4, speed = 1, network_gb = 1, price = 10 }
dear = { cores = 4, speed = 1, network_gb = 1, price = 20 }
[storages]
node = { cores = 4, speed = 1, memory_gib = 8, network_gb = 1, disk = "hdd", drives = 4, price = 12 }
[choose]
proxies = [1, 2]
storage_nodes = [1, 5]
workers = [4, 16]
policies = ["3", "4+2"]
databases = ["disk", "ssd"]
ssd_price = 2
"""
UPLOAD = replace(WORKLOADS["small-upload"], clients=16)


def catalogue(text=SMALL):
    return parse_catalogue(tomllib.loads(text), "test")


@pytest.mark.long
def test_what_is_left_out_would_not_have_won():
    pruned = search(catalogue(), UPLOAD, seconds=1)
    everything = search(catalogue(), UPLOAD, seconds=1, prune=False)
    assert len(pruned.tried) < len(everything.tried)
    assert pruned.dominated_machines > 0
    assert pruned.idle_workers > 0
    # Workers without a core of their own change nothing, so that either may come first.
    winners = [replace(found.tried[0].choice, workers=0) for found in (pruned, everything)]
    assert winners[0] == winners[1]
    left_out = len(catalogue().choices()) - len(pruned.tried)
    counted = pruned.dominated_machines + pruned.idle_workers + pruned.bounded + pruned.impossible
    assert left_out == counted
    assert pruned.impossible == everything.impossible > 0


def test_the_front_rises_with_the_cost_and_has_the_fastest():
    found = search(catalogue(), UPLOAD, seconds=1)
    costs = [each.choice.cost for each in found.front]
    rates = [each.found.rate for each in found.front]
    assert costs == sorted(costs)
    assert rates == sorted(rates)
    assert rates[-1] == max(each.found.rate for each in found.tried)


def test_no_prediction_exceeds_its_bound():
    given = catalogue()
    for choice in given.choices()[::5]:
        if choice.nodes * choice.storage.drives >= choice.policy.total:
            rate = predict(choice, UPLOAD, given.objects, seconds=2).rate
            assert rate <= 1.1 * throughput_bound(choice, UPLOAD, given.objects)


def test_the_same_seed_predicts_the_same():
    given = catalogue()
    choice = given.choices()[-1]
    first, again = (predict(choice, UPLOAD, given.objects, seconds=1, seed=3) for _ in range(2))
    assert first == again


@pytest.fixture(scope="module")
def best_of_2012():
    content = tomllib.loads(RENTED_2012)
    content["choose"] |= {"proxies": [1, 2], "storage_nodes": [10], "workers": [8]}
    given = parse_catalogue(content, "2012")
    return {name: search(given, workload, seconds=1) for name, workload in WORKLOADS.items()}


def test_throughput_by_cost_has_the_order_of_2012(best_of_2012):
    published = ["small-download", "small-upload", "large-download", "large-upload"]
    assert sorted(best_of_2012, key=lambda name: -best_of_2012[name].tried[0].per_cost) == published


def test_a_faster_network_of_proxies_repays_for_large_objects_only(best_of_2012):
    proxies = {name: found.tried[0].choice.proxy.name for name, found in best_of_2012.items()}
    assert proxies["small-upload"] == "c1.xlarge"
    assert proxies["large-upload"] == "cc1.4xlarge"


def test_a_cluster_grows_to_its_target():
    found = search(catalogue(), UPLOAD, seconds=1).tried[0]
    steps = scale(found, UPLOAD, 1e6, 3 * found.found.rate, seconds=1)
    assert steps[-1].found.rate >= 3 * found.found.rate
    assert steps[-1].choice.nodes == steps[-1].times * found.choice.nodes


def test_few_containers_become_the_bottleneck_of_a_growing_cluster():
    one = replace(UPLOAD, containers=1)
    given = parse_catalogue(tomllib.loads(SMALL.replace('["disk", "ssd"]', '["disk"]')), "test")
    found = search(given, one, seconds=1).tried[0]
    steps = scale(found, one, 1e6, 100 * found.found.rate, seconds=1)
    assert steps[-1].found.rate < 100 * found.found.rate
    assert steps[-1].found.bottleneck == "database"


def test_growing_keeps_the_ratio_and_the_price_of_a_node():
    choice = catalogue().choices()[-1]
    grown = grow(choice, UPLOAD, 1e6, 10 * choice.nodes, seconds=0.1).choice
    assert (grown.proxies, grown.nodes) == (10 * choice.proxies, 10 * choice.nodes)
    assert grown.cost == pytest.approx(10 * choice.cost)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("[disks]\n", "", "disks"),
        ("seek_ms = 8, ", "", r"disks.hdd.seek_ms is missing"),
        ('disk = "hdd"', 'disk = "tape"', "storages.node.disk is 'tape'"),
        ("cores = 4", 'cores = "many"', r"proxies.plain.cores is 'many', not a number"),
        ("price = 10", "price = 0", r"proxies.plain.price is 0"),
        ("workers = [4, 16]", "workers = []", r"choose.workers"),
        ("storage_nodes = [1, 5]", "storage_nodes = [1.5]", r"choose.storage_nodes"),
        ('["disk", "ssd"]', '["tape"]', "neither disk nor ssd"),
        ('["3", "4+2"]', '["x"]', "policy 'x'"),
    ],
)
def test_a_bad_catalogue_names_its_field(old, new, message):
    assert old in SMALL
    with pytest.raises(PlanError, match=message):
        catalogue(SMALL.replace(old, new))


def test_the_catalogue_of_2012_is_the_one_without_a_file():
    assert len(read_catalogue(None).choices()) == 108
