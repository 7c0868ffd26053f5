"""The instances of the planner benchmark: training steps of models, random layered graphs, training graphs of Checkmate's kind.

python bench/planner_instances.py                 lists them
python bench/planner_instances.py --store         makes those again that lie in bench/instances
python bench/planner_instances.py gpt2_large -o . writes one as a graph file

Graphs that bench/instances doesn't have (the one of 20,000 ops) are made when they are asked for and kept in rockmate's cache
folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import convnet_graphs as convnets
from layered_graphs import random_layered

STORED = Path(__file__).parent / "instances"
NodeLink = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """One graph to plan. ``family`` is "model" (a captured step of a transformer, convolution or other network), "layered",
    "checkmate" (generated node-link graphs) or "published" (node-link files of others)."""

    name: str
    family: str
    what: str
    model: Callable[[Any], Any] | None = None  # makes it, given the module planner_models (which needs torch)
    make: Callable[[], NodeLink] | None = None
    file: Path | None = None  # node-link JSON
    stored: bool = False  # as a file in bench/instances

    def text(self, command: Path) -> str:
        """The graph as rockmate-graph JSON; node-link graphs are read by the ``rockmate`` command."""
        if self.file is not None:
            return _imported(self.file.read_text(), command)
        packed = STORED / f"{self.name}.json.gz"
        if packed.exists():
            text = gzip.decompress(packed.read_bytes()).decode()
            return _imported(text, command) if self.make is not None else text
        return _imported(json.dumps(self.make()), command) if self.make is not None else _captured(self)


DEEP_RESNET = partial(convnets.resnet, (3, 4, 985, 3))


def _model(name: str, what: str, model: Callable[[Any], Any], stored: bool = False) -> Instance:
    return Instance(name, "model", what, model=model, stored=stored)


def _layered(n: int, width: float) -> Instance:
    make = partial(random_layered, n, width)
    return Instance(f"random_layered_{n}", "layered", f"random layered graph, {n} nodes, w {width}", make=make, stored=True)


def _checkmate(name: str, what: str, network: Callable[[], convnets.Network], costs: str, stored: bool = True) -> Instance:
    def make() -> NodeLink:
        return convnets.training_graph(network(), costs)

    return Instance(f"checkmate_{name}", "checkmate", f"{what}, costs: {costs}", make=make, stored=stored)


def _gpt2_by_depth(layers: int) -> Instance:
    what = f"GPT-2 of {layers} layers, width 768, T 512, batch 4"
    return _model(f"gpt2_{layers}_layers", what, lambda m: m.gpt2(layers, 768, 12), stored=True)


INSTANCES: dict[str, Instance] = {
    instance.name: instance
    for instance in [
        _model("gpt2_large", "GPT-2 large, T 512, batch 4, attention written out", lambda m: m.gpt2(36, 1280, 20), stored=True),
        _model("gpt2_large_sdpa", "the same, attention as one op", lambda m: m.gpt2(36, 1280, 20, "sdpa"), stored=True),
        _model("gpt2_large_trunk", "GPT-2 large without head", lambda m: m.gpt2(36, 1280, 20, head=False), stored=True),
        _model(
            "gpt2_medium", "GPT-2 medium, T 512, batch 4, attention written out", lambda m: m.gpt2(24, 1024, 16), stored=True
        ),
        _model("gpt2_medium_sdpa", "the same, attention as one op", lambda m: m.gpt2(24, 1024, 16, "sdpa"), stored=True),
        *(_gpt2_by_depth(layers) for layers in (2, 4, 6, 8, 10)),
        _model("resnet50", "ResNet-50, 32 images of 224 x 224", lambda m: m.resnet([3, 4, 6, 3]), stored=True),
        _model("resnet101", "ResNet-101, 32 images of 224 x 224", lambda m: m.resnet([3, 4, 23, 3]), stored=True),
        _model("regnet", "RegNet, 32 images of 224 x 224", lambda m: m.regnet(), stored=True),
        _model("llama", "Llama-like, 12 layers of width 1024, T 512, batch 4", lambda m: m.llama(), stored=True),
        _model("t5", "T5-small, T 512, batch 4", lambda m: m.t5(), stored=True),
        _model("unet", "UNet of diffusion models, 8 images of 64 x 64", lambda m: m.unet(), stored=True),
        _model("swin", "Swin-T, 16 images of 224 x 224", lambda m: m.swin(), stored=True),
        _model("densenet121", "DenseNet-121, 32 images of 224 x 224", lambda m: m.densenet(), stored=True),
        _model("mixtral", "Mixtral-like, 6 layers, 8 experts, T 512, batch 4", lambda m: m.mixtral(), stored=True),
        _model("gpt2_deep", "22,000 ops: GPT-2 of 288 layers, width 256, T 128", lambda m: m.gpt2(288, 256, 4, tokens=128)),
        _layered(100, 0.27),
        _layered(250, 0.43),
        _layered(500, 0.36),
        _layered(750, 0.33),
        _layered(1000, 0.31),
        _checkmate("vgg16", "VGG-16, 256 images", convnets.vgg, "v100"),
        _checkmate("vgg19", "VGG-19, 256 images", partial(convnets.vgg, (2, 2, 4, 4, 4)), "flops"),
        _checkmate("fcn8", "FCN-8 on VGG-16, 32 images", convnets.fcn8, "flops"),
        _checkmate("unet", "UNet, 32 images", convnets.unet, "flops"),
        _checkmate("mobilenet", "MobileNet v1, 256 images", convnets.mobilenet, "v100"),
        _checkmate("resnet50", "ResNet-50, 64 images", convnets.resnet, "v100"),
        _checkmate("deep", "20,000 ops: ResNet of 2986 layers, 64 images", DEEP_RESNET, "v100", stored=False),
    ]
}


def published(folder: Path) -> list[Instance]:
    """Node-link files of others, in the order of their names."""
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            graph = json.loads(file.read_text())
            name = str(graph["graph"].get("name", file.stem))
            found.append(Instance(f"published_{file.stem}", "published", name, file=file))
        except (ValueError, KeyError, TypeError, AttributeError):
            print(f"{file}: no graph in node-link form, left out", file=sys.stderr)
    return found


def graph_file(instance: Instance, folder: Path, command: Path) -> Path:
    """The instance as a rockmate graph in ``folder``, made if it isn't there."""
    file = folder / f"{instance.name}.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"[{instance.name}] making the graph", file=sys.stderr, flush=True)
        unfinished = file.with_suffix(".part")
        unfinished.write_text(instance.text(command))
        unfinished.rename(file)
    return file


def default_cache() -> Path:
    from rockmate.cache import cache_directory

    return Path(cache_directory()) / "bench" / "graphs"


def default_command() -> Path:
    """The ``rockmate`` command that was installed with this interpreter's packages."""
    return Path(sys.executable).parent / "rockmate"


def _captured(instance: Instance) -> str:
    """Captured in a process of its own: what PyTorch's compiler holds goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.json"
        subprocess.run([sys.executable, __file__, "--capture", instance.name, "-o", str(file)], check=True)
        return file.read_text()


def _capture(instance: Instance) -> str:
    import planner_models

    assert instance.model is not None
    return planner_models.training_graph(partial(instance.model, planner_models), instance.name)


def _imported(node_link: str, command: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder) / "node_link.json", Path(folder) / "graph.json"
        theirs.write_text(node_link)
        subprocess.run([str(command), "import", str(theirs), "-o", str(ours)], check=True)
        return ours.read_text()


def _store(command: Path, cache: Path) -> None:
    STORED.mkdir(exist_ok=True)
    for instance in INSTANCES.values():
        if instance.stored:
            captured = instance.make is None
            text = graph_file(instance, cache, command).read_text() if captured else json.dumps(instance.make())  # type: ignore[misc]
            packed = gzip.compress(text.encode(), 9, mtime=0)
            (STORED / f"{instance.name}.json.gz").write_bytes(packed)
            print(f"{instance.name:24} {len(packed):8} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which instances to write")
    parser.add_argument("-o", "--output", type=Path, help="folder for the graph files")
    parser.add_argument("--store", action="store_true", help="make the files of bench/instances again")
    parser.add_argument("--command", type=Path, default=default_command(), help="the rockmate command")
    parser.add_argument("--cache", type=Path, help="folder of the graphs that were made on demand")
    parser.add_argument("--capture", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.capture:
        options.output.write_text(_capture(INSTANCES[options.capture]))
    elif options.store:
        _store(options.command, options.cache or default_cache())
    elif options.names:
        for name in options.names:
            print(graph_file(INSTANCES[name], options.output or options.cache or default_cache(), options.command))
    else:
        for instance in INSTANCES.values():
            print(f"{instance.name:24} {instance.family:10} {instance.what}")


if __name__ == "__main__":
    main()
