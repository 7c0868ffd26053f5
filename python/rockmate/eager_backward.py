"""Gradient formulas that plain PyTorch picks by looking at tensors: kept whole.

The formula of ``prod`` divides where no factor is zero, and multiplies all others where one is; that of a ``masked_fill`` with
a tensor picks the masked elements and sums those. A trace has no data to look at, so PyTorch traces a third formula that needs
none and rounds otherwise; that of ``householder_product`` works in place where nothing is traced. Here the backward pass of
such an op is traced as one op of our own::

    plain     prod ... prod_backward: look, then divide
    traced    prod ... rockmate::prod_gradients(gradients, wanted, arguments of prod)

When it runs, it has real tensors: it calls ``prod`` once more with gradients enabled and hands the gradient to the node that
autograd made, which is the plain formula, whatever that is in the PyTorch that is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._ops import OpOverload

from rockmate.shared_change import PythonKernels, SharedChange, put_kernels_back, take_traced_kernels

_aten = torch.ops.aten
#: Ops whose formulas look at their tensors' data; and whether they do for the gradient of each tensor among the arguments.
OPS: dict[OpOverload, tuple[bool, ...]] = {
    _aten.prod.default: (True,),
    _aten.prod.dim_int: (True,),
    _aten.cumprod.default: (True,),
    _aten.max.default: (True,),
    _aten.min.default: (True,),
    _aten.median.default: (True,),
    _aten.nanmedian.default: (True,),
    _aten.masked_fill.Tensor: (False, False, True),
    _aten.linalg_householder_product.default: (True, True),
}
_IN_PLACE = {
    _aten.cumprod_.default: _aten.cumprod.default,
    _aten.masked_fill_.Tensor: _aten.masked_fill.Tensor,
}

_library = torch.library.Library("rockmate", "FRAGMENT")


def _define(op: OpOverload) -> OpOverload:
    """The op that gives the gradients of the tensors ``wanted`` among the arguments of ``op``."""
    name, arguments = str(op._schema).removeprefix("aten::").split(") -> ")[0].split("(", 1)
    name = f"{name.replace('.', '_')}_gradients"
    _library.define(f"{name}(Tensor?[] gradients, bool[] wanted, {arguments}) -> Tensor[]")
    _library.impl(name, _run_with(op), "CompositeExplicitAutograd")
    _library.impl(name, _trace, "Meta")
    return getattr(torch.ops.rockmate, name).default  # type: ignore[no-any-return]


def _trace(gradients: Any, wanted: list[bool], *args: Any, **_: Any) -> list[Tensor]:
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    return [torch.empty_like(tensor) for tensor, wants in zip(tensors, wanted, strict=True) if wants]


def _run_with(op: OpOverload) -> Callable[..., list[Tensor]]:
    def run(gradients: list[Tensor | None], wanted: list[bool], *args: Any, **kwargs: Any) -> list[Tensor]:
        tensors = [arg.detach() for arg in args if isinstance(arg, Tensor)]
        leaves = [tensor.requires_grad_() for tensor, wants in zip(tensors, wanted, strict=True) if wants]
        given = iter(tensors)
        with _below_autograd_no_more(), torch.enable_grad():
            output = op(*(next(given) if isinstance(arg, Tensor) else arg for arg in args), **kwargs)
        node = output.grad_fn
        del output
        with torch.no_grad():
            results = node(*gradients)
        results = results if isinstance(results, tuple) else (results,)
        edges = [getattr(edge, "variable", None) for edge, _ in node.next_functions]
        found = [next(r for edge, r in zip(edges, results, strict=True) if edge is leaf) for leaf in leaves]
        return [_as_handed_on(gradient, leaf, gradients) for gradient, leaf in zip(found, leaves, strict=True)]

    return run


def _as_handed_on(gradient: Tensor, leaf: Tensor, given: list[Tensor | None]) -> Tensor:
    """What the autograd engine does with a node's results before it hands them on; in memory of its own."""
    gradient = gradient.to(leaf.dtype).sum_to_size(leaf.shape)
    storages = [tensor.untyped_storage().data_ptr() for tensor in given if tensor is not None]
    return gradient.clone() if gradient.untyped_storage().data_ptr() in storages else gradient


@contextmanager
def _below_autograd_no_more() -> Iterator[None]:
    """Programs run below autograd; what is called inside of this makes autograd nodes again."""
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in (DispatchKey.AutogradFunctionality, DispatchKey.AutogradOther, DispatchKey.ADInplaceOrView):
        excluded = excluded.remove(key)
    with (
        torch._C._DisablePythonDispatcher(),
        torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded),
    ):
        yield


class _Whole(torch.autograd.Function):
    """Call an op; its backward pass is the one op that gives its gradients."""

    @staticmethod
    def forward(ctx: Any, op: OpOverload, kwargs: dict[str, Any], *args: Any) -> Any:
        ctx.op, ctx.args, ctx.kwargs = op, [None if isinstance(arg, Tensor) else arg for arg in args], kwargs
        ctx.places = [place for place, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*(args[place] for place in ctx.places))
        with torch._C._AutoDispatchBelowAutograd():
            return op(*args, **kwargs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        args = list(ctx.args)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[place] = tensor
        wanted = [ctx.needs_input_grad[2 + place] for place in ctx.places]
        found = iter(_GRADIENTS[ctx.op](list(gradients), wanted, *args, **ctx.kwargs))
        return None, None, *(next(found) if needs else None for needs in ctx.needs_input_grad[2:])


def _traced_whole(op: OpOverload) -> Callable[..., Any]:
    looks = OPS[op]

    def run(*args: Any, **kwargs: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        if torch.is_grad_enabled() and any(arg.requires_grad and at for arg, at in zip(tensors, looks, strict=True)):
            return _Whole.apply(op, kwargs, *args)  # type: ignore[no-untyped-call]
        with torch._C._DisablePythonDispatcher():
            return op(*args, **kwargs)

    return run


def _written_back(op: OpOverload) -> Callable[..., Any]:
    """An op in place, as the op that makes a new tensor, whose gradient is that of a whole backward pass."""
    looks = OPS[_IN_PLACE[op]]

    def run(*args: Any, **kwargs: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        if torch.is_grad_enabled() and any(arg.requires_grad and at for arg, at in zip(tensors, looks, strict=True)):
            return args[0].copy_(_IN_PLACE[op](args[0].clone(), *args[1:], **kwargs))
        with torch._C._DisablePythonDispatcher():
            return op(*args, **kwargs)

    return run


_GRADIENTS = {op: _define(op) for op in OPS}
#: The ops of our own, whose memory depends on the data, too.
LOOK_AT_DATA = frozenset(_GRADIENTS.values())
_KERNELS = {op: _traced_whole(op) for op in OPS} | {op: _written_back(op) for op in _IN_PLACE}


def _install() -> PythonKernels:
    taken = take_traced_kernels(_KERNELS)
    for op, kernel in _KERNELS.items():
        op.py_kernels[DispatchKey.Autograd] = kernel
    return taken


def _uninstall(taken: PythonKernels) -> None:
    for op in _KERNELS:
        op.py_kernels.pop(DispatchKey.Autograd, None)
    put_kernels_back(taken)


#: Trace the backward pass of these ops as plain PyTorch runs it: ``with eager_backward(): ...``
eager_backward = SharedChange(_install, _uninstall)
