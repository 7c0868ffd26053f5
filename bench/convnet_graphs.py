"""Training graphs of convolutional networks as Checkmate has them (MLSys 2020, arXiv 1910.02653), in node-link JSON.

One node a layer, one output a node, in float32. For each layer v there is a node v_backward that makes the gradient of v's
output: it reads v, and for each layer w that reads v, both w and w_backward; its output is as large as v's, and it costs twice
as much as v. "Loss" stands between the passes. (Read off the published files; the networks and this generator are our own.)

Costs are either FLOPs, as in part of the published files (layers that only move data are free then), or nanoseconds on a V100
by roofline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

FLOAT_BYTES = 4
V100_FLOPS_PER_NS = 14.0e3  # 14 TFLOP/s in float32
V100_BYTES_PER_NS = 900.0


@dataclass
class Layer:
    name: str
    shape: tuple[int, int, int]  # channels, height, width
    flops: float  # of one image
    reads: list[int]

    @property
    def numbers(self) -> int:
        return self.shape[0] * self.shape[1] * self.shape[2]


@dataclass
class Network:
    """A network in the making. Each method adds a layer and returns its number."""

    name: str
    batch: int
    image: tuple[int, int, int] = (3, 224, 224)
    layers: list[Layer] = field(default_factory=list)

    def shape(self, layer: int | None) -> tuple[int, int, int]:
        return self.image if layer is None else self.layers[layer].shape

    def add(self, kind: str, reads: Sequence[int | None], shape: tuple[int, int, int], flops: float = 0.0) -> int:
        number = len(self.layers)
        self.layers.append(Layer(f"{kind}_{number}", shape, flops, [read for read in reads if read is not None]))
        return number

    def conv(self, x: int | None, channels: int, kernel: int = 3, stride: int = 1) -> int:
        depth, height, width = self.shape(x)
        shape = (channels, -(-height // stride), -(-width // stride))
        return self.add("conv", [x], shape, 2.0 * kernel * kernel * depth * shape[0] * shape[1] * shape[2])

    def depthwise(self, x: int, stride: int = 1) -> int:
        channels, height, width = self.shape(x)
        shape = (channels, -(-height // stride), -(-width // stride))
        return self.add("depthwise", [x], shape, 2.0 * 9 * shape[0] * shape[1] * shape[2])

    def pointwise(self, kind: str, *reads: int) -> int:
        """Batch normalization, activation, addition: as many operations as numbers in all that is read."""
        shape = self.shape(reads[0])
        return self.add(kind, reads, shape, float(len(reads) * shape[0] * shape[1] * shape[2]))

    def pool(self, x: int, by: int = 2) -> int:
        channels, height, width = self.shape(x)
        return self.add("pool", [x], (channels, -(-height // by), -(-width // by)))

    def upsample(self, x: int, by: int = 2) -> int:
        channels, height, width = self.shape(x)
        return self.add("upsample", [x], (channels, height * by, width * by))

    def concatenate(self, *reads: int) -> int:
        _, height, width = self.shape(reads[0])
        return self.add("concatenate", reads, (sum(self.shape(x)[0] for x in reads), height, width))

    def dense(self, x: int, width: int) -> int:
        return self.add("dense", [x], (width, 1, 1), 2.0 * self.layers[x].numbers * width)


def training_graph(network: Network, costs: str = "flops") -> dict[str, Any]:
    """Forward nodes, the loss, backward nodes in the reverse order. ``costs`` is "flops" or "v100" (nanoseconds)."""
    layers, count = network.layers, len(network.layers)
    readers: list[list[int]] = [[] for _ in layers]
    for number, layer in enumerate(layers):
        for read in layer.reads:
            readers[read].append(number)
    nodes = [
        _node(number, layer.name, False, _cost(network, layer, costs), layer.numbers * network.batch * FLOAT_BYTES)
        for number, layer in enumerate(layers)
    ]
    links = [(read, number) for number, layer in enumerate(layers) for read in layer.reads]
    loss = count
    nodes.append(_node(loss, "Loss", True, 0, network.batch * FLOAT_BYTES))
    links.append((count - 1, loss))
    backward_of: dict[int, int] = {}
    for number in reversed(range(count)):
        mine = backward_of[number] = len(nodes)
        nodes.append(
            _node(mine, f"{layers[number].name}_backward", True, 2 * nodes[number]["cost_cpu"], nodes[number]["cost_ram"])
        )
        reads = {number, *readers[number], *(backward_of[w] for w in readers[number])}
        links += [(read, mine) for read in sorted(reads | ({loss} if number == count - 1 else set()))]
    return {
        "directed": True,
        "multigraph": False,
        "graph": {"name": f"{network.name}_{network.batch}_{network.image}_{costs}_train"},
        "nodes": nodes,
        "links": [{"source": source, "target": target} for source, target in sorted(links)],
    }


def _node(number: int, name: str, backward: bool, cost: int, size: int) -> dict[str, Any]:
    return {"id": number, "name": name, "backward": backward, "cost_cpu": cost, "cost_ram": size}


def _cost(network: Network, layer: Layer, costs: str) -> int:
    flops = layer.flops * network.batch
    if costs == "flops":
        return round(flops)
    if costs != "v100":
        raise ValueError(f"[convnet] costs are 'flops' or 'v100', not {costs!r}")
    numbers = layer.numbers + sum(network.layers[read].numbers for read in layer.reads)
    return max(round(flops / V100_FLOPS_PER_NS), round(numbers * network.batch * FLOAT_BYTES / V100_BYTES_PER_NS))


def vgg(convs: Sequence[int] = (2, 2, 3, 3, 3), batch: int = 256) -> Network:
    """VGG-16 by default; (2, 2, 4, 4, 4) is VGG-19."""
    net = Network(f"vgg{sum(convs) + 3}", batch)
    x = _vgg_body(net, convs)[-1]
    for width in (4096, 4096, 1000):
        x = net.dense(x, width)
    return net


def _vgg_body(net: Network, convs: Sequence[int]) -> list[int]:
    """Returns the pooled output of each of the five blocks."""
    x: int | None = None
    pooled = []
    for block, count in enumerate(convs):
        for _ in range(count):
            x = net.conv(x, min(64 << block, 512))
        assert x is not None
        x = net.pool(x)
        pooled.append(x)
    return pooled


def fcn8(batch: int = 32) -> Network:
    """Fully convolutional network on VGG-16: coarse scores, twice refined by finer ones."""
    net = Network("fcn8_vgg", batch, (3, 416, 608))
    pooled = _vgg_body(net, (2, 2, 3, 3, 3))
    classes = 19
    x = net.pointwise("dropout", net.conv(pooled[-1], 4096, 7))
    x = net.pointwise("dropout", net.conv(x, 4096, 1))
    x = net.conv(x, classes, 1)
    for finer in (pooled[3], pooled[2]):
        x = net.pointwise("add", net.upsample(x), net.conv(finer, classes, 1))
    net.pointwise("softmax", net.upsample(x, 8))
    return net


def unet(batch: int = 32) -> Network:
    """The UNet of biomedical images: four times down and up, the way up reads what the way down made."""
    net = Network("unet", batch, (3, 256, 256))
    x: int | None = None
    kept = []
    for level in range(4):
        x = net.conv(net.conv(x, 64 << level), 64 << level)
        kept.append(x)
        x = net.pool(x)
    assert x is not None
    x = net.conv(net.conv(x, 1024), 1024)
    for level in reversed(range(4)):
        x = net.concatenate(kept[level], net.conv(net.upsample(x), 64 << level, 2))
        x = net.conv(net.conv(x, 64 << level), 64 << level)
    net.conv(x, 2, 1)
    return net


def mobilenet(batch: int = 256) -> Network:
    """MobileNet v1: a chain of depthwise and 1 x 1 convolutions, each normalized and cut off."""
    net = Network("mobilenet", batch)

    def normal(x: int) -> int:
        return net.pointwise("relu", net.pointwise("batch_norm", x))

    x = normal(net.conv(None, 32, 3, 2))
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        x = normal(net.depthwise(x, stride))
        x = normal(net.conv(x, channels, 1))
    net.dense(net.pool(x, 7), 1000)
    return net


def resnet(depths: Sequence[int] = (3, 4, 6, 3), batch: int = 64) -> Network:
    """ResNet of bottlenecks, ResNet-50 by default; normalization and activation as one node a layer each."""
    net = Network(f"resnet{3 * sum(depths) + 2}", batch)
    x = net.pool(net.pointwise("relu", net.pointwise("batch_norm", net.conv(None, 64, 7, 2))))
    for stage, depth in enumerate(depths):
        for block in range(depth):
            width, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
            y = net.pointwise("relu", net.pointwise("batch_norm", net.conv(x, width, 1)))
            y = net.pointwise("relu", net.pointwise("batch_norm", net.conv(y, width, 3, stride)))
            y = net.pointwise("batch_norm", net.conv(y, 4 * width, 1))
            short = x if block > 0 else net.pointwise("batch_norm", net.conv(x, 4 * width, 1, stride))
            x = net.pointwise("relu", net.pointwise("add", short, y))
    net.dense(net.pool(x, 7), 1000)
    return net
