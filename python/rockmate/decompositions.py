"""Ops that PyTorch traces as something that computes otherwise, and what is traced instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

aten = torch.ops.aten


def _draw_in_memory_order(x: Tensor, p: float = 0.5, generator: Any = None) -> Tensor:
    """``x.bernoulli_(p)`` is traced as ``bernoulli(x, p)``, which draws in the order of the dimensions and gives a contiguous
    tensor. The former draws in the order of the memory and keeps the strides: alpha dropout of a transposed tensor."""
    strides = x.stride()
    order = sorted(range(x.dim()), key=lambda axis: -strides[axis])
    if order == list(range(x.dim())):
        return NotImplemented  # type: ignore[no-any-return]  # the two are the same
    drawn = aten.bernoulli.p(x.permute(order), p, generator=generator)
    return drawn.permute([order.index(axis) for axis in range(x.dim())])


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {aten.bernoulli.p: _draw_in_memory_order}


def spell_out_draws(gm: fx.GraphModule) -> None:
    """Write ``torch.bernoulli(x, p)`` of Dynamo's graph as what it does, so that what is left comes from ``bernoulli_``."""
    for node in gm.graph.nodes:
        is_call = (node.op == "call_function" and node.target is torch.bernoulli) or (
            node.op == "call_method" and node.target == "bernoulli"
        )
        if not is_call or not (len(node.args) == 2 or "p" in node.kwargs) or "out" in node.kwargs:
            continue
        with gm.graph.inserting_before(node):
            like = gm.graph.call_function(
                torch.empty_like, (node.args[0],), {"memory_format": torch.contiguous_format, "requires_grad": False}
            )
            like.meta = dict(node.meta)
            filled = gm.graph.create_node("call_method", "bernoulli_", (like, *node.args[1:]), dict(node.kwargs))
            filled.meta = dict(node.meta)
        node.replace_all_uses_with(filled)
        gm.graph.erase_node(node)


def restore_fused_arithmetic(gm: fx.GraphModule) -> None:
    """Write ``addcmul`` and ``addcdiv`` where Dynamo took them apart because of their ``value``: the parts round otherwise.

    ``x.addcmul_(a, b, value=v)`` comes as ``x.copy_(prims.fma(mul(a, b), v, x))``, which is written for nothing else.
    ``torch.addcdiv(x, a, b, value=v)`` comes as ``add(x, mul(div(a, b), v))``: it is told by the line of the model that all
    three come from.
    """
    fused = {torch.mul: torch.addcmul, torch.div: torch.addcdiv}
    for node in list(gm.graph.nodes):
        if node.target is torch.ops.prims.fma.default:
            inner, value, base = node.args
        elif (
            node.target is torch.add and len(node.args) == 2 and not node.kwargs and _is_part_of(node, torch.mul, node.args[1])
        ):
            base, product = node.args
            inner, value = product.args
            if not _is_part_of(product, torch.div, inner) or "addcdiv" not in (_source_of(node) or "addcdiv"):
                continue
        else:
            continue
        if not isinstance(inner, fx.Node) or inner.target not in fused or isinstance(value, fx.Node):
            continue
        with gm.graph.inserting_before(node):
            whole = gm.graph.call_function(fused[inner.target], (base, *inner.args), {"value": value})
        whole.meta = dict(node.meta)
        node.replace_all_uses_with(whole)
    gm.graph.eliminate_dead_code(
        is_impure_node=lambda node: node.target not in (*fused, torch.add, torch.ops.prims.fma.default)
    )


def _is_part_of(node: fx.Node, target: Any, part: Any) -> bool:
    """Whether it is a call of ``target``, for nothing but the node, from the same place in the model."""
    if not isinstance(part, fx.Node) or part.target is not target or len(part.args) != 2 or part.kwargs:
        return False
    return list(part.users) == [node] and part.meta.get("stack_trace") == node.meta.get("stack_trace")


def _source_of(node: fx.Node) -> str:
    """What the model's source says where the node comes from; empty where PyTorch has no source."""
    lines = (node.meta.get("stack_trace") or "").splitlines()
    last_frame = max((i for i, line in enumerate(lines) if line.lstrip().startswith('File "')), default=-1)
    return "\n".join(lines[last_frame + 1 :]).strip()
