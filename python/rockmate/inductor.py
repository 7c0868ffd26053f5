"""Hand the two graphs of a plan to Inductor, PyTorch's fusing compiler (``compiler="inductor"``).

The emitted graphs hold ATen ops in the order of the schedule. Inductor expects decomposed ones: they are traced once more with
its decompositions, and compiled by its entry for graphs that AOTAutograd has split (``compile_fx_inner``). What a plan promises
has to survive that:

*Draws.* Random ops stay ATen's (``fallback_random``), so that the numbers are those of the plain model; recomputed ones replay
their generator state. Inductor runs independent ops in any order: draws are chained, each after the one before.

*Recomputation.* Forward and backward are compiled apart, so that nothing that is computed again can be merged with its first
run, and no pass that merges equal nodes runs on either graph (those belong to Inductor's own partition of the joint graph).
What remains is fusion, which may join an op that is computed again with an earlier one, and so let its result live longer: what
is computed again waits for the gradient before it.

*Layouts.* What the graphs return, saved tensors included, keeps its traced strides: a backward pass for gradients that nobody
expected reads the same saved tensors through the native executor.

A plan's peak is predicted for the unfused graphs. ``docs/inductor.md`` tells what differs, and by how much.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch._inductor.custom_graph_pass import CustomGraphPass, CustomSchedulerPass
from torch._ops import OpOverload
from torch._prims.rng_prims import run_and_save_rng_state
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import make_fx

from rockmate.errors import RockmateError
from rockmate.joint import is_tangent
from rockmate.lower import boxed

#: Inductor's settings for emitted graphs. What is freed goes back at once and does not wait for another buffer of its size,
#: since a budget counts it; and nothing is laid out otherwise than it was planned.
SETTINGS: dict[str, Any] = {
    "fallback_random": True,
    "keep_output_stride": True,
    "bw_outputs_user_visible": True,
    "allow_buffer_reuse": False,
    "layout_optimization": False,
    "freezing": False,
}


class InductorError(RockmateError):
    """Inductor can't run here, or can't compile a graph; the message says why and how to go on without it."""


def check_inductor(devices: Sequence[torch.device]) -> None:
    """Refuse, before anything is planned, where Inductor has no compiler for what it generates.

    Raises:
        InductorError: when there is no C++ compiler for the CPU, or no Triton for an accelerator.
    """
    without = 'or leave compiler="inductor" out: the native executor compiles nothing'
    if all(device.type == "cpu" for device in devices):
        from torch._inductor.cpp_builder import get_cpp_compiler
        from torch._inductor.exc import InvalidCxxCompiler

        try:
            get_cpp_compiler()
        except InvalidCxxCompiler as error:
            raise InductorError(
                "[inductor] no C++ compiler was found, which Inductor needs for the CPU; install g++ or clang++, name one in "
                f"the environment variable CXX, {without}"
            ) from error
    else:
        from torch.utils._triton import has_triton

        if not has_triton():
            raise InductorError(
                f"[inductor] Triton is not installed, which Inductor needs for this device; install it, {without}"
            )


def compile_with_inductor(
    gm: fx.GraphModule, inputs: Sequence[Any], *, is_backward: bool = False, is_inference: bool = False
) -> Callable[[list[Any]], Any]:
    """Compile an emitted graph.

    Args:
        gm: a graph of ATen ops without mutations, and its constants.
        inputs: fake tensors of the inputs, with the strides that they will have.
        is_backward: whether it is a backward graph.
        is_inference: whether it is a graph without a backward.

    Returns:
        A callable that takes its inputs in a list and empties it, as :func:`rockmate.lower.lower` gives.

    Raises:
        InductorError: when Inductor fails on the graph.
    """
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.utils import BoxedBool

    read, positions = _without_unread_inputs(gm)
    given = [inputs[i] for i in positions]
    if not any(node.op == "call_function" for node in read.graph.nodes):
        return boxed(lambda args: read(*(args[i] for i in positions)))  # nothing to compile: inputs, or nothing, come back
    try:
        with config.patch(SETTINGS):
            traced = _decompose(read, given)
            output = traced.graph.output_node()
            returned: Any = output.args[0]
            output.meta["user_visible_output_idxs"] = [i for i, value in enumerate(returned) if isinstance(value, fx.Node)]
            tangents = [i for i, node in enumerate(read.graph.find_nodes(op="placeholder")) if is_tangent(node)]
            passes: dict[str, Any] = {"post_grad_custom_post_pass": _ChainOfDraws()}
            if is_backward and config._pre_fusion_custom_pass is None:
                passes["_pre_fusion_custom_pass"] = _RecomputeLate(tangents)
            with _draws_kept_whole(traced), config.patch(passes):
                compiled = compile_fx_inner(
                    traced, given, cudagraphs=BoxedBool(False), is_backward=is_backward, is_inference=is_inference
                )
    except Exception as error:
        which = "backward" if is_backward else "forward"
        raise InductorError(
            f"[inductor] it fails on the {which} graph: {type(error).__name__}: {_first_line(error)}. "
            'Leave compiler="inductor" out to run the plan by the native executor'
        ) from error

    def run(args: list[Any]) -> Any:
        used = [args[i] for i in positions]
        args.clear()
        return compiled(used)

    return boxed(run)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


def _without_unread_inputs(gm: fx.GraphModule) -> tuple[fx.GraphModule, list[int]]:
    """The graph without the inputs that nobody reads (gradients that do not come are ``None``), and which inputs are left."""
    graph, copies, positions = fx.Graph(), {}, []
    for index, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        if node.users:
            copies[node] = graph.node_copy(node)
            positions.append(index)
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return fx.GraphModule(gm, graph), positions


def _decompose(gm: fx.GraphModule, inputs: Sequence[Any]) -> fx.GraphModule:
    """The graph in the ops that Inductor lowers, in the same order. Random ops stay as they are."""
    from torch._inductor.decomposition import select_decomp_table

    table = {op: formula for op, formula in select_decomp_table().items() if not _is_draw(op)}

    def run(*args: Any) -> Any:
        with traceback.preserve_node_meta():
            return fx.Interpreter(gm).run(*args)

    mode = torch._guards.detect_fake_mode(inputs)
    assert mode is not None
    with mode, torch.no_grad():
        return make_fx(run, decomposition_table=table, _allow_non_fake_inputs=True)(*inputs)


@contextmanager
def _draws_kept_whole(gm: fx.GraphModule) -> Iterator[None]:
    """Let Inductor call random ops as they are, also where it has a lowering of its own.

    That of ``bernoulli`` fills a buffer in place, and in torch 2.13 a kernel that reads the buffer may be run before that: a
    dropout mask of whatever the memory held.
    """
    from torch._inductor import lowering

    draws = {node.target for node in gm.graph.nodes if isinstance(node.target, OpOverload) and _is_draw(node.target)}
    own = {op: lowering.lowerings.get(op) for op in draws}
    try:
        for op in draws:
            lowering.make_fallback(op, warn=False, override_decomp=True)
        yield
    finally:
        for op, before in own.items():
            if before is None:
                lowering.lowerings.pop(op, None)
            else:
                lowering.lowerings[op] = before


def _is_draw(target: Any) -> bool:
    if target is run_and_save_rng_state:
        return True
    return isinstance(target, OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


class _ChainOfDraws(CustomGraphPass):  # type: ignore[misc]
    """Lets each op that moves the random stream wait for the one before it.

    Inductor does it for plain ops, but not for those that save their generator state. A replay leaves the stream where it was.
    """

    def __call__(self, graph: fx.Graph) -> None:
        from torch._inductor.fx_passes.control_dependencies import preserve_node_ordering
        from torch.utils._ordered_set import OrderedSet

        draws = [node for node in graph.nodes if node.op == "call_function" and _is_draw(node.target)]
        preserve_node_ordering(graph, {node: OrderedSet([before]) for before, node in itertools.pairwise(draws)})

    def uuid(self) -> str:
        """Part of the key of Inductor's cache: what it has compiled of an equal graph without us is not the same."""
        return "rockmate: draws are kept whole and chained, 1"


class _RecomputeLate(CustomSchedulerPass):  # type: ignore[misc]
    """Lets what a backward graph computes again wait for the gradients that the schedule places before it.

    Nothing else holds it back: it reads saved tensors only, and so fusion could join it with an op near the beginning.
    """

    def __init__(self, tangents: Sequence[int]) -> None:
        self._tangents = tuple(tangents)  # positions among the inputs

    def __call__(self, nodes: list[Any]) -> list[Any]:
        from torch._inductor.dependencies import WeakDep
        from torch._inductor.scheduler import ForeachKernelSchedulerNode, GroupedSchedulerNode
        from torch._inductor.virtualized import V

        if any(isinstance(node, (ForeachKernelSchedulerNode, GroupedSchedulerNode)) for node in nodes):
            return nodes  # ancestors can't be computed anew once nodes have been put together
        names = list(V.graph.graph_inputs)
        of_gradients = {names[i] for i in self._tangents}
        before: str | None = None
        for node in nodes:
            written = [buffer.get_name() for buffer in node.get_outputs()]
            if any(dep.name in of_gradients for dep in node.read_writes.reads):
                of_gradients.update(written)
                before = written[0] if written else before
            elif before is not None and written:
                node.add_fake_dep(WeakDep(before, node.get_name(), is_fake=True))
        if nodes:
            scheduler = nodes[0].scheduler
            scheduler.nodes = nodes
            scheduler.compute_ancestors()
        return nodes

    def uuid(self) -> tuple[str, tuple[int, ...]]:
        return "rockmate: recomputation waits, 1", self._tangents
