"""The ``torch.compile`` backend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch._inductor.config
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch.fx._lazy_graph_module import _use_lazy_graph_module

from rockmate.lower import lower
from rockmate.options import Options
from rockmate.planning import check_budget
from rockmate.step import StepPlan
from rockmate.tracing import quick_tracing

_local = threading.local()


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
    if not isinstance(options, Options):
        options = Options.from_mapping(options)
    check_budget(options.budget)
    if any(isinstance(arg, torch.SymInt) or _has_symbolic_size(arg) for arg in example_inputs) or (_inputs_read_as_numbers(gm)):
        return _PerShape(gm, options)
    return _CompiledGraph(gm, example_inputs, options)


def _has_symbolic_size(arg: Any) -> bool:
    return isinstance(arg, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in arg.shape)


class _CompiledGraph:
    """One Dynamo graph, planned at its sizes. Planned again when the gradients that arrive are not those expected."""

    def __init__(self, gm: fx.GraphModule, example_inputs: Sequence[Any], options: Options) -> None:
        self._gm = gm
        self._options = options
        self._compile(example_inputs, None)

    def _compile(self, inputs: Sequence[Any], tangents: frozenset[int] | None) -> None:
        parameters = frozenset(i for i, arg in enumerate(inputs) if isinstance(arg, torch.nn.Parameter))
        self._step = StepPlan(self._options, parameters, tangents)
        # Lowering the backward graph now and not within the first backward pass keeps compilation out of the step. The third
        # setting keeps draws whose result nobody reads: they move the random stream.
        with (
            quick_tracing(),
            _use_lazy_graph_module(True),  # none of the graphs is run as Python code, so none is written out as such
            torch._functorch.config.patch(donated_buffer=False, force_non_lazy_backward_lowering=True),
            torch._inductor.config.patch(fallback_random=True),
        ):
            self._run = aot_autograd(
                fw_compiler=_compile_forward,
                bw_compiler=_compile_backward,
                inference_compiler=lower_inference,
                partition_fn=self._step.partition,
                decompositions={},
            )(self._gm, list(inputs))

    def __call__(self, *args: Any) -> Any:
        if getattr(_local, "capture_only", False):
            raise CaptureOnly
        if self._step.observed != self._step.expected:
            self._compile(args, self._step.observed)
        outputs = self._run(*args)
        if self._step.plan is not None:
            _leave_missing_gradients_out(outputs)
        return outputs


class _PerShape:
    """A graph with symbolic sizes: planned once for each set of sizes it is called with.

    Dynamo hands numbers that may change, such as a dropout rate, over as tensors without dimensions that the graph reads
    with ``item()``; they are taken for part of the shape.
    """

    def __init__(self, gm: fx.GraphModule, options: Options) -> None:
        self._gm = gm
        self._options = options
        self._numbers = _inputs_read_as_numbers(gm)
        self._by_shape: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        numbers = {index: args[index].item() for index in self._numbers}
        shapes = tuple((tuple(arg.shape), arg.stride(), arg.dtype) if isinstance(arg, torch.Tensor) else arg for arg in args)
        key = (shapes, tuple(numbers.values()))
        compiled = self._by_shape.get(key)
        if compiled is None:
            gm = _with_numbers(self._gm, numbers) if numbers else self._gm
            compiled = self._by_shape[key] = _CompiledGraph(gm, list(args), self._options)
        return compiled(*args)


def _reads_number(node: fx.Node) -> bool:
    return node.op == "call_method" and node.target == "item" and node.all_input_nodes[0].op == "placeholder"


def _inputs_read_as_numbers(gm: fx.GraphModule) -> list[int]:
    placeholders = gm.graph.find_nodes(op="placeholder")
    return sorted({placeholders.index(node.all_input_nodes[0]) for node in gm.graph.nodes if _reads_number(node)})


def _with_numbers(gm: fx.GraphModule, numbers: Mapping[int, float]) -> fx.GraphModule:
    """The graph with ``item()`` of the inputs replaced by the numbers that they hold."""
    graph = fx.Graph()
    placeholders = gm.graph.find_nodes(op="placeholder")
    copies: dict[fx.Node, Any] = {}
    for node in gm.graph.nodes:
        if _reads_number(node):
            copies[node] = numbers[placeholders.index(node.all_input_nodes[0])]
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return fx.GraphModule(gm, graph)


def _compile_forward(gm: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    _allow_retain_graph()
    return lower(gm)


def _compile_backward(gm: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    _allow_retain_graph()
    step = gm.meta.get("rockmate")
    return step.backward_program(gm) if step is not None else lower(gm)


def lower_inference(gm: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
    """No gradients are wanted: nothing to plan, values die at their last use."""
    return lower(gm)


def _allow_retain_graph() -> None:
    """No saved tensor is overwritten in place, so a second backward through a retained graph is fine: tell AOTAutograd."""
    context = TracingContext.try_get()
    if context is not None and context.fw_metadata is not None:
        context.fw_metadata.bw_donated_idxs = []


def _leave_missing_gradients_out(outputs: Any) -> None:
    """Ask autograd to pass ``None`` for outputs that get no gradient, instead of filling zeros in.

    Zeros the size of the logits would be allocated, and added to other gradients, for nothing.
    """
    seen: set[Any] = set()
    for output in outputs if isinstance(outputs, (list, tuple)) else (outputs,):
        function = getattr(output, "grad_fn", None)
        for _ in range(3):  # an output may be a view of what the compiled function returned
            if function is None or type(function).__name__ == "CompiledFunctionBackward":
                break
            function = function.next_functions[0][0] if function.next_functions else None
        if function is not None and function not in seen and type(function).__name__ == "CompiledFunctionBackward":
            seen.add(function)
            function.set_materialize_grads(False)
