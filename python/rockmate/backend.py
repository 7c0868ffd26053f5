"""The ``torch.compile`` backend."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
import torch._inductor.config
from torch import fx
from torch._functorch._aot_autograd.schemas import MemoryFormatMeta, PlainTensorMeta
from torch._functorch.aot_autograd import aot_module_simplified
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx._lazy_graph_module import _use_lazy_graph_module

from rockmate.aliased_outputs import separate_outputs, tied
from rockmate.autocast import share_autocasts
from rockmate.cast_weights import CastWeights
from rockmate.checks import check_dynamo_graph
from rockmate.decompositions import DECOMPOSITIONS, keep_addcdiv_whole, restore_fused_arithmetic, spell_out_draws
from rockmate.eager_backward import eager_backward
from rockmate.eager_kernels import eager_kernels
from rockmate.in_place_strides import kept_strides
from rockmate.inductor import check_inductor, compile_with_inductor
from rockmate.lower import lower
from rockmate.lower_plans import LowerPlans, Trial
from rockmate.meter import paused
from rockmate.number_inputs import inputs_read_as_numbers, with_numbers_as_constants, with_numbers_as_tensors
from rockmate.options import Options
from rockmate.pieces import Piece, PieceGroup, PieceVariant, compiled_function
from rockmate.plan import Plan
from rockmate.planning import check_budget
from rockmate.recurrent import recurrent_layers
from rockmate.separate_gradients import Terms, with_repeated_inputs
from rockmate.step import PieceHooks, StepPlan
from rockmate.traced_strides import correct_traced_strides
from rockmate.tracing import quick_tracing

_local = threading.local()
keep_addcdiv_whole()  # before Dynamo traces anything for this backend


class CaptureOnly(Exception):
    """Raised instead of running a captured step, inside :func:`capture_only`."""


@contextmanager
def capture_only() -> Iterator[None]:
    """Calls of a compiled model capture and plan, then raise :class:`CaptureOnly` before anything of the model runs."""
    _local.capture_only = True
    try:
        yield
    finally:
        _local.capture_only = False


def capturing_only() -> bool:
    return getattr(_local, "capture_only", False)


def rockmate_backend(
    gm: fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | Options | None = None
) -> Callable[..., Any]:
    """Backend for ``torch.compile(model, backend="rockmate", options={"budget": "4GiB"})``.

    Args:
        gm: the graph that Dynamo captured.
        example_inputs: its inputs.
        options: a mapping of the fields of :class:`rockmate.options.Options`.

    Raises:
        BudgetError: when the budget is nonsense, or no schedule of this graph meets it.
    """
    group = None
    if not isinstance(options, Options):
        mapping, options = options, Options.from_mapping(options)
        if options.told_compiling is not None:
            raise ValueError(
                "[options] told_compiling is for rockmate.Rockmate; torch.compile always tells models that it compiles"
            )
        if mapping is not None and is_piece(gm):
            group = _group_of(mapping, options)
    return compile_graph(gm, example_inputs, options, group)


def compile_graph(
    gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options, group: PieceGroup | None
) -> Callable[..., Any]:
    """Compile a Dynamo graph: a whole model, or with ``group`` a piece of one that shares its budget with others."""
    check_budget(options.budget)
    check_dynamo_graph(gm)
    if options.compiler == "inductor":
        check_inductor([arg.device for arg in example_inputs if isinstance(arg, torch.Tensor)])
    if any(isinstance(arg, torch.SymInt) or _has_symbolic_size(arg) for arg in example_inputs) or inputs_read_as_numbers(gm):
        return _PerShape(gm, options, group)
    return _compile_at_sizes(gm, example_inputs, options, group)


def _compile_at_sizes(
    gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options, group: PieceGroup | None
) -> Callable[..., Any]:
    if group is None:
        return _CompiledGraph(gm, example_inputs, options)
    return _piece_of(gm, example_inputs, options, group)


_groups: dict[int, tuple[Mapping[str, Any], PieceGroup]] = {}  # by the identity of the options given to torch.compile
_groups_lock = threading.Lock()


def _group_of(mapping: Mapping[str, Any], options: Options) -> PieceGroup:
    """The pieces compiled with one mapping of options, that is by one ``torch.compile``, share its budget."""
    with _groups_lock:
        known = _groups.get(id(mapping))
        if known is None:
            known = _groups[id(mapping)] = (mapping, PieceGroup(options))
        return known[1]


def is_piece(gm: fx.GraphModule) -> bool:
    """Whether the graph that Dynamo captured is only a part of what was given to ``torch.compile``.

    It is when the graph ends at a graph break, and when user's code runs between the compiled function and what is captured.
    """
    if goes_on(gm):
        return True
    frame: Any = sys._getframe()
    between: list[str] = []  # files of the callers up to the compiled function
    while frame is not None and not frame.f_code.co_filename.endswith(_EVAL_FRAME):
        between.append(frame.f_code.co_filename)
        frame = frame.f_back
    while between and not between[0].endswith(_CONVERT_FRAME):
        del between[0]
    return not all(file.startswith((_TORCH, "<")) for file in between)


_TORCH = os.path.dirname(torch.__file__)
_CONVERT_FRAME = os.path.join("torch", "_dynamo", "convert_frame.py")
_EVAL_FRAME = os.path.join("torch", "_dynamo", "eval_frame.py")


def goes_on(gm: fx.GraphModule) -> bool:
    """Whether the graph ends at a graph break."""
    return bool(getattr(getattr(gm, "compile_subgraph_reason", None), "graph_break", False))


def _piece_of(gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options, group: PieceGroup) -> Piece:
    """A piece that can be compiled for each of its options."""
    terms = Terms.of(gm, example_inputs)

    def compile_variant(inputs: Sequence[Any], variant: PieceVariant) -> Callable[..., Any]:
        places = None
        while places != terms.places():  # twice at most: the second time the terms have been counted
            places = terms.places()
            module, repeated = with_repeated_inputs(gm, terms)
            hooks = PieceHooks(
                goes_on(gm), len(inputs), repeated, terms, variant.option, variant.on_options, variant.on_backward
            )
            every_input = [*inputs, *(inputs[i] for i in repeated)]
            with paused():
                run = _compile(module, every_input, StepPlan(options, _parameters(inputs), variant.tangents, hooks))
        terms.fixed = places
        return (lambda *args: run(*args, *(args[i] for i in repeated))) if repeated else run

    return Piece(group, compile_variant, _own_inputs(gm), terms.summed_beforehand, CastWeights(gm, example_inputs))


def _own_inputs(gm: fx.GraphModule) -> frozenset[int]:
    """Numbers of the inputs that belong to a module: parameters, buffers and other attributes."""
    own = set()
    for index, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        source = getattr(node, "_dynamo_source", None)
        if source is not None and any(part in str(source.name) for part in ("._parameters[", "._buffers[", "._modules[")):
            own.add(index)
    return frozenset(own)


def _parameters(inputs: Sequence[Any]) -> frozenset[int]:
    return frozenset(i for i, arg in enumerate(inputs) if isinstance(arg, torch.nn.Parameter))


def _compile(gm: fx.GraphModule, inputs: Sequence[Any], step: StepPlan) -> Callable[..., Any]:
    spell_out_draws(gm)
    restore_fused_arithmetic(gm)
    step.leaves = frozenset(
        i for i, arg in enumerate(inputs) if isinstance(arg, torch.Tensor) and arg.requires_grad and arg.is_leaf
    )
    correct_traced_strides()
    # Lowering the backward graph now and not within the first backward pass keeps compilation out of the step. The third
    # setting keeps draws whose result nobody reads: they move the random stream.
    with (
        _tracing_context(),
        quick_tracing(),
        eager_kernels(),
        eager_backward(),
        separate_outputs(),
        recurrent_layers(),
        kept_strides(),
        _use_lazy_graph_module(True),  # none of the graphs is run as Python code, so none is written out as such
        torch._functorch.config.patch(donated_buffer=False, force_non_lazy_backward_lowering=True),
        torch._inductor.config.patch(fallback_random=True),
    ):
        compiled = aot_module_simplified(
            share_autocasts(gm, inputs),
            list(inputs),
            fw_compiler=_compile_forward,  # type: ignore[arg-type]
            bw_compiler=_compile_backward,  # type: ignore[arg-type]
            inference_compiler=partial(_compile_inference, step.options),  # type: ignore[arg-type]
            partition_fn=step.partition,
            decompositions=DECOMPOSITIONS,
        )
    return torch._dynamo.disable(tied(compiled), reason="it is compiled")  # type: ignore[no-any-return]


def _tracing_context() -> AbstractContextManager[Any]:
    """Dynamo's, or one of our own when a graph is compiled after Dynamo has given it: it is where the settings below go."""
    return nullcontext() if TracingContext.try_get() is not None else tracing(TracingContext(FakeTensorMode(shape_env=None)))


def _has_symbolic_size(arg: Any) -> bool:
    return isinstance(arg, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in arg.shape)


class _CompiledGraph:
    """One Dynamo graph, planned at its sizes.

    Planned again when the gradients that arrive are not those expected, and when a compiled step held more than the budget.
    """

    def __init__(self, gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options) -> None:
        self._gm = gm
        self._options = options
        self._lower_plans: LowerPlans[tuple[StepPlan, Callable[..., Any]]] = LowerPlans()
        self._next: int | Trial[tuple[StepPlan, Callable[..., Any]]] | None = None
        self._cast_weights = CastWeights(gm, example_inputs)
        self._compile(example_inputs, None)

    def _compile(self, inputs: Sequence[Any], tangents: frozenset[int] | None, limit_bytes: int | None = None) -> None:
        self._step = StepPlan(
            self._options, _parameters(inputs), tangents, limit_bytes=limit_bytes, on_measured=self._on_measured
        )
        self._run = _compile(self._gm, inputs, self._step)

    def _on_measured(self, plan: Plan, measured_bytes: int) -> None:
        if plan is self._step.plan:
            self._next = self._lower_plans.judge(plan, measured_bytes, (self._step, self._run))

    def _change_plan(self, inputs: Sequence[Any]) -> None:
        """Go on with the plan that the measured peak asks for."""
        next, self._next = self._next, None
        if isinstance(next, Trial):
            self._step, self._run = next.compiled
        else:
            with paused():
                self._compile(inputs, self._step.expected, next)

    def __call__(self, *args: Any) -> Any:
        if capturing_only():
            raise CaptureOnly
        if self._step.observed != self._step.expected:
            self._lower_plans, self._next = LowerPlans(), None
            with paused():
                self._compile(args, self._step.observed)
        elif self._next is not None:
            self._change_plan(args)
        self._cast_weights.begin_call(args)
        outputs = self._run(*args)
        if self._step.plan is not None:
            compiled_function(outputs)
        return outputs


class _PerShape:
    """A graph with symbolic sizes: planned once for each set of sizes it is called with.

    Numbers that may change come as tensors without dimensions (see :mod:`rockmate.number_inputs`). Those that can't stay
    tensors, such as a dropout rate, are taken for part of the shape.
    """

    def __init__(self, gm: fx.GraphModule, options: Options, group: PieceGroup | None) -> None:
        self._gm = with_numbers_as_tensors(gm)
        self._options = options
        self._group = group
        self._numbers = inputs_read_as_numbers(self._gm)
        self._by_shape: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        numbers = {index: args[index].item() for index in self._numbers}
        shapes = tuple((tuple(arg.shape), arg.stride(), arg.dtype) if isinstance(arg, torch.Tensor) else arg for arg in args)
        key = (shapes, tuple(numbers.values()))
        compiled = self._by_shape.get(key)
        if compiled is None:
            gm = with_numbers_as_constants(self._gm, numbers) if numbers else self._gm
            compiled = self._by_shape[key] = _compile_at_sizes(gm, list(args), self._options, self._group)
        return compiled(*args)


def _compile_forward(gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    _allow_retain_graph()
    step = gm.meta.get("rockmate")
    return step.forward_program(gm, inputs) if step is not None else lower(gm)  # type: ignore[no-any-return]


def _compile_backward(gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    _allow_retain_graph()
    step = gm.meta.get("rockmate")
    if step is None or step.compiler == "native":
        _take_gradients_as_they_come()
    run = step.backward_program(gm, inputs) if step is not None else lower(gm)
    return torch._dynamo.disable(run, reason="it is compiled")  # type: ignore[no-any-return]


def _compile_inference(options: Options, gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """No gradients are wanted: nothing to plan, values die at their last use."""
    return lower(gm) if options.compiler == "native" else compile_with_inductor(gm, inputs, is_inference=True)


class _Any:
    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _take_gradients_as_they_come() -> None:
    """Let AOTAutograd hand incoming gradients over with whatever strides they have.

    It would copy them to the strides that were traced, and the kernels of plain PyTorch, which get them as they are, sum in
    another order. ``lower`` sees to those few ops that need the traced strides.
    """
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return
    for meta in context.fw_metadata.subclass_tangent_meta or ():
        if isinstance(meta, PlainTensorMeta) and meta.memory_format is not None:
            meta.memory_format = MemoryFormatMeta(size=_Any(), stride=_Any())  # type: ignore[arg-type]


def _allow_retain_graph() -> None:
    """No saved tensor is overwritten in place, so a second backward through a retained graph is fine: tell AOTAutograd."""
    context = TracingContext.try_get()
    if context is not None and context.fw_metadata is not None:
        context.fw_metadata.bw_donated_idxs = []
