"""Outputs that share memory: each is differentiated where the model made it.

A model returns ``h`` and a view of it, ``h.t()``. AOTAutograd compiles a step that gives ``h`` alone and makes the view anew
outside of it, so that writing into one output is seen by the gradient of the other. Then the two gradients are summed before
the compiled backward pass begins, and where ``h`` has a third use the sum is another one than in plain PyTorch:

    plain    (g_h + g_use) + g_t        by the place of each use in the forward pass
    outside  (g_h + g_t) + g_use

Here the step is compiled as if the outputs had nothing to do with each other: each has a gradient of its own, which is added
where its use is. The tie between them is made again when the step has run (:func:`tied`): the smaller output becomes a view of
the larger one that keeps its own gradient as long as nobody writes into either.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rockmate import _runtime
from rockmate.shared_change import SharedChange


def _make() -> Any:
    original = torch._functionalize_is_multi_output_view  # type: ignore[attr-defined]

    def hides_aliases(tensor: Any) -> bool:
        """AOTAutograd leaves outputs of one ``chunk`` or ``unbind`` alone; with this, all that share memory, inputs' apart."""
        names = sys._getframe(1).f_locals
        if "inp_storage_refs" in names and "curr_storage" in names and names["curr_storage"] not in names["inp_storage_refs"]:
            return True
        return bool(original(tensor))

    torch._functionalize_is_multi_output_view = hides_aliases  # type: ignore[attr-defined]
    return original


def _undo(original: Any) -> None:
    torch._functionalize_is_multi_output_view = original  # type: ignore[attr-defined]


#: Differentiate outputs that share memory one by one: ``with separate_outputs(): ...``
separate_outputs = SharedChange(_make, _undo)


@dataclass(frozen=True)
class Ties:
    """What to do with the outputs of a compiled step.

    Attributes:
        views: an output, the one whose view it becomes, and whether that holds all of its elements.
        counts: an output, and the saved tensor in whose memory it lies.
    """

    views: list[tuple[int, int, bool]] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)


def tied(run: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled step, with its outputs tied to each other and to what it saves. The ties are the same at each call."""
    ties: Ties | None = None

    def run_and_tie(*args: Any) -> Any:
        nonlocal ties
        outputs = run(*args)
        if ties is None:
            ties = find_ties(outputs)
        if ties.counts:
            saved = _saved_tensors(outputs)
            for index, number in ties.counts:
                _runtime.count_writes_together(outputs[index], saved[number])
        if ties.views:
            outputs = list(outputs)
            for index, base, base_holds_all in ties.views:
                outputs[index] = _runtime.tied_view(outputs[base], outputs[index], base_holds_all)
        return outputs

    return run_and_tie


_MOST_MARKS = 1 << 22  # elements of a memory looked at one by one


def find_ties(outputs: Sequence[Any]) -> Ties:
    ties = Ties()
    by_memory: dict[int, list[int]] = {}
    for index, output in enumerate(outputs):
        if isinstance(output, Tensor) and output.requires_grad and not output._is_view() and output.numel() > 0:
            by_memory.setdefault(output.untyped_storage()._cdata, []).append(index)
    for number, saved in enumerate(_saved_tensors(outputs)):
        memory = saved.untyped_storage()._cdata if saved.layout is torch.strided else 0
        if not saved.requires_grad or not saved.is_leaf:  # neither a parameter nor another input
            ties.counts.extend((index, number) for index in by_memory.get(memory, ()))
    for group in by_memory.values():
        if len(group) < 2 or not _any_shared([outputs[index] for index in group]):
            continue
        first, end = (pick(_extent(outputs[i])[side] for i in group) for side, pick in ((0, min), (1, max)))
        whole = [i for i in group if _extent(outputs[i]) == (first, end) and outputs[i].numel() == end - first]
        base = next((i for i in whole if outputs[i].is_contiguous()), (whole or group)[0])
        ties.views.extend((index, base, bool(whole)) for index in group if index != base)
    return ties


def _saved_tensors(outputs: Sequence[Any]) -> Sequence[Tensor]:
    for output in outputs:
        if isinstance(output, Tensor) and type(output.grad_fn).__name__ == "CompiledFunctionBackward":
            return output.grad_fn.saved_tensors  # type: ignore[union-attr, no-any-return]
    return ()


def _extent(tensor: Tensor) -> tuple[int, int]:
    """The places in its memory from its first element to after its last."""
    first = int(tensor.storage_offset())
    return first, first + 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _any_shared(tensors: list[Tensor]) -> bool:
    """Whether two of them have an element in common. The halves of a tensor lie in one memory and have none."""
    end = max(_extent(tensor)[1] for tensor in tensors)
    if end > _MOST_MARKS:
        extents = sorted(_extent(tensor) for tensor in tensors)
        return any(later[0] < earlier[1] for earlier, later in itertools.pairwise(extents))
    marks = torch.zeros(end, dtype=torch.bool)
    for tensor in tensors:
        mine = marks.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if mine.any():
            return True
        mine.fill_(True)
    return False
