"""What each op costs: measured on the device, one run per distinct signature, or read off a roofline model.

A measured cost comes from running the op alone through the same executor that runs the step, with the allocator watched, so
that its workspace is exact. Results are kept on disk per device, torch version and number of threads.
"""

from __future__ import annotations

import operator
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from rockmate.cache import cache_directory, read_json, write_json
from rockmate.capture import Capture, signature_of
from rockmate.joint import describe
from rockmate.lower import profile_op

CACHE_FORMAT = "rockmate-costs-2"
MIN_TIME_US = 2_000.0  # an op is repeated until it has run this long ...
MAX_RUNS = 20  # ... or this often


@dataclass
class CostCache:
    """Measured costs by signature: [time in microseconds, bytes of each output's storage, allocation events]."""

    path: Path | None
    entries: dict[str, list[Any]] = field(default_factory=dict)
    changed: bool = False

    @staticmethod
    def open(device: torch.device, on_disk: bool) -> CostCache:
        if not on_disk:
            return CostCache(None)
        path = cache_directory() / f"costs-{_device_name(device)}.json"
        return CostCache(path, read_json(path, CACHE_FORMAT))

    def get(self, signature: str) -> list[Any] | None:
        entry = self.entries.get(signature)
        good = (
            isinstance(entry, list)
            and len(entry) == 3
            and isinstance(entry[0], (int, float))
            and isinstance(entry[1], list)
            and isinstance(entry[2], list)
        )
        return entry if good else None

    def put(self, signature: str, entry: list[Any]) -> None:
        self.entries[signature] = entry
        self.changed = True

    def save(self) -> None:
        if self.path is not None and self.changed:
            write_json(self.path, CACHE_FORMAT, {**read_json(self.path, CACHE_FORMAT), **self.entries})
            self.changed = False


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"{device.type}-{platform.machine()}-{torch.backends.cpu.get_cpu_capability()}-{torch.get_num_threads()}threads"
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{name}-torch{torch.__version__}")


def measure_costs(
    capture: Capture, device: torch.device, on_disk: bool, on_progress: Callable[[str, float], None] | None = None
) -> int:
    """Set time, workspace and output bytes of every op of the capture. Returns how many signatures were run.

    The random stream and the model's tensors are left as they are: ops run on made-up inputs of the right shapes. What was
    measured is kept on disk even when the measurement is interrupted.
    """
    cache = CostCache.open(device, on_disk)
    ops = capture.joint.ops
    signatures = [signature_of(node) for node in ops]
    missing = {s: node for s, node in zip(signatures, ops, strict=True) if cache.get(s) is None}
    try:
        with unset_fake_temporarily(), _disable_current_modes(), torch.no_grad():
            for count, (signature, node) in enumerate(missing.items()):
                if on_progress is not None:
                    on_progress("costs", count / len(missing))
                cache.put(signature, _measure(node, cache))
    finally:
        cache.save()
    graph = capture.training_graph
    values = graph.values
    for op_id, (node, signature) in enumerate(zip(ops, signatures, strict=True)):
        time_us, output_bytes, events = cache.get(signature) or [0.0, [], []]
        uncharged: set[int] = set()
        for index, (key, size) in enumerate(zip(capture.joint.keys_of(node), output_bytes, strict=False)):
            value = capture.value_ids[key]
            if values[value].producer == op_id:
                graph.set_value_bytes(value, int(size))
                if values[value].kind == "parameter_gradient":
                    uncharged.add(index)
        graph.set_op_cost(op_id, float(time_us), workspace_bytes(events, uncharged))
    return len(missing)


def _measure(node: fx.Node, cache: CostCache) -> list[Any]:
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.returns:
        return [0.0, [], []]  # what gives nothing back is an assertion, which made-up inputs may not fulfil
    made_up: dict[fx.Node, Any] = {}

    def value_of(arg: fx.Node) -> Any:
        if arg not in made_up:
            maker = _maker_of_opaque(arg, cache)
            made_up[arg] = tree_map(made_up_tensor, arg.meta["val"]) if maker is None else _really_made(arg, maker)
        return made_up[arg]

    try:
        result = profile_op(
            node.target,
            fx.node.map_arg(node.args, value_of),
            fx.node.map_arg(dict(node.kwargs), value_of),
            min_time_us=MIN_TIME_US,
            max_runs=MAX_RUNS,
        )
    except RuntimeError as error:
        raise RuntimeError(
            f"[cost] {describe(node)} can't be measured alone: {error}. "
            "Choose cost=<device name> to plan with the roofline model instead"
        ) from error
    return [result.time_us, list(result.output_bytes), [list(event) for event in result.events]]


def _maker_of_opaque(arg: fx.Node, cache: CostCache) -> fx.Node | None:
    """The op that makes ``arg`` if its kernel returns more bytes than were traced: a workspace whose layout only it knows.

    oneDNN's LSTM hands one to its backward pass; made up in the traced size, it would be read out of bounds.
    """
    maker, index = (arg.args[0], arg.args[1]) if arg.target is operator.getitem else (arg, 0)
    if not isinstance(maker, fx.Node) or not isinstance(maker.target, torch._ops.OpOverload) or not isinstance(index, int):
        return None
    entry = cache.get(signature_of(maker))
    traced = tree_leaves(arg.meta.get("val"))
    if entry is None or index >= len(entry[1]) or len(traced) != 1 or not isinstance(traced[0], torch.Tensor):
        return None
    return maker if entry[1][index] > traced[0].untyped_storage().nbytes() else None


def _really_made(arg: fx.Node, maker: fx.Node) -> Any:
    """What the op gives for made-up inputs."""
    made_up: dict[fx.Node, Any] = {}

    def value_of(node: fx.Node) -> Any:
        return made_up.setdefault(node, tree_map(made_up_tensor, node.meta["val"]))

    with torch.random.fork_rng(devices=[]):
        result = maker.target(*fx.node.map_arg(maker.args, value_of), **fx.node.map_arg(dict(maker.kwargs), value_of))  # type: ignore[operator]
    return result[arg.args[1]] if arg.target is operator.getitem else result


def workspace_bytes(events: list[list[int]], uncharged: set[int]) -> int:
    """The most bytes held inside the op beyond all its outputs, the outputs numbered in ``uncharged`` left out of both.

    It depends on what is left out: a workspace that is gone before an output is allocated hides behind that output.
    """
    present = peak = 0
    charged: dict[int, int] = {}
    for size, output in events:
        if output in uncharged:
            continue
        if output >= 0:
            charged[output] = size
        present += size
        peak = max(peak, present)
    return max(0, peak - sum(charged.values()))


def made_up_tensor(like: Any) -> Any:
    """A real tensor with the sizes, strides, dtype and device of a traced one. Integers are 0, so that they index anything.

    It lies in a storage as large, at the same offset, and is lazily conjugated if the traced one is: ops that copy a tensor
    with its strides copy the whole storage, and those that can't work on conjugates resolve them first.
    """
    if not isinstance(like, torch.Tensor):
        return like
    stored = like.untyped_storage().nbytes() // like.element_size()
    last = sum((size - 1) * stride for size, stride in zip(like.shape, like.stride(), strict=True))
    needed = like.storage_offset() + 1 + last
    flat = torch.zeros(max(needed, stored, 1), dtype=like.dtype, device=like.device)
    if like.dtype.is_floating_point or like.dtype.is_complex:
        flat.uniform_(0.1, 1.0) if like.dtype.is_floating_point else flat.fill_(0.5)
    made = flat.as_strided(like.shape, like.stride(), like.storage_offset())
    made = torch._conj(made) if like.is_conj() else made
    return torch._neg_view(made) if like.is_neg() else made
