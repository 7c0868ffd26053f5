"""Measure the first step of graphs that a compiler has changed: their peak is not the predicted one.

The forward and the backward pass run apart, with the caller's code between them. What the step holds at most is the larger of

    the peak of the forward pass
    what the forward pass left (outputs, saved tensors) + the gradients that came + the peak of the backward pass

with parameter gradients left out, as a budget counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from rockmate.lower import boxed
from rockmate.meter import Meter
from rockmate.plan import Plan, format_bytes

log = logging.getLogger("rockmate")

Run = Callable[[list[Any]], Any]


class MeasuredStep:
    """Wraps the two passes of a step. The first forward pass that ends, and the first backward pass after it, are measured."""

    def __init__(self, plan: Plan, num_mutated_inputs: int, num_tangents: int, parameters: Iterable[int]) -> None:
        self._plan = plan
        self._num_mutated_inputs = num_mutated_inputs
        self._num_tangents = num_tangents
        self._parameters = frozenset(parameters)
        self._forward_peak_bytes: int | None = None
        self._left_bytes = 0
        self.peak_bytes: int | None = None

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
            if self._forward_peak_bytes is None or self.peak_bytes is not None:
                return run(args)
            came_bytes = _bytes_of(args[len(args) - self._num_tangents :])
            with _started(Meter(known=[arg for arg in args if isinstance(arg, torch.Tensor)])) as meter:
                gradients = run(args)
            if meter is None:
                return gradients
            own = [gradients[i] for i in self._parameters if i < len(gradients) and isinstance(gradients[i], torch.Tensor)]
            self.peak_bytes = max(self._forward_peak_bytes, self._left_bytes + came_bytes + meter.peak_excluding(own))
            self._tell()
            return gradients

        return boxed(measured)

    def _tell(self) -> None:
        assert self.peak_bytes is not None
        budget_bytes = self._plan.budget_bytes
        figures = (
            f"the compiled step held {format_bytes(self.peak_bytes)} at its peak; the budget is {format_bytes(budget_bytes)}, "
            f"the peak predicted for the unfused ops {format_bytes(self._plan.peak_bytes)}"
        )
        if self.peak_bytes > budget_bytes:
            lower = budget_bytes * budget_bytes // self.peak_bytes
            log.warning('[inductor] %s. A lower budget (about budget=%d) may keep it; compiler="native" does', figures, lower)
        else:
            log.info("[inductor] %s", figures)


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
