"""Leave out of a joint graph what belongs to tangents that never come.

AOTAutograd traces the backward pass as if a gradient arrived for every differentiable output. A model that returns
``(loss, logits, cache)`` and is trained by ``loss.backward()`` gets one: autograd never runs the nodes that only the others
would reach. ``drop_tangents`` gives the joint graph the same shape. The rules are those of the autograd engine:

* an op whose gradient inputs are all missing does not run, and what it would have written is missing too;
* the sum of a gradient and a missing one is that gradient;
* any other op that gets both is given zeros for the missing ones (the pieces of a ``split``, say).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import torch
from torch import fx

from rockmate.lower import insists_on_strides

_MISSING = object()


def drop_tangents(graph: fx.Graph, tangents: list[fx.Node], given: AbstractSet[int]) -> tuple[fx.Graph, dict[int, int]]:
    """A copy of the joint ``graph`` in which only the tangents numbered in ``given`` are used.

    Node names are kept. All placeholders stay; outputs that depend on missing tangents alone become ``None``. The second
    result maps the storage of each sum that is gone to that of the summand that stands for it: the traced values of the
    nodes after it still look at the former.
    """
    stand_for: dict[int, int] = {}
    if len(given) == len(tangents):
        return graph, stand_for
    missing_tangents = {tangents[i] for i in range(len(tangents)) if i not in given}
    new_graph = fx.Graph()
    copies: dict[fx.Node, Any] = {}
    depends: set[fx.Node] = set(tangents)  # nodes of the old graph that a tangent reaches

    def zeros_like(node: fx.Node) -> fx.Node:
        val = node.meta["val"]
        zeros = new_graph.create_node(
            "call_function",
            torch.ops.aten.zeros.default,
            (list(val.shape),),
            {"dtype": val.dtype, "device": val.device},
            name=f"{node.name}_missing",  # other nodes keep their names
        )
        zeros.meta = {
            "val": val.new_zeros(val.shape),
            "partitioner_tag": "is_backward",
            "fwd_nn_module_stack": node.meta.get("fwd_nn_module_stack"),
        }
        return zeros

    def lookup(node: fx.Node) -> Any:
        found = copies[node]
        return zeros_like(node) if found is _MISSING else found

    for node in graph.nodes:
        if node.op == "placeholder":
            copy = new_graph.placeholder(node.name)
            missing = node in missing_tangents
            copy.meta = {**node.meta, "missing_tangent": True} if missing else node.meta
            copies[node] = _MISSING if missing else copy
            continue
        if node.op == "output":
            new_output = new_graph.output(_map_outputs(node.args[0], copies))
            new_output.meta = node.meta
            continue
        gradients = [arg for arg in node.all_input_nodes if arg in depends]
        if gradients:
            depends.add(node)
            absent = [arg for arg in gradients if copies[arg] is _MISSING]
            if len(absent) == len(gradients):
                copies[node] = _MISSING
                continue
            if absent and (kept := _other_summand(node, absent[0])) is not None:
                copies[node] = copies[kept]
                storage = kept.meta["val"].untyped_storage()._cdata
                stand_for[node.meta["val"].untyped_storage()._cdata] = stand_for.get(storage, storage)
                continue
        copies[node] = new_graph.node_copy(node, lookup)
    return new_graph, stand_for


def _map_outputs(outputs: Any, copies: dict[fx.Node, Any]) -> tuple[Any, ...]:
    def one(value: Any) -> Any:
        if not isinstance(value, fx.Node):
            return value
        copy = copies[value]
        return None if copy is _MISSING else copy

    return tuple(one(value) for value in outputs)


def _other_summand(node: fx.Node, absent: fx.Node) -> fx.Node | None:
    """The summand that stands for the whole sum when ``absent`` is zero, if ``node`` is a plain sum of equals."""
    if node.target is not torch.ops.aten.add.Tensor or node.kwargs or len(node.args) != 2:
        return None
    left, right = node.args
    if not isinstance(left, fx.Node) or not isinstance(right, fx.Node):
        return None
    other = right if left is absent else left
    mine, whole = other.meta["val"], node.meta["val"]
    # Its strides may be others, as they are in plain PyTorch, unless they would be taken at their word.
    same = mine.shape == whole.shape and mine.dtype == whole.dtype
    fits = mine.stride() == whole.stride() or not any(insists_on_strides(user.target) for user in node.users)
    return other if same and fits and other is not absent else None
