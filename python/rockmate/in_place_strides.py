"""What is changed in place keeps its strides.

A tensor stays where it is when it is changed in place. Functionalization makes a new one instead, with the strides that the op
gives to a result: dense ones for a tensor with gaps, those of the first factor for ``addmm_``. Kernels that read other strides,
or that begin elsewhere within a vector, round otherwise: the new tensor is copied to where the old one was. Products of
matrices that are added in place round by the strides of the result too: there the op itself runs on such a copy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

from rockmate.errors import CaptureError
from rockmate.shared_change import SharedChange

aten = torch.ops.aten
_dispatch = FunctionalTensorMode.__torch_dispatch__
_ALIGNMENT = 64  # bytes: of all that PyTorch allocates, and as long as the longest vector

_library = torch.library.Library("rockmate", "FRAGMENT")
_library.define("laid_out(Tensor value, SymInt[] strides, SymInt offset) -> Tensor")


@torch.library.impl(_library, "laid_out", "CompositeExplicitAutograd")
@torch.library.impl(_library, "laid_out", "Meta")
def _laid_out(value: Tensor, strides: list[int], offset: int) -> Tensor:
    """A copy with these strides that begins so many elements after the start of its memory."""
    last = sum((size - 1) * stride for size, stride in zip(value.shape, strides, strict=True))
    return value.new_empty(offset + last + 1).as_strided(value.shape, strides, offset).copy_(value)


def _in_place(op: OpOverload) -> Callable[..., Tensor]:
    def run(value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return op(_laid_out(value, list(value.stride()), _offset(value)), *args, **kwargs)  # type: ignore[no-any-return]

    return run


#: Of an op in place: what does the same to a copy that lies as the tensor does.
_ON_A_COPY = {}
for _op in (aten.addmm_.default, aten.addmv_.default, aten.addbmm_.default, aten.baddbmm_.default, aten.addr_.default):
    _name = _op._schema.name.removeprefix("aten::") + "on_a_copy"
    _library.define(str(_op._schema).replace(_op._schema.name, _name).replace("Tensor(a!)", "Tensor"))
    _library.impl(_name, _in_place(_op), "CompositeExplicitAutograd")
    _library.impl(_name, _in_place(_op), "Meta")
    _ON_A_COPY[_op] = getattr(torch.ops.rockmate, _name).default


@functools.cache
def _written_arguments(op: OpOverload) -> tuple[int, ...]:
    """Positions of what an op writes into; none for ops such as ``transpose_``, which are there to change the strides."""
    if torch.Tag.inplace_view in op.tags:
        return ()
    arguments = enumerate(op._schema.arguments)
    return tuple(i for i, arg in arguments if arg.alias_info is not None and arg.alias_info.is_write and not arg.kwarg_only)


def _dispatch_keeping_strides(
    mode: FunctionalTensorMode, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    if not isinstance(func, OpOverload) or not func._schema.is_mutable:
        return _dispatch(mode, func, types, args, kwargs)
    written = [leaf for i in _written_arguments(func) if i < len(args) for leaf in tree_leaves(args[i])]
    for tensor in written:
        _refuse_expanded(tensor, func)
    given, named = tree_map_only(FunctionalTensor, _inner, (args, kwargs or {})) if func in _ON_A_COPY else ((), {})
    result = _dispatch(mode, func, types, args, kwargs)
    for tensor in written:
        if isinstance(tensor, FunctionalTensor) and _lies_elsewhere(value := _inner(tensor), tensor):
            on_a_copy = _ON_A_COPY.get(func)
            place = tensor.stride(), _offset(tensor)
            tensor.replace_(on_a_copy(*given, **named) if on_a_copy else torch.ops.rockmate.laid_out(value, *place))
            tensor.commit_update()
            tensor.sync()
    return result


def _refuse_expanded(tensor: Any, op: OpOverload) -> None:
    """Functionalization adds up what is written into elements that are one; plain PyTorch keeps the last, or refuses."""
    if not isinstance(tensor, Tensor) or tensor.layout is not torch.strided:
        return
    if any(size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
        raise CaptureError(
            f"[capture] {op} writes into an expanded tensor, whose elements lie in one place: what is left there depends on "
            "the order of the writes. Write into a copy: x.expand(...).clone()"
        )


def _inner(tensor: FunctionalTensor) -> Tensor:
    """The tensor that stands for it now, what was written into its base included."""
    return tensor.from_functional()


def _lies_elsewhere(value: Tensor, tensor: FunctionalTensor) -> bool:
    """Whether it lies otherwise than the tensor that it stands for, which has the layout that it was made with."""
    if value.layout is not torch.strided or value.numel() == 0 or value.shape != tensor.shape:
        return False
    strides = zip(value.shape, value.stride(), tensor.stride(), strict=True)
    return _offset(value) != _offset(tensor) or any(size > 1 and mine != its for size, mine, its in strides)


def _offset(tensor: Tensor) -> int:
    """Elements between the last aligned address and the first of the tensor."""
    return int(tensor.storage_offset()) % (_ALIGNMENT // tensor.element_size())


def _set(dispatch: Any) -> None:
    FunctionalTensorMode.__torch_dispatch__ = dispatch  # type: ignore[method-assign]


#: Trace with it: ``with kept_strides(): ...``
kept_strides = SharedChange(lambda: _set(_dispatch_keeping_strides), lambda _: _set(_dispatch))
