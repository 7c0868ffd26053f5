"""The ways to run one piece of a model that was captured in several.

A plan for a whole step is judged by its peak alone. In a model of several pieces, what a piece keeps between its forward and
its backward pass is held while all the later pieces run: the plans of a piece differ in *kept bytes*, too. The planner's curve
minimizes the peak. From each of its plans others are made that keep less, by running a range of the forward ops once more
right before the backward pass first reads what they made:

    plan of the curve      f0 f1 f2 f3 | b3 b2 b1 b0                keeps what f0 .. f3 made
    range f0 .. f1 again   f0 f1 f2 f3 | b3 b2 f0 f1 b1 b0          keeps what f2 and f3 made
    everything again       f0 f1 f2 f3 | f0 f1 f2 f3 b3 b2 b1 b0    keeps the inputs only: a *late* option

(and what can't be computed twice, or takes less than the state of the generator that drew it).

All late options of a piece save the same in the forward pass, so that one can be chosen when the backward pass begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from rockmate import _planner

MOST_BASE_PLANS = 20  # plans of the curve that others are made from
MOST_OPTIONS = 64
RANGE_CUTS = 4  # ranges begin and end at these parts of the forward pass


@dataclass(frozen=True)
class PieceOption:
    """One schedule of a piece, with what matters to the other pieces.

    Attributes:
        schedule: verified.
        forward_peak_bytes: the most bytes held inside the forward pass.
        kept_bytes: bytes held when the forward pass has ended: outputs, and what is saved for the backward pass.
        backward_peak_bytes: the most bytes held inside the backward pass. Outputs are gone by then, unless it reads them.
        time_us: of both passes.
        overhead: of it over the time without recomputation, minus one.
        planner: who made the schedule.
        is_late: whether everything is computed again, so that the forward pass saves what it saves for all late options.
    """

    schedule: Any
    forward_peak_bytes: int
    kept_bytes: int
    backward_peak_bytes: int
    time_us: float
    overhead: float
    planner: str
    is_late: bool = False

    @property
    def peak_bytes(self) -> int:
        return max(self.forward_peak_bytes, self.backward_peak_bytes)

    def price(self) -> tuple[int, int, int, float]:
        return self.forward_peak_bytes, self.kept_bytes, self.backward_peak_bytes, self.time_us


@dataclass(frozen=True)
class PieceOptions:
    """All options of a piece worth having. ``late`` are those of them that are late, the fastest first."""

    graph: Any
    options: list[PieceOption]
    late: list[PieceOption]
    store_all: PieceOption
    curve: Any

    def late_within(self, backward_peak_bytes: int) -> PieceOption:
        """The fastest late option whose backward pass keeps the peak; the one with the least peak if none does."""
        for option in self.late:
            if option.backward_peak_bytes <= backward_peak_bytes:
                return option
        return self.least_late

    @property
    def least_late(self) -> PieceOption:
        return min(self.late, key=lambda option: option.backward_peak_bytes)


def piece_options(graph: Any, curve: Any) -> PieceOptions:
    """Make the options of a piece from the curve of its plans."""
    base = _spread(curve.plans, MOST_BASE_PLANS)
    num_forward_ops = graph.num_forward_ops
    ops = graph.ops
    store_all = _price(graph, _planner.store_all_sequence(graph))
    found = [store_all, *(_price(graph, plan.sequence, plan.planner) for plan in curve.plans)]
    late: list[PieceOption] = []
    sequences = [_planner.store_all_sequence(graph), *(plan.sequence for plan in base)]
    cuts = sorted({num_forward_ops * i // RANGE_CUTS for i in range(RANGE_CUTS + 1)})
    kept_draws = _cheap_draws(graph)
    for sequence in sequences:
        if kept_draws.isdisjoint(sequence[num_forward_ops:]):
            everything = _run_again(ops, sequence, num_forward_ops, 0, num_forward_ops, kept_draws, at_once=True)
            late.append(_price(graph, everything, "everything again", is_late=True))
        for i, first in enumerate(cuts):
            for last in cuts[i + 1 :]:
                found.append(_price(graph, _run_again(ops, sequence, num_forward_ops, first, last), "range again"))
    late = _not_beaten(late)
    options = _spread(sorted(_not_beaten([*found, *late]), key=lambda o: o.time_us), MOST_OPTIONS)
    late_ones = sorted(late, key=lambda option: option.time_us)
    for needed in (late_ones[-1], min(late, key=lambda o: o.backward_peak_bytes), store_all):
        if needed not in options:
            options.append(needed)
    return PieceOptions(graph, options, late_ones, store_all, curve)


def _price(graph: Any, sequence: Sequence[int], planner: str = "store-all", is_late: bool = False) -> PieceOption:
    sequence = _planner.without_dead_recomputations(graph, sequence)
    schedule = _planner.schedule_from_sequence(graph, sequence)
    simulation = _planner.simulate(graph, schedule)  # refuses what the verifier refuses
    inside, end = simulation.bytes_inside, schedule.forward_end
    return PieceOption(
        schedule=schedule,
        forward_peak_bytes=max(inside[:end], default=0),
        kept_bytes=_kept_bytes(graph, simulation.bytes_after[end - 1] if end else 0, schedule),
        backward_peak_bytes=max(inside[end:], default=0),
        time_us=simulation.time_us,
        overhead=simulation.overhead,
        planner=planner,
        is_late=is_late,
    )


def _kept_bytes(graph: Any, saved_bytes: int, schedule: Any) -> int:
    """What is saved, and the outputs: whoever they are handed to holds them until its own backward pass is over."""
    freed = {id for kind, id in schedule.actions[: schedule.forward_end] if kind == "free"}
    values = graph.values
    return saved_bytes + sum(values[id].charged_bytes for id in freed if values[id].retention == "forward_end")


def _run_again(
    ops: Sequence[Any],
    sequence: Sequence[int],
    num_forward_ops: int,
    first: int,
    last: int,
    but: AbstractSet[int] = frozenset(),
    at_once: bool = False,
) -> list[int]:
    """The sequence with forward ops ``first .. last`` run again before anything of the backward pass reads what they made."""
    again = [op for op in range(first, last) if ops[op].recomputable and op not in but]
    made = {value for op in again for value in ops[op].outputs}
    backward = list(sequence[num_forward_ops:])
    at = 0 if at_once else next((i for i, op in enumerate(backward) if not made.isdisjoint(ops[op].inputs)), len(backward))
    return [*sequence[:num_forward_ops], *backward[:at], *again, *backward[at:]]


def _cheap_draws(graph: Any) -> set[int]:
    """Random forward ops whose results take less than the generator's state, which has to be kept to draw them again."""
    values = graph.values
    return {
        id
        for id, op in enumerate(graph.ops[: graph.num_forward_ops])
        if op.is_random and sum(values[output].bytes for output in op.outputs) <= 2 * graph.rng_state_bytes
    }


def _not_beaten(options: Iterable[PieceOption]) -> list[PieceOption]:
    """Without those that another option equals or beats in everything."""
    kept: list[PieceOption] = []
    for option in sorted(options, key=PieceOption.price):
        price = option.price()
        if not any(all(a <= b for a, b in zip(other.price(), price, strict=True)) for other in kept):
            kept.append(option)
    return kept


def _spread(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of the items, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]
