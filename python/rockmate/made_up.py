"""Inputs on which an op is run to be measured.

Most ops take anything of the right sizes and types. Some do not: a triangular solve divides by the diagonal, Cholesky's
factorization wants a positive definite matrix, and the pivots of an LU factorization are those of a matrix. For these, what
:func:`ways_to_make_inputs` gives is tried in turn until the op takes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils._pytree import tree_map

Inputs = Callable[[fx.Node], Any]  # the real value to stand for a node's


def ways_to_make_inputs(is_opaque: Callable[[fx.Node], bool]) -> Iterator[Inputs]:
    """Made up from sizes and types; the same with matrices that are positive definite; computed by the ops before from these.

    Args:
        is_opaque: whether a value's layout is known to the op alone that makes it, so that it can't be made up.
    """
    yield _Computed(0, is_opaque, made_up_tensor)
    for levels in (0, 1, 2, 4):
        yield _Computed(levels, is_opaque, _with_dominant_diagonal)


def ways_to_fill(is_opaque: Callable[[fx.Node], bool]) -> Iterator[Inputs]:
    """For ops that do other things for other data: nothing special, a single zero, zeros, ones."""
    for fill in (made_up_tensor, _with_one_zero, _zeros, _ones):
        yield _Computed(0, is_opaque, fill)


class _Computed:
    """Values computed by the last ``levels`` ops before, from made-up ones."""

    def __init__(self, levels: int, is_opaque: Callable[[fx.Node], bool], make_up: Callable[[Any], Any]) -> None:
        self._levels = levels
        self._is_opaque = is_opaque
        self._make_up = make_up
        self._values: dict[tuple[fx.Node, int], Any] = {}

    def __call__(self, node: fx.Node) -> Any:
        return self._value(node, self._levels)

    def _value(self, node: fx.Node, levels: int) -> Any:
        key = node, levels
        if key not in self._values:
            maker, index = (node.args[0], node.args[1]) if node.target is operator.getitem else (node, None)
            assert isinstance(maker, fx.Node)
            is_op = maker.op == "call_function" and isinstance(maker.target, torch._ops.OpOverload)
            if is_op and (levels > 0 or self._is_opaque(node)):
                result = self._result(maker, max(levels - 1, 0))
                self._values[key] = result if index is None else result[index]
            else:
                self._values[key] = tree_map(self._make_up, node.meta["val"])
        return self._values[key]

    def _result(self, maker: fx.Node, levels: int) -> Any:
        with torch.random.fork_rng(devices=[]):
            args = fx.node.map_arg(maker.args, lambda node: self._value(node, levels))
            kwargs = fx.node.map_arg(dict(maker.kwargs), lambda node: self._value(node, levels))
            return maker.target(*args, **kwargs)  # type: ignore[operator]


def made_up_tensor(like: Any) -> Any:
    """A real tensor with the sizes, strides, dtype and device of a traced one. Integers are 0, so that they index anything.

    It lies in a storage as large, at the same offset, and is lazily conjugated if the traced one is: ops that copy a tensor
    with its strides copy the whole storage, and those that can't work on conjugates resolve them first.
    """
    if not isinstance(like, Tensor):
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


def _with_dominant_diagonal(like: Any) -> Any:
    """Square matrices get a large diagonal: they are well-conditioned, and positive definite as far as they are symmetric."""
    made = made_up_tensor(like)
    if isinstance(made, Tensor) and made.dim() >= 2 and made.shape[-1] == made.shape[-2] and _has_fractions(made):
        made.diagonal(dim1=-2, dim2=-1).fill_(2.0 * made.shape[-1])
    return made


def _with_one_zero(like: Any) -> Any:
    made = made_up_tensor(like)
    if isinstance(made, Tensor) and made.numel() > 0:
        made[(0,) * made.dim()] = 0
    return made


def _zeros(like: Any) -> Any:
    made = made_up_tensor(like)
    return made.fill_(0) if isinstance(made, Tensor) else made


def _ones(like: Any) -> Any:
    made = made_up_tensor(like)
    return made.fill_(1) if isinstance(made, Tensor) else made


def _has_fractions(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex
