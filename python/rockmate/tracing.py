"""Make PyTorch's tracing quicker where that changes nothing but the time."""

from __future__ import annotations

import gc
import logging
from typing import Any

import torch
from torch import fx
from torch._dynamo import symbolic_convert
from torch.fx.passes import _tensorify_python_scalars

from rockmate.shared_change import SharedChange

_PRINT_READABLE = fx.GraphModule.print_readable


def _make_quick() -> list[Any]:
    saved = [
        gc.isenabled(),
        torch._dynamo.config.run_gc_after_compile,
        symbolic_convert.get_funcname,
        _tensorify_python_scalars._is_tensorify_enabled,
    ]
    gc.disable()
    torch._dynamo.config.run_gc_after_compile = False
    symbolic_convert.get_funcname = lambda filename, lineno: None  # type: ignore[assignment]
    fx.GraphModule.print_readable = _print_where_it_is_read  # type: ignore[method-assign, assignment]
    _tensorify_python_scalars._is_tensorify_enabled = lambda: False  # type: ignore[assignment]
    return saved


def _undo(saved: list[Any]) -> None:
    (
        collecting,
        torch._dynamo.config.run_gc_after_compile,
        symbolic_convert.get_funcname,
        _tensorify_python_scalars._is_tensorify_enabled,
    ) = saved
    fx.GraphModule.print_readable = _PRINT_READABLE  # type: ignore[method-assign]
    if collecting:
        gc.enable()


def _print_where_it_is_read(module: fx.GraphModule, print_output: bool = True, *args: Any, **kwargs: Any) -> str:
    if not print_output and not logging.getLogger("torch.__trace").handlers:
        return ""
    return _PRINT_READABLE(module, print_output, *args, **kwargs)


#: Trace without four things that take a good part of the time: ``with quick_tracing(): ...``
#:
#: Tracing makes millions of small objects that live until it ends: collecting garbage meanwhile, and once more right after,
#: finds none of it. Dynamo parses every source file that it meets for the names of functions that only its debug log shows.
#: And AOTAutograd writes every graph out as text for a structured log that is rarely kept.
#:
#: A fifth is left out because it is wrong: the pass that turns Python numbers into tensors takes every float64 tensor without
#: dimensions for such a number, traces again, and then loses what the model writes into it (a running loss as a buffer). This
#: backend is never given Python numbers that it would have to turn.
quick_tracing = SharedChange(_make_quick, _undo)
