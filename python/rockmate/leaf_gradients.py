"""Gradients that the autograd engine would copy before it keeps them as ``.grad``.

It keeps a gradient as it is when nobody else holds it and its strides are those of the parameter, and copies it otherwise: a
weight that is used transposed, two parameters that are added, a loss that is the sum of a parameter. The copy would be memory
that the plan does not know of. So it is written into the graph, and the engine keeps that one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import fx
from torch._prims_common import is_non_overlapping_and_dense_or_false

from rockmate.joint import inputs_with_gradients, tangents_of, tensor_leaves

COPIED_FOR_ENGINE = "copied_for_engine"  # in the metadata of what the copy is made with


def copy_where_engine_would(joint: fx.Graph, num_forward_outputs: int, leaves: Collection[int]) -> None:
    """Add the copies to a joint graph.

    Args:
        joint: outputs of the forward pass, then one gradient (or ``None``) for each input.
        leaves: numbers of the inputs whose gradient the engine accumulates.
    """
    output = joint.output_node()
    results: list[Any] = list(output.args[0])  # type: ignore[arg-type]
    held_elsewhere = _storages_before_backward(joint, tangents_of(joint))
    with joint.inserting_before(output):
        for number, node in enumerate(inputs_with_gradients(joint)):
            position = num_forward_outputs + number
            gradient = results[position] if position < len(results) else None
            if not isinstance(gradient, fx.Node) or not isinstance(value := gradient.meta.get("val"), torch.Tensor):
                continue
            storage = value.untyped_storage()._cdata
            if getattr(node.meta.get("desc"), "idx", None) in leaves and (
                storage in held_elsewhere or not _engine_keeps(value, node.meta["val"])
            ):
                results[position] = _copied(joint, gradient, node.meta["val"])
            held_elsewhere.add(storage)
    output.args = (tuple(results),)


def _storages_before_backward(joint: fx.Graph, tangents: list[fx.Node]) -> set[int]:
    reached = set(tangents)
    storages: set[int] = set()
    for node in joint.nodes:
        if any(arg in reached for arg in node.all_input_nodes):
            reached.add(node)
        if node not in reached or node in tangents:
            storages.update(tensor.untyped_storage()._cdata for tensor in tensor_leaves(node.meta.get("val")))
    return storages


def _engine_keeps(gradient: torch.Tensor, leaf: torch.Tensor) -> bool:
    if not is_non_overlapping_and_dense_or_false(leaf):
        return gradient.is_contiguous()
    strides = zip(leaf.shape, gradient.stride(), leaf.stride(), strict=True)
    return gradient.shape == leaf.shape and all(size == 1 or mine == leafs for size, mine, leafs in strides)


def _copied(joint: fx.Graph, gradient: fx.Node, leaf: torch.Tensor) -> fx.Node:
    """A copy with the strides of the leaf, or a contiguous one where these are not those of a dense tensor."""
    order = list(range(leaf.dim()))
    if is_non_overlapping_and_dense_or_false(leaf):
        order.sort(key=leaf.stride().__getitem__, reverse=True)
    aten = torch.ops.aten

    def append(target: Any, node: fx.Node, *args: Any, **kwargs: Any) -> fx.Node:
        new = joint.call_function(target, (node, *args), kwargs)
        value = node.meta["val"]
        with value.fake_mode:
            new.meta = {**gradient.meta, "val": target(value, *args, **kwargs), COPIED_FOR_ENGINE: True}
            new.meta.pop("is_gradient_acc", None)  # it is no sum
        return new

    node = gradient
    if order != sorted(order):
        node = append(aten.permute.default, node, order)
    node = append(aten.clone.default, node, memory_format=torch.contiguous_format)
    if order != sorted(order):
        node = append(aten.permute.default, node, [order.index(axis) for axis in range(len(order))])
    return node
