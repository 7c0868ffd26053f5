"""Cast a weight that autocast casts as often as plain PyTorch does: once in a region.

Inside an autocast region, plain PyTorch keeps the cast of a weight for the next op that uses it: the weight's gradients
then meet in the low precision, and are cast back once. That cache does not work on what AOTAutograd traces: a layer that is
used twice would be cast twice, and its gradients meet in the high precision, which rounds otherwise. So the one cast is
written into Dynamo's graph where several ops share it. The rules are those of ``cached_cast`` in ATen's
``autocast_mode.cpp``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

# Ops that autocast runs in low precision on every device, by the names that they have as functions and as methods.
_LOW_PRECISION = {
    *("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "prelu", "conv_tbc", "__matmul__", "__rmatmul__"),
    *(f"conv{dims}d" for dims in (1, 2, 3)),
    *(f"conv_transpose{dims}d" for dims in (1, 2, 3)),
}


class _Region:
    """The innermost autocast region at a node: whether it casts on a device, and to what."""

    def __init__(self, device_type: str) -> None:
        self.enabled = torch.is_autocast_enabled(device_type)
        self.dtype = torch.get_autocast_dtype(device_type)
        self.caches = torch.is_autocast_cache_enabled()


def share_autocasts(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> fx.GraphModule:
    """The graph with one cast for each weight that several ops of an autocast region use; ``gm`` itself where there is none."""
    weights = _cached_weights(gm, example_inputs)
    shared = [uses for uses in _uses_by_region(gm, weights) if len(uses) > 1]
    if not shared:
        return gm
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    cast_of = {(user, weight): (index, dtype) for index, uses in enumerate(shared) for user, weight, dtype in uses}
    casts: dict[int, fx.Node] = {}

    def argument(user: fx.Node, arg: fx.Node) -> fx.Node:
        if (user, arg) not in cast_of:
            return copies[arg]
        index, dtype = cast_of[user, arg]
        if index not in casts:
            casts[index] = graph.call_method("to", (copies[arg], dtype))
            casts[index].meta = {**user.meta, "example_value": None}
        return casts[index]

    for node in gm.graph.nodes:
        copies[node] = graph.node_copy(node, lambda arg, node=node: argument(node, arg))  # type: ignore[misc]
    return fx.GraphModule(gm, graph)


def weights_cast(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> tuple[list[int], bool]:
    """Numbers of the inputs that are weights which autocast casts in the graph, and whether their region goes on outside."""
    weights = _cached_weights(gm, example_inputs)
    cast = {uses[0][1] for uses in _uses_by_region(gm, weights)}
    numbers = [number for number, node in enumerate(gm.graph.find_nodes(op="placeholder")) if node in cast]
    return numbers, _is_inside_region(weights.values())


def _cached_weights(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> dict[fx.Node, torch.Tensor]:
    """The inputs whose casts autocast keeps."""
    inputs = zip(gm.graph.find_nodes(op="placeholder"), example_inputs, strict=True)
    return {node: value for node, value in inputs if _may_be_cached(value)}


def _is_inside_region(weights: Iterable[torch.Tensor]) -> bool:
    return any(torch.is_autocast_enabled(device_type) for device_type in {value.device.type for value in weights})


def _may_be_cached(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.dtype == torch.float32
        and value.requires_grad
        and value.is_leaf
        and not value._is_view()
    )


def _uses_by_region(gm: fx.GraphModule, weights: dict[fx.Node, torch.Tensor]) -> list[list[tuple[fx.Node, fx.Node, Any]]]:
    """For each weight and stretch of the graph in which its cast is kept: (op, weight, dtype) of each use in low precision.

    Uses under ``no_grad`` are left out: no gradient comes back through them.
    """
    types = {value.device.type for value in weights.values()}
    outer = {device_type: _Region(device_type) for device_type in types}
    depth = 1 if _is_inside_region(weights.values()) else 0
    regions = [outer]
    entered: dict[fx.Node, None] = {}
    kept: dict[fx.Node, list[tuple[fx.Node, fx.Node, Any]]] = {}
    found: list[list[tuple[fx.Node, fx.Node, Any]]] = []
    grad_enabled = torch.is_grad_enabled()
    for node in gm.graph.nodes:
        if node.target is torch._C._set_grad_enabled:
            grad_enabled = bool(node.args[0])
        elif node.target is torch.amp.autocast_mode._enter_autocast:
            entered[node] = None
            regions.append({**regions[-1], node.args[0]: _region_of(node)})
        elif node.target is torch.amp.autocast_mode._exit_autocast:
            del entered[node.args[0]]
            regions.pop()
            if depth + len(entered) == 0:
                kept = {}  # plain PyTorch empties its cache when the outermost region ends
        elif grad_enabled and node.op in ("call_function", "call_method") and _name_of(node) in _LOW_PRECISION:
            for arg in node.all_input_nodes:
                region = regions[-1].get(weights[arg].device.type) if arg in weights else None
                if region is None or not region.enabled or not region.caches:
                    continue
                if arg not in kept:
                    kept[arg] = []
                    found.append(kept[arg])
                kept[arg].append((node, arg, kept[arg][0][2] if kept[arg] else region.dtype))
    return found


def _region_of(node: fx.Node) -> _Region:
    """The arguments of ``_enter_autocast``: device type, dtype, enabled, whether casts are kept."""
    device_type, dtype, enabled, caches = node.args
    region = _Region(str(device_type))
    region.dtype = dtype if isinstance(dtype, torch.dtype) else region.dtype
    region.enabled = bool(enabled)
    region.caches = region.caches if caches is None else bool(caches)
    return region


def _name_of(node: fx.Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
