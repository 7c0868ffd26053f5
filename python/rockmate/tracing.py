"""Make PyTorch's tracing quicker where that changes nothing but the time."""

from __future__ import annotations

import functools
import gc
import logging
import sys
from typing import Any

import torch
from torch import fx
from torch._dynamo import symbolic_convert
from torch._dynamo.variables.higher_order_ops import LocalMapWrappedHigherOrderVariable
from torch._higher_order_ops import effects
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental import proxy_tensor
from torch.fx.passes import _tensorify_python_scalars

from rockmate.shared_change import SharedChange

_print_readable = fx.GraphModule.print_readable
_snapshot_fake = proxy_tensor.snapshot_fake
_should_wrap_in_hop = LocalMapWrappedHigherOrderVariable.should_wrap_in_hop


def _print_where_it_is_read(module: fx.GraphModule, print_output: bool = True, *args: Any, **kwargs: Any) -> str:
    if not print_output and not logging.getLogger("torch.__trace").handlers:
        return ""
    return _print_readable(module, print_output, *args, **kwargs)


def _keep_fake(val: torch.Tensor, include_real: bool = False) -> torch.Tensor | None:
    is_plain = isinstance(val, FakeTensor) and not val.requires_grad and val.real_tensor is None
    return val if is_plain else _snapshot_fake(val, include_real)


def _is_local_map(value: Any) -> bool:
    return "torch.distributed.tensor.experimental._func_map" in sys.modules and _should_wrap_in_hop(value)


#: (where, name, what takes its place)
_CHANGES: list[tuple[Any, str, Any]] = [
    # Dynamo parses every source file that it meets for the names of functions that only its debug log shows.
    (symbolic_convert, "get_funcname", lambda filename, lineno: None),
    # AOTAutograd writes every graph out as text for a structured log that is rarely kept.
    (fx.GraphModule, "print_readable", _print_where_it_is_read),
    # The traced value of each node is copied in case it is changed later: here all that is traced has been made functional.
    (proxy_tensor, "snapshot_fake", _keep_fake),
    # What nobody has imported (it takes long) can't be what Dynamo looks at.
    (LocalMapWrappedHigherOrderVariable, "should_wrap_in_hop", staticmethod(_is_local_map)),
    # Answers that depend on the op alone, asked each time that it is traced.
    (effects, "has_aliasing", functools.cache(effects.has_aliasing)),
    # The one that is left out because it is wrong: the pass that turns Python numbers into tensors takes every float64 tensor
    # without dimensions for such a number, traces again, and then loses what the model writes into it (a running loss as a
    # buffer). This backend is never given Python numbers that it would have to turn.
    (_tensorify_python_scalars, "_is_tensorify_enabled", lambda: False),
    (torch._dynamo.config, "run_gc_after_compile", False),
]


def _make_quick() -> list[Any]:
    saved = [vars(owner)[name] if isinstance(owner, type) else getattr(owner, name) for owner, name, _ in _CHANGES]
    for owner, name, replacement in _CHANGES:
        setattr(owner, name, replacement)
    collecting = gc.isenabled()
    gc.disable()
    return [saved, collecting]


def _undo(made: list[Any]) -> None:
    saved, collecting = made
    for (owner, name, _), original in zip(_CHANGES, saved, strict=True):
        setattr(owner, name, original)
    if collecting:
        gc.enable()


#: Trace without what takes a good part of the time and changes nothing: ``with quick_tracing(): ...``
#:
#: Tracing makes millions of small objects that live until it ends: collecting garbage meanwhile, and once more right after,
#: finds none of it. For the rest see ``_CHANGES``.
quick_tracing = SharedChange(_make_quick, _undo)
