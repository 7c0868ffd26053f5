"""Random layered graphs, of the kind that Moccasin and FastSA plan (node-link JSON).

The kind is defined by Gagrani et al. 2022, "Neural Topological Ordering for Computation Graphs" (arXiv 2207.05899), and the
published files carry its parameters in their names, e.g. random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14:

    n    nodes, a single source and a single sink among them
    w    width over depth: w = W / L for a mean width of W nodes in L layers, with W L = n - 2
    nlv  how much widths vary: a layer has between (1 - nlv) W and (1 + nlv) W nodes
    ed   edge density: the share of all pairs of two neighbouring layers that is linked, beside the links that give each node
         at least one reader and one thing to read
    scd  skip connection density: the share of all links that go over one layer or more

The generator is our own; what the names don't say was read off that published file, whose figures it reproduces: 21 layers of
1 to 9 nodes, 236 links, 33 of them skips. Output sizes come from a mixture of four normal distributions in units of 10 bytes,
times are even over [0, 1000), and nodes are listed in a random topological order.
"""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

SIZES = ((0.3, 50.0, 50.0), (0.3, 100.0, 100.0), (0.3, 300.0, 100.0), (0.1, 500.0, 100.0))  # share, mean, deviation
BYTES_PER_UNIT = 10
LONGEST_TIME = 1000


def random_layered(
    n: int, width: float, variance: float = 0.75, edges: float = 0.2, skips: float = 0.14, seed: int = 0
) -> dict[str, Any]:
    """A graph of exactly ``n`` nodes. The same arguments give the same graph on every machine."""
    if n < 4 or width <= 0 or not 0 <= variance < 1 or not 0 <= edges <= 1 or not 0 <= skips < 1:
        raise ValueError("[layered] n is at least 4, width above 0, variance and skips in [0, 1), edges in [0, 1]")
    rng = random.Random(f"{n} {width} {variance} {edges} {skips} {seed}")
    layers = _layers(n, width, variance, rng)
    links = _neighbour_links(layers, edges, rng)
    _add_skips(layers, links, skips, rng)
    order = _random_topological_order(n, links, rng)
    place = {node: at for at, node in enumerate(order)}
    name = f"random_layered_n{n}_w{width}_nlv{variance}_ed{edges}_scd{skips}_seed{seed}"
    nodes = [
        {"id": at, "name": str(node), "backward": False, "cost_cpu": rng.randrange(LONGEST_TIME), "cost_ram": _size(rng)}
        for at, node in enumerate(order)
    ]
    return {
        "directed": True,
        "multigraph": False,
        "graph": {"name": name},
        "nodes": nodes,
        "links": [{"source": place[u], "target": place[v]} for u, v in sorted(links, key=lambda e: (place[e[0]], place[e[1]]))],
    }


def _layers(n: int, width: float, variance: float, rng: random.Random) -> list[list[int]]:
    """The source, inner layers whose widths vary around W, the sink."""
    mean = max(math.sqrt((n - 2) * width), 1.0)
    widths: list[int] = []
    left = n - 2
    while left > 0:
        drawn = round(rng.uniform((1 - variance) * mean, (1 + variance) * mean))
        widths.append(min(max(drawn, 1), left))
        left -= widths[-1]
    layers, next_node = [[0]], 1
    for size in [*widths, 1]:
        layers.append(list(range(next_node, next_node + size)))
        next_node += size
    return layers


def _neighbour_links(layers: list[list[int]], density: float, rng: random.Random) -> set[tuple[int, int]]:
    links: set[tuple[int, int]] = set()
    for above, below in itertools.pairwise(layers):
        links.update((rng.choice(above), v) for v in below)
        read = {u for u, _ in links}
        links.update((u, rng.choice(below)) for u in above if u not in read)
        links.update((u, v) for u in above for v in below if rng.random() < density)
    return links


def _add_skips(layers: list[list[int]], links: set[tuple[int, int]], density: float, rng: random.Random) -> None:
    wanted = round(len(links) * density / (1 - density))
    possible = sum(len(a) * len(b) for i, a in enumerate(layers) for b in layers[i + 2 :])
    added = 0
    while added < min(wanted, possible):
        first = rng.randrange(len(layers) - 2)
        second = rng.randrange(first + 2, len(layers))
        link = (rng.choice(layers[first]), rng.choice(layers[second]))
        added += link not in links
        links.add(link)


def _random_topological_order(n: int, links: set[tuple[int, int]], rng: random.Random) -> list[int]:
    readers: list[list[int]] = [[] for _ in range(n)]
    waits_for = [0] * n
    for u, v in sorted(links):
        readers[u].append(v)
        waits_for[v] += 1
    ready = [node for node in range(n) if waits_for[node] == 0]
    order = []
    while ready:
        node = ready.pop(rng.randrange(len(ready)))
        order.append(node)
        for v in readers[node]:
            waits_for[v] -= 1
            if waits_for[v] == 0:
                ready.append(v)
    return order


def _size(rng: random.Random) -> int:
    _, mean, deviation = rng.choices(SIZES, weights=[share for share, _, _ in SIZES])[0]
    size = 0
    while size <= 0:
        size = round(rng.gauss(mean, deviation))
    return BYTES_PER_UNIT * size
