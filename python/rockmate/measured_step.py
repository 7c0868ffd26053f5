"""Measure the first step of graphs that a compiler has changed: their peak is not the predicted one.

The forward and the backward pass run apart, with the caller's code between them. What the step holds at most is the larger of

    the peak of the forward pass
    what the forward pass left (outputs, saved tensors) + the gradients that came + the peak of the backward pass

with parameter gradients left out, as a budget counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from rockmate.lower import boxed
from rockmate.meter import Meter

Run = Callable[[list[Any]], Any]


class MeasuredStep:
    """Wraps the two passes of a step. The first forward pass that ends, and the first backward pass after it, are measured.

    ``on_peak`` is called with what that step held at most, in bytes, when its backward pass is over.
    """

    def __init__(
        self, num_mutated_inputs: int, num_tangents: int, parameters: Iterable[int], on_peak: Callable[[int], None]
    ) -> None:
        self._num_mutated_inputs = num_mutated_inputs
        self._num_tangents = num_tangents
        self._parameters = frozenset(parameters)
        self._forward_peak_bytes: int | None = None
        self._left_bytes = 0
        self._on_peak = on_peak
        self._is_over = False

    def forward(self, run: Run) -> Run:
        def measured(args: list[Any]) -> Any:
            if self._forward_peak_bytes is not None:
                return run(args)
            with _started(Meter(record=False)) as meter:
                outputs = run(args)
            if meter is None:
                return outputs
            # New contents of buffers are copied and dropped right after.
            self._left_bytes = meter.current_bytes - _bytes_of(outputs[: self._num_mutated_inputs])
            self._forward_peak_bytes = meter.peak_bytes
            return outputs

        return boxed(measured)

    def backward(self, run: Run) -> Run:
        def measured(args: list[Any]) -> Any:
            if self._forward_peak_bytes is None or self._is_over:
                return run(args)
            came_bytes = _bytes_of(args[len(args) - self._num_tangents :])
            with _started(Meter(known=[arg for arg in args if isinstance(arg, torch.Tensor)])) as meter:
                gradients = run(args)
            if meter is None:
                return gradients
            own = [gradients[i] for i in self._parameters if i < len(gradients) and isinstance(gradients[i], torch.Tensor)]
            self._is_over = True
            self._on_peak(max(self._forward_peak_bytes, self._left_bytes + came_bytes + meter.peak_excluding(own)))
            return gradients

        return boxed(measured)


@contextmanager
def _started(meter: Meter) -> Iterator[Meter | None]:
    """The meter, counting; ``None`` where it can't, since a profiler listens in its place."""
    with ExitStack() as stack:
        started = None
        with suppress(RuntimeError):
            started = stack.enter_context(meter)
        yield started


def _bytes_of(values: Sequence[Any]) -> int:
    storages = {v.untyped_storage()._cdata: v.untyped_storage().nbytes() for v in values if isinstance(v, torch.Tensor)}
    return sum(storages.values())
