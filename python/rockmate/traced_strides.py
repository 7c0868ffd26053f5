"""Strides of traced values where PyTorch's rules say other than its kernels do.

A value's traced strides are those that later views rely on, and values are brought to them where they differ; a sum over other
strides adds in another order. Batch normalization is traced as arithmetic, whose result has its input's strides; kernels give
the nearest memory format.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._prims_common import suggest_memory_format

aten = torch.ops.aten
_BATCH_NORMS = (
    aten._native_batch_norm_legit_no_training.default,
    aten._native_batch_norm_legit_functional.default,
    aten._native_batch_norm_legit.no_stats,
)


@functools.cache
def correct_traced_strides() -> None:
    """Replace the rules by which fake tensors get their strides; once in a process."""
    for op in _BATCH_NORMS:
        decomposition_table[op] = _in_memory_format(decomposition_table[op])


def _in_memory_format(rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def run(x: Any, *args: Any, **kwargs: Any) -> Any:
        y, *statistics = rule(x, *args, **kwargs)
        return y.contiguous(memory_format=suggest_memory_format(x)), *statistics

    return run
