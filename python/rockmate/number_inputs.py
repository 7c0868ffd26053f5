"""Numbers that a piece of a model is given: as tensors where that is the same, as constants where it is not.

A number that changes from step to step (``scale = x.abs().mean().item()``) reaches the next piece as a tensor without
dimensions, which Dynamo's graph reads with ``item()``. Taken as a constant, each new number would be a new graph. Where the
number is only added, subtracted, multiplied or divided, the tensor computes the same, to the bit: PyTorch makes such a tensor
of the number itself. Other uses (a dropout rate, an exponent, a comparison) need the number.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

_SAME = (operator.add, operator.sub, operator.mul, torch.add, torch.sub, torch.mul)
_DIVIDE = (operator.truediv, torch.div)


def reads_number(node: fx.Node) -> bool:
    return node.op == "call_method" and node.target == "item" and node.all_input_nodes[0].op == "placeholder"


def inputs_read_as_numbers(gm: fx.GraphModule) -> list[int]:
    """Which inputs of the graph are read with ``item()``."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    return sorted({placeholders.index(node.all_input_nodes[0]) for node in gm.graph.nodes if reads_number(node)})


def with_numbers_as_tensors(gm: fx.GraphModule) -> fx.GraphModule:
    """The graph with the ``item()`` calls left out whose numbers the tensors can stand for."""
    graph = fx.Graph()
    copies: dict[fx.Node, Any] = {}
    numbers: set[fx.Node] = set()  # tensors that stand for numbers
    for node in gm.graph.nodes:
        if reads_number(node) and (made_of_it := _made_of_it(node)) is not None:
            copies[node] = copies[node.all_input_nodes[0]]
            numbers |= made_of_it
            continue
        scalars = [arg for arg in node.all_input_nodes if _is_tensor(arg) and _value(arg).dim() == 0]
        if scalars and not numbers.isdisjoint(node.all_input_nodes):
            # Beside another tensor without dimensions the number's type would count.
            for number in numbers.intersection(node.all_input_nodes):
                cast = graph.call_method("to", (copies[number], _value(scalars[0]).dtype))
                copies[node] = graph.node_copy(node, lambda arg, n=number, c=cast: c if arg is n else copies[arg])  # type: ignore[misc]
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return _like(gm, graph)


def with_numbers_as_constants(gm: fx.GraphModule, numbers: Mapping[int, float]) -> fx.GraphModule:
    """The graph with ``item()`` of the inputs replaced by the numbers that they hold."""
    graph = fx.Graph()
    placeholders = gm.graph.find_nodes(op="placeholder")
    copies: dict[fx.Node, Any] = {}
    for node in gm.graph.nodes:
        if reads_number(node):
            copies[node] = numbers[placeholders.index(node.all_input_nodes[0])]
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return _like(gm, graph)


def _like(gm: fx.GraphModule, graph: fx.Graph) -> fx.GraphModule:
    copy = fx.GraphModule(gm, graph)
    if hasattr(gm, "compile_subgraph_reason"):
        copy.compile_subgraph_reason = gm.compile_subgraph_reason
    return copy


def _made_of_it(number: fx.Node) -> set[fx.Node] | None:
    """What is made of the number alone, itself included, if all of it is used where a tensor computes the same."""
    source = number.all_input_nodes[0]
    if getattr(_value(source), "dtype", None) is not torch.float64:
        return None
    made_of_it = {number}
    stack = [number]
    while stack:
        node = stack.pop()
        for user in node.users:
            if user.op != "call_function" or user.kwargs or len(user.args) != 2:
                return None
            left, right = user.args
            with_tensor = any(_is_tensor(arg) for arg in user.args)
            if user.target in _DIVIDE:
                # A number over a tensor is computed otherwise: as the tensor's reciprocal times the number.
                if with_tensor and not _is_tensor(left):
                    return None
            elif user.target not in _SAME:
                return None
            for arg in (left, right):
                if isinstance(arg, fx.Node) and not _is_tensor(arg) and arg not in made_of_it:
                    return None
            if with_tensor:
                value = _value(left if _is_tensor(left) else right)
                if not value.is_floating_point() or (value.dim() == 0 and value.dtype not in (torch.float32, torch.float64)):
                    return None
            elif user not in made_of_it:
                made_of_it.add(user)
                stack.append(user)
    return made_of_it


def _is_tensor(arg: Any) -> bool:
    return isinstance(arg, fx.Node) and isinstance(_value(arg), torch.Tensor)


def _value(node: Any) -> Any:
    return node.meta.get("example_value")
