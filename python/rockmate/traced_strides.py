"""Strides of traced values where PyTorch's rules say other than its kernels do.

A value's traced strides are those that later views rely on, and values are brought to them where they differ; a sum over other
strides adds in another order. Some ops are traced as arithmetic, whose result has its input's strides, where kernels give the
nearest memory format or a contiguous result; others by formulas that lose the strides which kernels keep.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp import decomposition_table, meta_table
from torch._ops import OpOverload
from torch._prims_common import compute_elementwise_output_strides, suggest_memory_format
from torch._subclasses.fake_impls import register_op_impl

aten = torch.ops.aten
_BATCH_NORMS = (
    aten._native_batch_norm_legit_no_training.default,
    aten._native_batch_norm_legit_functional.default,
    aten._native_batch_norm_legit.no_stats,
    aten._batch_norm_with_update.default,
    aten._batch_norm_with_update_functional.default,
    aten._batch_norm_no_update.default,
)


# The kernels' results are contiguous.
_CONTIGUOUS = (
    aten.normal.Tensor_Tensor,
    aten.rrelu_with_noise.default,
    aten.rrelu_with_noise_functional.default,
)
_CONTIGUOUS_ON_CPU = (aten.log_sigmoid_forward.default,)
# They are laid out as elementwise kernels do it: as the inputs are.
_ELEMENTWISE = (aten.copysign.Tensor, aten.div.Tensor_mode, aten.native_dropout_backward.default)

Rule = Callable[..., Any]


@functools.cache
def correct_traced_strides() -> None:
    """Replace the rules by which fake tensors get their strides; once in a process."""
    for op in _BATCH_NORMS:
        _replace_rule(op, lambda y, x, *_: y.contiguous(memory_format=suggest_memory_format(x)))
    for op in _CONTIGUOUS:
        _replace_rule(op, lambda y, *_: y.contiguous())
    for op in _CONTIGUOUS_ON_CPU:
        _replace_rule(op, lambda y, *_: y.contiguous() if y.device.type == "cpu" else y)
    for op in _ELEMENTWISE:
        _replace_rule(op, _as_elementwise)
    # A loss that is not reduced is laid out as its input.
    _replace_rule(aten.binary_cross_entropy.default, lambda y, x, *_: torch.empty_like(x) if y.shape == x.shape else y)


def _as_elementwise(y: Any, *args: Any) -> Any:
    strides = compute_elementwise_output_strides(*(arg.expand(y.shape) for arg in args if isinstance(arg, torch.Tensor)))
    return torch.empty_strided(y.shape, strides, dtype=y.dtype, device=y.device)


def _replace_rule(op: OpOverload, lay_out: Rule) -> None:
    """Have the first result of the op laid out by ``lay_out(result, *arguments)``."""

    def corrected(rule: Rule) -> Rule:
        @functools.wraps(rule)
        def run(*args: Any, **kwargs: Any) -> Any:
            result = rule(*args, **kwargs)
            if isinstance(result, torch.Tensor):
                return lay_out(result, *args)
            first, *others = result
            return lay_out(first, *args), *others

        return run

    formula = decomposition_table.get(op)
    if formula is not None and op not in meta_table and formula.__module__.startswith("torch._decomp"):
        decomposition_table[op] = corrected(formula)
        return
    rule = corrected(op.py_kernels[DispatchKey.Meta])

    def run_in_mode(mode: Any, _: Any, *args: Any, **kwargs: Any) -> Any:
        with mode:
            return rule(*args, **kwargs)

    register_op_impl(op)(run_in_mode)
