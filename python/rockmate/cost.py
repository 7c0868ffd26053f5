"""What each op costs: measured on the device, one run per distinct signature, or read off a roofline model.

A measured cost comes from running the op alone through the same executor that runs the step, with the allocator watched, so
that its workspace is exact. Results are kept on disk per device, torch version and number of threads.
"""

from __future__ import annotations

import operator
import platform
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from rockmate.cache import cache_directory, read_json, write_json
from rockmate.capture import Capture, roofline_figures, signature_of
from rockmate.eager_backward import LOOK_AT_DATA
from rockmate.joint import describe, tensor_leaves
from rockmate.lower import profile_op
from rockmate.made_up import Inputs, ways_to_fill, ways_to_make_inputs

CACHE_FORMAT = "rockmate-costs-3"
MIN_TIME_US = 2_000.0  # an op is repeated until it has run this long ...
MAX_RUNS = 20  # ... or this often
ESTIMATED_BYTES_PER_US = 10_000.0  # of ops that can't be measured


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
    streams = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])  # inputs are made up of random numbers
    try:
        with unset_fake_temporarily(), _disable_current_modes(), torch.no_grad(), streams:
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

    def is_opaque(value: fx.Node) -> bool:
        return _is_opaque(value, cache)

    if node.target in LOOK_AT_DATA:  # the memory that it takes depends on the data: the most counts
        profiles = [_profile(node, inputs) for inputs in ways_to_fill(is_opaque)]
        return _entry(max(profiles, key=lambda profile: profile.peak_bytes))  # type: ignore[no-any-return]
    errors: list[Exception] = []
    for inputs in ways_to_make_inputs(is_opaque):
        try:
            return _entry(_profile(node, inputs))
        except (RuntimeError, ValueError, IndexError) as error:  # such as pivots that are those of no matrix
            errors.append(error)
    warnings.warn(
        f"[cost] {describe(node)} can't be measured alone: {str(errors[0]).splitlines()[0]}. Its time is estimated from the "
        "bytes that it reads and writes, and what it needs beyond its results is not counted: the step may exceed the budget "
        "by that much. Choose cost=<device name> to plan with the roofline model throughout",
        stacklevel=2,
    )
    _, moved_bytes, _ = roofline_figures(node)
    outputs = [tensor.untyped_storage().nbytes() for tensor in tensor_leaves(node.meta.get("val"))]
    return [1.0 + moved_bytes / ESTIMATED_BYTES_PER_US, outputs, [[size, index] for index, size in enumerate(outputs)]]


def _profile(node: fx.Node, inputs: Inputs) -> Any:
    return profile_op(
        node.target,  # type: ignore[arg-type]
        fx.node.map_arg(node.args, inputs),  # type: ignore[arg-type]
        fx.node.map_arg(dict(node.kwargs), inputs),  # type: ignore[arg-type]
        min_time_us=MIN_TIME_US,
        max_runs=MAX_RUNS,
    )


def _entry(profile: Any) -> list[Any]:
    return [profile.time_us, list(profile.output_bytes), [list(event) for event in profile.events]]


def _is_opaque(arg: fx.Node, cache: CostCache) -> bool:
    """Whether the kernel that makes ``arg`` returns more bytes than were traced: a workspace whose layout only it knows.

    oneDNN's LSTM hands one to its backward pass; made up in the traced size, it would be read out of bounds.
    """
    maker, index = (arg.args[0], arg.args[1]) if arg.target is operator.getitem else (arg, 0)
    if not isinstance(maker, fx.Node) or not isinstance(maker.target, torch._ops.OpOverload) or not isinstance(index, int):
        return False
    entry = cache.get(signature_of(maker))
    traced = tree_leaves(arg.meta.get("val"))
    if entry is None or index >= len(entry[1]) or len(traced) != 1 or not isinstance(traced[0], torch.Tensor):
        return False
    return bool(entry[1][index] > traced[0].untyped_storage().nbytes())


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
