"""The graphs that the planner benchmark generates are of the kind that they claim to be."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import convnet_graphs as convnets
from layered_graphs import random_layered

NETWORKS = {
    "vgg": convnets.vgg,
    "fcn8": convnets.fcn8,
    "unet": convnets.unet,
    "mobilenet": convnets.mobilenet,
    "resnet": convnets.resnet,
}


def links_of(graph: dict[str, Any]) -> list[tuple[int, int]]:
    return [(link["source"], link["target"]) for link in graph["links"]]


def layer_of_each(graph: dict[str, Any]) -> list[int]:
    """Length of the longest path to each node. Nodes are listed in topological order."""
    layers = [0] * len(graph["nodes"])
    for source, target in sorted(links_of(graph), key=lambda link: link[1]):
        layers[target] = max(layers[target], layers[source] + 1)
    return layers


@pytest.mark.parametrize("n, width", [(4, 0.5), (100, 0.27), (250, 0.43), (1000, 0.31)])
def test_layered_graphs_have_one_source_one_sink_and_a_topological_order(n: int, width: float) -> None:
    graph = random_layered(n, width)
    links = links_of(graph)
    assert [node["id"] for node in graph["nodes"]] == list(range(n))
    assert all(source < target for source, target in links)
    assert len(set(links)) == len(links)
    assert {target for _, target in links} == set(range(1, n))  # every node but the first reads something
    assert {source for source, _ in links} == set(range(n - 1))  # every node but the last is read
    assert all(node["cost_ram"] > 0 and 0 <= node["cost_cpu"] < 1000 for node in graph["nodes"])


def test_layered_graphs_are_as_the_published_one_is() -> None:
    """random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14 has 21 layers, 236 links and 33 skips; W = sqrt(98 x 0.27) = 5.1."""
    links, layers = [], []
    for seed in range(20):
        graph = random_layered(100, 0.27, seed=seed)
        links.append(len(graph["links"]))
        layers.append(max(layer_of_each(graph)) + 1)
    assert 210 < sum(links) / 20 < 265
    assert 18 < sum(layers) / 20 < 25


def test_widths_of_layered_graphs_vary_as_much_as_is_asked() -> None:
    """W = sqrt(998 x 0.31) = 17.6: layers of 18, of which the last takes what is left; or of 4 to 31."""
    even = Counter(layer_of_each(random_layered(1000, 0.31, variance=0.0, skips=0.0)))
    assert {even[layer] for layer in range(1, max(even) - 1)} == {18}
    uneven = Counter(layer_of_each(random_layered(1000, 0.31, skips=0.0)))
    widths = [uneven[layer] for layer in range(1, max(uneven) - 1)]
    assert min(widths) < 10 < 25 < max(widths) <= 31


def test_layered_graphs_depend_on_the_seed_alone() -> None:
    assert random_layered(100, 0.27, seed=3) == random_layered(100, 0.27, seed=3)
    assert random_layered(100, 0.27, seed=3)["links"] != random_layered(100, 0.27, seed=4)["links"]


def test_layered_graphs_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match=r"\[layered\]"):
        random_layered(3, 0.3)
    with pytest.raises(ValueError, match=r"\[layered\]"):
        random_layered(100, 0.3, skips=1.0)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("costs", ["flops", "v100"])
def test_backward_nodes_read_the_layer_its_readers_and_their_gradients(network: str, costs: str) -> None:
    net = NETWORKS[network]()
    graph = convnets.training_graph(net, costs)
    count = len(net.layers)
    nodes, reads = graph["nodes"], Counter(target for _, target in links_of(graph))
    assert len(nodes) == 2 * count + 1
    assert [node["backward"] for node in nodes] == [False] * count + [True] * (count + 1)
    assert all(source < target for source, target in links_of(graph))
    readers = Counter(read for layer in net.layers for read in layer.reads)
    for number in range(count):
        backward = 2 * count - number
        assert nodes[backward]["name"] == f"{nodes[number]['name']}_backward"
        assert nodes[backward]["cost_ram"] == nodes[number]["cost_ram"]
        assert nodes[backward]["cost_cpu"] == 2 * nodes[number]["cost_cpu"]
        assert reads[backward] == (1 + 2 * readers[number] if number < count - 1 else 2)


def test_the_first_layer_of_vgg_by_hand() -> None:
    """256 images of 224 x 224: 64 channels of float32 are 3,288,334,336 bytes; 3 x 3 x 3 x 64 x 224 x 224 x 2 x 256 FLOPs."""
    first = convnets.training_graph(convnets.vgg(), "flops")["nodes"][0]
    assert first["cost_ram"] == 256 * 64 * 224 * 224 * 4 == 3288334336
    assert first["cost_cpu"] == 2 * 27 * 64 * 224 * 224 * 256


def test_unknown_costs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[convnet\]"):
        convnets.training_graph(convnets.vgg(), "seconds")
