"""One captured step: its plan, its two programs, and what happens when the gradients that arrive are not those planned for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch.fx._lazy_graph_module import _make_graph_module

from rockmate.attached_inputs import gradients_unplanned, hide_gradients, show_gradients
from rockmate.capture import Capture, import_joint_graph
from rockmate.emit import EmittedGraphs, emit, emit_late, emit_on_demand
from rockmate.fallback import held_for_others
from rockmate.inductor import compile_with_inductor
from rockmate.input_views import tell_of_other_sums
from rockmate.joint import JointGraph, read_joint_graph, tangents_of
from rockmate.leaf_gradients import copy_where_engine_would
from rockmate.lower import boxed, lower
from rockmate.measured_step import MeasuredStep
from rockmate.meter import paused
from rockmate.options import Options
from rockmate.piece_options import PieceOption, PieceOptions
from rockmate.plan import Plan
from rockmate.planning import plan_capture, plan_piece
from rockmate.separate_gradients import Terms, separate_terms
from rockmate.tangents import drop_tangents
from rockmate.tracing import quick_tracing

log = logging.getLogger("rockmate")


@dataclass(frozen=True)
class PieceHooks:
    """What a step that is a piece of a larger one has to ask and to tell (see :mod:`rockmate.pieces`).

    Attributes:
        goes_on: whether the model goes on after this piece.
        num_inputs: how many inputs the piece has.
        repeated_inputs: which of them follow once more, to take terms of a gradient (:mod:`rockmate.separate_gradients`).
        terms: is told how many terms the gradients have.
        option: the schedule to use; ``None`` to save what all late options save, and to choose one when the backward begins.
        on_options: called with the options for a set of gradients.
        on_backward: called when a backward pass begins, with the numbers of the gradients that came; gives the bytes that it
            may take, ``None`` when there is no limit.
    """

    goes_on: bool
    num_inputs: int
    repeated_inputs: list[int]
    terms: Terms
    option: PieceOption | None
    on_options: Callable[[frozenset[int], PieceOptions], None]
    on_backward: Callable[[frozenset[int]], int | None]


class StepPlan:
    """The plan of one joint graph, made inside AOTAutograd's partition call, and the backward programs that follow from it.

    Attributes:
        expected: numbers of the tangents that the plan counts on.
        plan: the user's view of the plan.
        observed: the tangents that arrived last; differs from ``expected`` when the model is trained through other outputs.
        leaves: numbers of the inputs whose gradients the autograd engine accumulates.

    Of a compiled step ``on_measured`` is told what its first run held at the peak, in bytes, with its plan.
    """

    def __init__(
        self,
        options: Options,
        parameters: frozenset[int],
        expected: frozenset[int] | None,
        piece: PieceHooks | None = None,
        limit_bytes: int | None = None,
        on_measured: Callable[[Plan, int], None] | None = None,
    ) -> None:
        self.options = options
        self._limit_bytes = limit_bytes  # of the predicted peak, below the budget
        self._on_measured = on_measured
        self._piece = piece
        self._parameters = parameters  # which inputs of the graph are parameters
        self.expected = expected
        self.observed = expected
        self.plan: Plan | None = None
        self.leaves: frozenset[int] = frozenset()
        self._module: fx.GraphModule | None = None
        self._joint: JointGraph | None = None
        self._emitted: EmittedGraphs | None = None
        self._unplanned: list[int] = []  # inputs that get a gradient only when one comes that is not expected
        self._num_tangents = 0
        self._num_mutated_inputs = 0
        self._primal_parameters: set[int] = set()
        self._backward: dict[Any, Callable[[list[Any]], Any]] = {}
        self._measured: MeasuredStep | None = None
        self._late: dict[frozenset[int], tuple[Capture, PieceOptions]] = {}

    def __deepcopy__(self, memo: Any) -> StepPlan:
        return self  # rides along in the metadata of graph modules that AOTAutograd copies

    def partition(
        self,
        joint_module: fx.GraphModule,
        joint_inputs: Any,
        *,
        num_fwd_outputs: int,
        **_: Any,
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        """AOTAutograd's partition function: plan the joint graph and return the forward and backward modules."""
        stages: dict[str, float] = {}
        start = time.perf_counter()
        self._module = joint_module
        copy_where_engine_would(joint_module.graph, num_fwd_outputs, self.leaves)
        tangents = tangents_of(joint_module.graph)
        self._num_tangents = len(tangents)
        everything = frozenset(i for i, node in enumerate(tangents) if not _is_of_written_leaf(node, self.leaves))
        if self.expected is None:
            self.expected = _likely_tangents(
                tangents, everything, self.options.tangents, goes_on=self._piece is not None and self._piece.goes_on
            )
        self.observed = self.expected
        descs = joint_module.graph.output_node().meta["desc"]
        joint = self._read(self.expected, num_fwd_outputs)
        self._joint = joint
        self._num_mutated_inputs = sum(isinstance(desc, InputMutationAOTOutput) for desc in descs[:num_fwd_outputs])
        self._primal_parameters = {
            index for index, node in enumerate(joint.primals) if getattr(node.meta.get("desc"), "idx", None) in self._parameters
        }
        full = joint if self.expected == everything else self._read(everything, num_fwd_outputs)
        capture = self._import(joint, full)
        stages["capture"] = time.perf_counter() - start
        if self._piece is None:
            chosen, self.plan = plan_capture(capture, self.options, stages, self._limit_bytes)
            schedule = chosen.schedule
        else:
            schedule = self._schedule_of_piece(capture, stages)
        start = time.perf_counter()
        self._emitted = emit(joint, capture.storage_of, schedule.actions, schedule.forward_end, descs, full)
        forward = _make_graph_module(joint_module, self._emitted.forward)
        self._unplanned = gradients_unplanned(joint.backward_outputs, full.backward_outputs)
        show_gradients(self._emitted.backward, self._unplanned)
        backward = _make_graph_module(joint_module, self._emitted.backward)
        forward.meta["rockmate"] = backward.meta["rockmate"] = self
        stages["emit"] = time.perf_counter() - start
        if self.plan is not None:
            if self.options.on_plan is not None:
                self.options.on_plan(self.plan)
            log.info("%s", self.plan)
        return forward, backward

    def _import(self, joint: JointGraph, full: JointGraph | None = None) -> Capture:
        held = held_for_others(joint, full) if full is not None and full is not joint else None
        return import_joint_graph(
            joint,
            self._num_mutated_inputs,
            self._primal_parameters,
            self.options.name,
            held,
            hands_on=self._piece is not None,
        )

    def _schedule_of_piece(self, capture: Capture, stages: dict[str, float]) -> Any:
        assert self._piece is not None and self.expected is not None
        if self._piece.option is not None:
            return self._piece.option.schedule
        options = plan_piece(capture, self.options, stages)
        self._late[self.expected] = capture, options
        self._piece.on_options(self.expected, options)
        return options.late[0].schedule

    @property
    def compiler(self) -> str:
        """Who compiles the planned graphs. Those that are chosen when the backward pass begins are run as they are."""
        return "native" if self._late else self.options.compiler

    def forward_program(self, planned: fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        """The callable that AOTAutograd runs as the forward pass."""
        assert self._joint is not None
        if self._piece is None:  # a piece hands on the terms of its inputs' gradients one by one
            tell_of_other_sums(self._joint)
        if self.compiler == "native":
            return lower(planned)
        run = compile_with_inductor(planned, inputs)
        if self.plan is None or self._on_measured is None:
            return run
        on_peak = partial(self._on_measured, self.plan)
        places = self._joint.gradient_places(self._primal_parameters)
        self._measured = MeasuredStep(self._num_mutated_inputs, self._num_tangents, places, on_peak)
        return self._measured.forward(run)

    def backward_program(self, planned: fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        """The callable that AOTAutograd runs as the backward pass: picks the program for the tangents that arrived."""
        assert self.expected is not None
        hide_gradients(planned, self._unplanned)
        if self.compiler == "native":
            self._backward[self.expected] = lower(planned)
        else:
            run = compile_with_inductor(planned, inputs, is_backward=True)
            self._backward[self.expected] = run if self._measured is None else self._measured.backward(run)
        num_tangents = self._num_tangents

        def run_backward(args: list[Any]) -> Any:
            first = len(args) - num_tangents
            arrived = frozenset(i for i in range(num_tangents) if args[first + i] is not None)
            self.observed = arrived
            within_bytes = self._piece.on_backward(arrived) if self._piece is not None else None
            if self._late:
                return self._late_program(arrived, within_bytes)(args)
            program = self._backward.get(arrived)
            if program is None:
                program = self._backward[arrived] = self._lower_unexpected(arrived)
            return program(args)

        return boxed(run_backward)

    def _late_program(self, arrived: frozenset[int], within_bytes: int | None) -> Callable[[list[Any]], Any]:
        """The backward pass that computes everything again, for the gradients that came and the bytes that are left."""
        assert self._module is not None and self._joint is not None and self._emitted is not None and self._piece is not None
        with paused(), quick_tracing():
            if arrived not in self._late:
                capture = self._import(self._read(arrived, len(self._joint.forward_outputs)))
                options = plan_piece(capture, self.options, {})
                self._late[arrived] = capture, options
                self._piece.on_options(arrived, options)
            capture, options = self._late[arrived]
            option = options.late[0] if within_bytes is None else options.late_within(within_bytes)
            key = arrived, id(option)
            program = self._backward.get(key)
            if program is None:
                graph = emit_late(capture.joint, capture.storage_of, option.schedule, self._emitted)
                program = self._backward[key] = lower(_make_graph_module(self._module, graph))
        return program

    def _lower_unexpected(self, arrived: frozenset[int]) -> Callable[[list[Any]], Any]:
        assert self._module is not None and self._joint is not None and self._emitted is not None
        log.info("a backward pass through outputs %s came unplanned: recomputing on demand", sorted(arrived))
        joint = self._read(arrived, len(self._joint.forward_outputs))
        graph = emit_on_demand(joint, self._emitted)
        return lower(_make_graph_module(self._module, graph))

    def _read(self, given: frozenset[int], num_forward_outputs: int) -> JointGraph:
        assert self._module is not None
        graph = self._module.graph
        kept, stand_for = drop_tangents(graph, tangents_of(graph), given)
        if self._piece is not None:
            piece = self._piece
            kept = separate_terms(kept, num_forward_outputs, piece.repeated_inputs, piece.num_inputs, piece.terms)
        return read_joint_graph(kept, num_forward_outputs, stand_for)


def _is_of_written_leaf(tangent: fx.Node, leaves: Collection[int]) -> bool:
    """Whether this is the gradient of what is written into a leaf, such as a weight that is clamped. It never comes: leaves are
    written into where gradients are off."""
    output = getattr(tangent.meta.get("desc"), "output", None)
    return isinstance(output, InputMutationAOTOutput) and getattr(output.mutated_input, "idx", None) in leaves


def _likely_tangents(tangents: list[fx.Node], everything: frozenset[int], wanted: str, goes_on: bool) -> frozenset[int]:
    """Which gradients out of ``everything`` will come: those of the scalars if there are any (a loss beside logits and caches),
    else all.

    When the model goes on after these ops it is the other way round: scalars were made to be looked at (``item()``).
    """
    if wanted == "all":
        return everything
    scalars = [
        i
        for i, node in enumerate(tangents)
        if i in everything and isinstance(v := node.meta.get("val"), torch.Tensor) and v.dim() == 0
    ]
    if goes_on:
        return everything.difference(scalars) or everything
    return frozenset(scalars) or everything
