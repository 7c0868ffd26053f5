"""Ops that PyTorch traces as something that computes otherwise, and what is traced instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

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
    """
    whole = {torch.mul: torch.addcmul, torch.div: torch.addcdiv}
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.prims.fma.default):
        inner, value, base = node.args
        if not isinstance(inner, fx.Node) or inner.target not in whole or isinstance(value, fx.Node):
            continue
        with gm.graph.inserting_before(node):
            fused = gm.graph.call_function(whole[inner.target], (base, *inner.args), {"value": value})
        fused.meta = dict(node.meta)
        node.replace_all_uses_with(fused)
        gm.graph.erase_node(node)
        if not inner.users:
            gm.graph.erase_node(inner)


@functools.cache
def keep_addcdiv_whole() -> None:
    """Let Dynamo take ``addcdiv(x, a, b, value=v)`` apart only where ``v`` is a tensor; once in a process."""
    handlers = TorchInGraphFunctionVariable._get_handlers()
    take_apart = handlers.get(torch.addcdiv)
    if take_apart is None:
        return

    def handle(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
        value = kwargs.get("value")
        return take_apart(self, tx, *args, **kwargs) if value is not None and value.is_tensor() else None

    handlers[torch.addcdiv] = handle
