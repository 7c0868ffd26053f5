"""Capture what is inside of PyTorch's own containers when a model is captured in pieces.

Dynamo traces through the code of ``torch.nn`` where a function of the user's calls it. But it begins no piece there: when it
has to break inside of an ``nn.Sequential``, the frame of that container runs as it is, and so do the layers in it. Here the
forward methods of ``torch.nn`` are taken for user's code. And since a loop in which Dynamo has to break runs as it is, too, the
one in ``nn.Sequential.forward`` is written out::

    for module in self:               module0, module1, module2 = self
        input = module(input)         input = module0(input)
                                      input = module1(input)          <- the break
                                      input = module2(input)

so that what is before the layer with the break is one piece, and what comes after it another. What a layer without children
does after a break of its own runs as it is: a batch normalization that reads how many batches it has seen would otherwise be
another piece at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from torch import nn
from torch._dynamo import trace_rules
from torch._dynamo.resume_execution import TORCH_DYNAMO_RESUME_IN_PREFIX

from rockmate.shared_change import SharedChange

LOOPED_FORWARD = nn.Sequential.forward
_check = trace_rules.check
MOST_WRITTEN_OUT = 64  # longer containers keep their loop
_written_out: list[Callable[[Any, Any], Any]] = []  # by length; complete before anything is captured in pieces


def _write_out(length: int) -> Callable[[Any, Any], Any]:
    """``nn.Sequential.forward`` for a container of so many modules."""
    modules = [f"module{i}" for i in range(length)]
    lines = [f"({''.join(name + ', ' for name in modules)}) = self", *(f"input = {name}(input)" for name in modules)]
    text = "def forward(self, input):\n" + "".join(f"    {line}\n" for line in lines) + "    return input\n"
    made: dict[str, Any] = {}
    exec(compile(text, f"<nn.Sequential of {length}>", "exec"), made)
    return made["forward"]  # type: ignore[no-any-return]


def sequential_forward(self: nn.Sequential, input: Any) -> Any:
    """What ``nn.Sequential.forward`` does, in code in which Dynamo can break."""
    if len(self) < len(_written_out):
        return _written_out[len(self)](self, input)
    for module in self:
        input = module(input)
    return input


def _is_skipped(obj: Any, is_inlined_call: bool = False, frame: Any = None) -> bool:
    """Dynamo's rule for the code that it passes over, without forward methods of modules."""
    skipped = _check(obj, is_inlined_call, frame)
    if not skipped or frame is None or not isinstance(obj, CodeType):
        return skipped
    module = frame.f_locals.get("self")
    if not isinstance(module, nn.Module):
        return True
    if obj.co_name.startswith(f"{TORCH_DYNAMO_RESUME_IN_PREFIX}_forward"):  # the rest of it after a break
        return next(module.children(), None) is None
    return obj.co_name != "forward"


def _open() -> None:
    if not _written_out:
        _written_out.extend(_write_out(length) for length in range(MOST_WRITTEN_OUT + 1))
    trace_rules.check = _is_skipped  # type: ignore[assignment]
    nn.Sequential.forward = sequential_forward  # type: ignore[method-assign]


def _close(_: None) -> None:
    trace_rules.check = _check
    nn.Sequential.forward = LOOPED_FORWARD  # type: ignore[method-assign]


#: Begin pieces inside of the containers of ``torch.nn``: ``with open_containers(): ...``
open_containers = SharedChange(_open, _close)
