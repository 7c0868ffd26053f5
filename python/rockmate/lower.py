"""From an FX graph of dispatcher ops to a program that runs without Python.

``lower`` is a compiler in AOTAutograd's sense: it takes a ``GraphModule`` and gives back a callable that takes its
inputs in a list, empties the list, and drops each value at its last use in the graph. The order of the graph is the
order of execution; what is recomputed, and where, is already in the graph.

Random ops that are computed again arrive as PyTorch's own higher-order ops ``run_and_save_rng_state`` and
``run_with_rng_state`` and become one native instruction each. Everything else that is no dispatcher op (arithmetic on
sizes, other higher-order ops) is called back in Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import fx
from torch._ops import OpOverload
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from rockmate import _runtime
from rockmate.joint import is_tangent

__all__ = ["boxed", "lower", "lower_op", "profile_op"]

_WHOLE = -1  # all returns of an op as one tuple, or a whole list

# Not marked as views in their schema, and yet they only reinterpret the storage that they are given.
_HIDDEN_VIEWS = {
    torch.ops.aten._unsafe_view.default,
    torch.ops.aten._reshape_alias.default,
}
# Views that take a tensor of any strides.
_FREE_VIEWS = {
    getattr(getattr(torch.ops.aten, name), overload)
    for name, overloads in {
        "t": ["default"],
        "transpose": ["int"],
        "permute": ["default"],
        "expand": ["default"],
        "slice": ["Tensor"],
        "select": ["int"],
        "unsqueeze": ["default"],
        "squeeze": ["default", "dim", "dims"],
        "split": ["Tensor"],
        "split_with_sizes": ["default"],
        "unbind": ["int"],
        "alias": ["default"],
        "detach": ["default"],
        "diagonal": ["default"],
    }.items()
    for overload in overloads
}
_RESHAPED = {torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default}
# Ops whose kernels are handed gradients of any strides by plain PyTorch, beside those that work element by element.
_ANY_STRIDES = {
    getattr(getattr(torch.ops.aten, name), overload)
    for name, overload in (
        ("mm", "default"),
        ("bmm", "default"),
        ("addmm", "default"),
        ("baddbmm", "default"),
        ("sum", "default"),
        ("sum", "dim_IntList"),
        ("mean", "default"),
        ("mean", "dim"),
        ("clone", "default"),
        ("copy", "default"),
        ("cat", "default"),
        ("convolution_backward", "default"),
        ("native_batch_norm_backward", "default"),
        ("native_layer_norm_backward", "default"),
        ("_softmax_backward_data", "default"),
        ("_log_softmax_backward_data", "default"),
        ("embedding_dense_backward", "default"),
        ("native_dropout_backward", "default"),
        ("_to_copy", "default"),
    )
}
_STRIDE_TAGS = {
    torch.Tag.needs_exact_strides,
    torch.Tag.needs_fixed_stride_order,
    torch.Tag.needs_contiguous_strides,
}

_Layout = tuple[list[int], list[int]]
_Run = TypeVar("_Run")


def lower(gm: fx.GraphModule) -> _runtime.Program:
    """Builds the program of a graph of dispatcher ops.

    Args:
        gm: placeholders, get_attr, call_function and output nodes; ``node.meta["val"]``, where present, holds the
            traced value. Outputs whose strides a later op relies on are held to the traced ones.

    Returns:
        A callable ``program(inputs: list) -> list`` with ``_boxed_call`` set.

    Raises:
        ValueError: for a node that is neither, or whose arguments do not fit the op's schema.
    """
    with _disable_current_modes():  # converting constants must not be traced by whoever compiles
        return boxed(_Lowering(gm).run())


def boxed(run: _Run) -> _Run:
    """Marks a callable that takes its inputs in a list and empties it, which is how AOTAutograd is told so."""
    run._boxed_call = True  # type: ignore[attr-defined]  # on the instance: wrappers copy what they find there
    return run


def lower_op(target: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[_runtime.Program, list[Any]]:
    """The program of a single call, and its inputs: the tensors among the arguments, in order."""
    builder = _runtime.ProgramBuilder()
    inputs: list[Any] = []

    def to_slot(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        inputs.append(value)
        return builder.input()

    args, kwargs = pytree.tree_map(to_slot, (tuple(args), dict(kwargs)))
    name = str(target)
    if isinstance(target, OpOverload):
        returns = range(len(target._schema.returns))
        outputs = builder.call(target, args, kwargs, [(i, -1, None) for i in returns], name)
    else:
        outputs = builder.python(target, args, kwargs, [(0, -1, None)], name)
    return builder.finish(outputs), inputs


def profile_op(
    target: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    min_time_us: float = 2000.0,
    max_runs: int = 50,
) -> _runtime.Profile:
    """Runs one call alone, several times, and tells its median time and its exact bytes.

    Args:
        target: an op overload, or any callable.
        args, kwargs: what it is called with. Tensors stay as they are unless the op writes into them.
        min_time_us: time to spend on timed runs, in microseconds; longer is steadier.
        max_runs: most timed runs.

    Returns:
        ``time_us``, ``peak_bytes`` (inside, outputs included, beyond what was held before), ``kept_bytes``,
        ``num_runs``; and with one entry per tensor returned ``output_bytes``, ``output_strides``, ``output_pointers``
        and ``output_aliases_input``. The random stream is where it was.
    """
    program, inputs = lower_op(target, args, kwargs or {})
    devices = {value.device for value in inputs if value.device.type == "cuda"}
    with torch.random.fork_rng(devices):
        return _runtime.profile(program, inputs, min_time_us, max_runs)


class _Lowering:
    """One walk over the graph."""

    def __init__(self, gm: fx.GraphModule) -> None:
        self.gm = gm
        self.builder = _runtime.ProgramBuilder()
        self.values: dict[fx.Node, Any] = {}  # a slot, a constant, or _FOLDED
        # Gradients and what is computed of them: their strides are those of whatever comes, as in plain PyTorch, and a view of
        # them copies where it has to. ``held`` has copies with the traced strides for the ops that insist on these.
        self.free: set[fx.Node] = set()
        self.held: dict[fx.Node, Any] = {}

    def run(self) -> _runtime.Program:
        for node in self.gm.graph.nodes:
            if node in self.values:
                continue  # a getitem that was settled together with its source
            if node.op == "placeholder":
                self.values[node] = self._as_value(self.builder.input(), node)
                if is_tangent(node):
                    self.free.add(node)
            elif node.op == "get_attr":
                self.values[node] = operator.attrgetter(node.target)(self.gm)
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                return self.builder.finish([self._filled(arg) for arg in _flat_outputs(node)])
            else:
                raise ValueError(f"[lower] node {node.name}: {node.op} nodes cannot be run; trace them to call_function")
        raise ValueError("[lower] the graph has no output node")

    def _call(self, node: fx.Node) -> None:
        if self.free.isdisjoint(node.all_input_nodes):
            self._append(node, node.target)
        else:
            self._call_with_any_strides(node)

    def _append(self, node: fx.Node, target: Any) -> None:
        op: Any
        state: Any
        if isinstance(target, OpOverload):
            self._call_op([node], target, node.args, node.kwargs, node.name)
        elif target is run_and_save_rng_state and _only_items(node):
            op, *args = node.args
            states, results = _items(node, 0), _items(node, 1)
            self._call_op(results, op, args, node.kwargs, node.name)
            state = self.builder.save_rng(_rng_device(node, results))
            self.values.update(dict.fromkeys(states, state))
        elif target is run_with_rng_state:
            state, op, *args = node.args
            self._call_op([node], op, args, node.kwargs, node.name)
            self.builder.replay_rng(_rng_device(node, [node]), self._filled(state))
        else:
            self._call_python(node)

    def _call_with_any_strides(self, node: fx.Node) -> None:
        """A call that takes gradients, whose strides may not be the traced ones."""
        self.free.add(node)
        self.free.update(user for user in node.users if user.target is operator.getitem)
        target: Any = torch.ops.aten.reshape.default if node.target in _RESHAPED else node.target
        given = [arg for arg in node.all_input_nodes if arg in self.free] if insists_on_strides(target) else []
        as_they_come = {arg: self.values[arg] for arg in given}
        self.values.update({arg: self._held(arg) for arg in given})
        self._append(node, target)
        self.values.update(as_they_come)

    def _held(self, node: fx.Node) -> Any:
        """The gradient with its traced strides: a copy where it came with others.

        The gradient of an output whose elements share memory (``unfold``, ``expand``) has elements of its own: it stays so.
        """
        layout = _traced_layout([node])
        if node not in self.held and layout is not None and not _elements_share_memory(*layout):
            alias = torch.ops.aten.alias.default
            (slot,) = self.builder.call(alias, (self.values[node],), {}, [(0, -1, layout)], f"{node.name}_held")
            self.held[node] = self._as_value(slot, node)
        return self.held.get(node, self.values[node])

    def _call_op(self, results: list[fx.Node], op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], name: str) -> None:
        """Appends one call; every node in ``results`` stands for its whole result."""
        args, kwargs = self._filled(tuple(args)), self._filled(dict(kwargs))
        returns = op._schema.returns
        outputs: list[tuple[int, int, _Layout | None]] = []
        targets: list[list[fx.Node]] = []  # the nodes that each output is the value of
        is_list = len(returns) == 1 and isinstance(returns[0].type, torch.ListType)
        if (is_list or len(returns) > 1) and all(_only_items(node) for node in results):
            for index in _indices(results):
                nodes = [user for node in results for user in _items(node, index)]
                alias = returns[0 if is_list else index].alias_info is not None
                layout = None if alias or not self.free.isdisjoint(nodes) else _layout(nodes)
                outputs.append((0, index, layout) if is_list else (index, -1, layout))
                targets.append(nodes)
            self.values.update(dict.fromkeys(results, _FOLDED))
        elif len(returns) == 1:
            as_it_comes = is_list or returns[0].alias_info is not None or not self.free.isdisjoint(results)
            layout = None if as_it_comes else _layout(results)
            outputs, targets = [(0, -1, layout)], [results]
        elif len(returns) > 1:
            outputs, targets = [(_WHOLE, -1, None)], [results]
        slots = self.builder.call(op, args, kwargs, outputs, name)
        for slot, nodes in zip(slots, targets, strict=True):
            for node in nodes:
                self.values[node] = self._as_value(slot, node)

    def _call_python(self, node: fx.Node) -> None:
        args, kwargs = self._filled(tuple(node.args)), self._filled(dict(node.kwargs))
        if _only_items(node):
            indices = _indices([node])
            targets = [_items(node, index) for index in indices]
            outputs = [(0, index, None) for index in indices]
            self.values[node] = _FOLDED
        else:
            targets, outputs = [[node]], [(0, -1, None)]
        slots = self.builder.python(node.target, args, kwargs, outputs, node.name)
        for slot, nodes in zip(slots, targets, strict=True):
            for target in nodes:
                self.values[target] = self._as_value(slot, target)

    def _filled(self, arg: Any) -> Any:
        return fx.map_arg(arg, self.values.__getitem__)

    @staticmethod
    def _as_value(slot: _runtime.Slot, node: fx.Node) -> _runtime.Slot:
        if isinstance(node.meta.get("val"), (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)):
            slot.is_number = True
        return slot


_FOLDED = object()  # a result that only its getitem nodes read


def _only_items(node: fx.Node) -> bool:
    return bool(node.users) and all(
        user.target is operator.getitem and user.args[0] is node and isinstance(user.args[1], int) and user.args[1] >= 0
        for user in node.users
    )


def _indices(nodes: list[fx.Node]) -> list[int]:
    """Which items the getitem nodes read, ascending."""
    return sorted({index for node in nodes for user in node.users if isinstance(index := user.args[1], int)})


def _items(node: fx.Node, index: int) -> list[fx.Node]:
    return [user for user in node.users if user.args[1] == index]


def _flat_outputs(node: fx.Node) -> Sequence[Any]:
    (outputs,) = node.args
    return outputs if isinstance(outputs, (list, tuple)) else [outputs]


def _reads_strides(user: fx.Node) -> bool:
    """Whether a node would fail, or mean something else, with other strides than the traced ones."""
    target: Any = user.target
    if target is run_and_save_rng_state:
        target = user.args[0]
    elif target is run_with_rng_state:
        target = user.args[1]
    if not isinstance(target, OpOverload) or target.namespace != "aten":
        return True
    return (
        any(ret.alias_info is not None for ret in target._schema.returns)
        or target in _HIDDEN_VIEWS
        or not _STRIDE_TAGS.isdisjoint(target.tags)
    )


def insists_on_strides(target: Any) -> bool:
    """Whether a call must get a gradient with the traced strides, and not as it came.

    A formula of autograd may call ``contiguous()`` before its kernel, which leaves no trace where the traced gradient was
    contiguous; the kernel of group normalization then reads what is not there. So all do but those that are known not to.
    """
    if not isinstance(target, OpOverload):
        return target != "output"
    return not (
        target in _FREE_VIEWS
        or target in _RESHAPED
        or target in _ANY_STRIDES
        or torch.Tag.pointwise in target.tags
        or target is torch.ops.aten.reshape.default
    )


def _layout(nodes: list[fx.Node]) -> _Layout | None:
    """The traced (sizes, strides), where a later op relies on them and they are known numbers."""
    return _traced_layout(nodes) if any(_reads_strides(user) for node in nodes for user in node.users) else None


def _traced_layout(nodes: list[fx.Node]) -> _Layout | None:
    val = next((node.meta["val"] for node in nodes if isinstance(node.meta.get("val"), torch.Tensor)), None)
    if val is None or val.layout is not torch.strided:
        return None
    sizes, strides = list(val.size()), list(val.stride())
    return (sizes, strides) if all(type(number) is int for number in sizes + strides) else None


def _elements_share_memory(sizes: list[int], strides: list[int]) -> bool:
    """Whether two elements may lie in one place."""
    reach = 0
    for stride, size in sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _rng_device(node: fx.Node, results: list[fx.Node]) -> torch.device:
    traced = [result.meta.get("val") for result in results]
    arguments = [
        arg.meta.get("val") for arg in node.all_input_nodes if node.target is not run_with_rng_state or arg is not node.args[0]
    ]
    return _device_of((traced, node.kwargs.get("device"), arguments))


def _device_of(tree: Any) -> torch.device:
    """The device of the first tensor or device in the tree; the CPU when there is none."""
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor):
            return leaf.device
        if isinstance(leaf, torch.device):
            return leaf
    return torch.device("cpu")
