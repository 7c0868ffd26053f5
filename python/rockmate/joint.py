"""Read the joint graph that AOTAutograd traced: which nodes are ops, which are views, which storage each one holds.

The unit of planning is the *storage*. A node all of whose outputs look at storages that exist already (a view, a ``getitem``)
costs nothing: it is made again wherever it is needed. Every other call is an op.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import ForwardTokenAOTInput, InputMutationAOTOutput
from torch.utils._pytree import tree_leaves

from rockmate.errors import CaptureError, DataDependentError


def tensor_leaves(val: Any) -> list[torch.Tensor]:
    """The tensors in a node's traced value, in order."""
    if isinstance(val, torch.Tensor):
        return [val]
    return [leaf for leaf in tree_leaves(val) if isinstance(leaf, torch.Tensor)]


def _storage_key(tensor: torch.Tensor, node: fx.Node) -> int:
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError) as error:
        raise CaptureError(
            f"[capture] {describe(node)} makes a {tensor.layout} tensor, which has no storage to account for; "
            "keep sparse and other special layouts outside of the wrapped model"
        ) from error


def module_of(node: fx.Node) -> str:
    """Path of the user's module that the node came from, e.g. ``transformer.h.3.mlp``; empty when unknown."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]  # such as L['model']._modules['layers']._modules['3'].mlp
    path = re.sub(r"\['?([^]']*)'?\]", r".\1", path) if isinstance(path, str) else ""
    return ".".join(part for part in path.split(".")[2:] if part and part != "_modules")


def describe(node: fx.Node) -> str:
    """The node as a user knows it: what it calls, in which module, from which line."""
    where = module_of(node)
    trace = (node.meta.get("stack_trace") or "").strip().splitlines()
    line = next((text.strip() for text in reversed(trace) if text.strip().startswith("File")), "")
    return f"'{node.target}'" + (f" in module '{where}'" if where else "") + (f" ({line})" if line else "")


def is_random(node: fx.Node) -> bool:
    """Whether the op draws from the generator. Dropout of probability 0 inside attention does not."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    if "scaled_dot_product" in target._schema.name:
        for index, argument in enumerate(target._schema.arguments):
            if argument.name == "dropout_p":
                value = node.args[index] if index < len(node.args) else node.kwargs.get("dropout_p", 0.0)
                return bool(value != 0.0)
    return True


def has_side_effects(node: fx.Node) -> bool:
    """Whether running the node twice, or not at all, could be noticed other than through its outputs."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.is_mutable or (node.is_impure() and not is_random(node)) or _is_collective(target)
    return isinstance(target, torch._ops.HigherOrderOperator)


def _is_collective(target: torch._ops.OpOverload) -> bool:
    return target.namespace in ("_c10d_functional", "c10d_functional", "c10d", "_dtensor")


@dataclass
class JointGraph:
    """A joint graph with its nodes sorted out. ``ops`` holds forward ops, then backward ops, each in traced order."""

    graph: fx.Graph
    stand_for: dict[int, int]
    primals: list[fx.Node]
    tangents: list[fx.Node]
    forward_outputs: list[Any]
    backward_outputs: list[Any]
    ops: list[fx.Node] = field(default_factory=list)
    num_forward_ops: int = 0
    # Storage keys of each node, and for each storage the nodes that look at it, the one that made it first.
    storages: dict[fx.Node, list[int]] = field(default_factory=dict)
    nodes_of: dict[int, list[fx.Node]] = field(default_factory=dict)
    op_set: set[fx.Node] = field(default_factory=set)
    # Forward ops that must not run again, and inputs that are overwritten when the forward pass ends and yet may be handed to
    # recomputed ops, which ignore what is in them.
    run_once: set[fx.Node] = field(default_factory=set)
    stand_ins: set[fx.Node] = field(default_factory=set)
    # For tangents and what looks at them: which storage a traced one stands for, see _tell_tangents_apart.
    renamed: dict[fx.Node, dict[int, int]] = field(default_factory=dict)
    _traced_keys: dict[fx.Node, list[int]] = field(default_factory=dict)

    def keys_of(self, node: fx.Node) -> list[int]:
        """The storage of each tensor that the node gives, in order."""
        renamed = self.renamed.get(node)
        keys = self.traced_keys_of(node)
        return [renamed.get(key, key) for key in keys] if renamed else keys

    def traced_keys_of(self, node: fx.Node) -> list[int]:
        keys = self._traced_keys.get(node)
        if keys is None:
            keys = [_storage_key(tensor, node) for tensor in tensor_leaves(node.meta.get("val"))]
            keys = self._traced_keys[node] = [self.stand_for.get(key, key) for key in keys]
        return keys

    def maker(self, storage: int) -> fx.Node:
        """The node that stands for the storage: a placeholder, a constant, a single-output op, or a ``getitem`` of an op."""
        for node in self.nodes_of[storage]:
            if isinstance(node.meta.get("val"), torch.Tensor):
                return node
        raise CaptureError(f"[capture] {describe(self.nodes_of[storage][0])}: an output that is used in no known way")

    def source(self, node: fx.Node, storage: int) -> fx.Node:
        """Where ``node`` has the storage from: its maker, or of several inputs that share memory the one that it looks at."""
        maker = self.maker(storage)
        if maker.op != "placeholder":
            return maker
        while node.op != "placeholder":
            node = next(arg for arg in node.all_input_nodes if storage in self.storages.get(arg, ()))
        return node

    def gradient_places(self, primals: Collection[int]) -> set[int]:
        """Where the gradients of the inputs with these numbers are among ``backward_outputs``."""
        wanted = {self.primals[number] for number in primals}
        return {place for place, node in enumerate(inputs_with_gradients(self.graph)) if node in wanted}


def is_tangent(placeholder: fx.Node) -> bool:
    """Whether an input of a joint or backward graph is a gradient that comes in: AOTAutograd names them so."""
    return "tangents" in str(placeholder.target)


def tangents_of(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.find_nodes(op="placeholder") if is_tangent(node)]


def inputs_with_gradients(graph: fx.Graph) -> list[fx.Node]:
    """The inputs of a joint graph in the order of its gradients: a token that orders effects (assertions) has none."""
    return [
        node
        for node in graph.find_nodes(op="placeholder")
        if not is_tangent(node) and not isinstance(node.meta.get("desc"), ForwardTokenAOTInput)
    ]


def read_joint_graph(graph: fx.Graph, num_forward_outputs: int, stand_for: dict[int, int] | None = None) -> JointGraph:
    """Sort out a joint graph. Nodes that nothing needs and that have no effect are left out.

    ``stand_for`` maps storages to those that took their place, see :func:`rockmate.tangents.drop_tangents`.
    """
    tangents = tangents_of(graph)
    primals = [node for node in graph.find_nodes(op="placeholder") if not is_tangent(node)]
    outputs: list[Any] = list(graph.output_node().args[0])  # type: ignore[arg-type]
    joint = JointGraph(graph, stand_for or {}, primals, tangents, outputs[:num_forward_outputs], outputs[num_forward_outputs:])

    _tell_tangents_apart(joint)
    after_tangent = _reached_from(graph, tangents)
    needed = _ancestors(
        [node for node in outputs if isinstance(node, fx.Node)]
        + [node for node in graph.nodes if node.op == "call_function" and node.is_impure()]
    )
    forward_needed = _ancestors(node for node in joint.forward_outputs if isinstance(node, fx.Node))
    forward: list[fx.Node] = []
    backward: list[fx.Node] = []
    for node in graph.nodes:
        if node.op == "output":
            continue
        keys = joint.keys_of(node)
        _refuse_symbols(node)
        known = all(key in joint.nodes_of for key in keys)
        if node not in needed and node.op == "call_function":
            continue
        joint.storages[node] = list(dict.fromkeys(keys))
        for key in joint.storages[node]:
            joint.nodes_of.setdefault(key, []).append(node)
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if keys and known and not has_side_effects(node):
            continue
        joint.op_set.add(node)
        tagged_backward = node.meta.get("partitioner_tag") == "is_backward"
        is_forward = node in forward_needed or not (tagged_backward or node in after_tangent)
        (forward if is_forward else backward).append(node)
    joint.ops = forward + backward
    joint.num_forward_ops = len(forward)
    joint.run_once = {node for node in joint.ops if has_side_effects(node)}
    _protect_mutated_inputs(joint)
    return joint


def _tell_tangents_apart(joint: JointGraph) -> None:
    """Give each tangent a storage of its own.

    AOTAutograd traces the gradient of an output by a stand-in that looks at the output's storage: the tangents of two pieces of
    one tensor, or of an output that is a view of an input, seem to share theirs. They never do when the step runs.
    """
    for number, node in enumerate(joint.tangents):
        joint.renamed[node] = {key: -1 - number for key in joint.traced_keys_of(node)}
    for node in joint.graph.nodes:
        if node.op != "call_function":
            continue
        for key in joint.traced_keys_of(node):
            for arg in node.all_input_nodes:
                if key in joint.renamed.get(arg, ()):
                    joint.renamed.setdefault(node, {})[key] = joint.renamed[arg][key]
                    break


def _protect_mutated_inputs(joint: JointGraph) -> None:
    """An op that reads an input which the step overwrites (a buffer) would see the new content when it runs again.

    Batch normalization in train mode only passes its running statistics through: its other outputs do not depend on them.
    """
    descs = joint.graph.output_node().meta.get("desc") or ()
    mutated_descs = {desc.mutated_input for desc in descs if isinstance(desc, InputMutationAOTOutput)}
    mutated = {
        key: node for node in joint.primals if node.meta.get("desc") in mutated_descs for key in joint.storages.get(node, ())
    }
    if not mutated:
        return
    read_in_backward = {
        key for op in joint.ops[joint.num_forward_ops :] for arg in op.all_input_nodes for key in joint.storages.get(arg, ())
    }
    for op in joint.ops[: joint.num_forward_ops]:
        read = [(arg, key) for arg in op.all_input_nodes for key in joint.storages.get(arg, ()) if key in mutated]
        if not read:
            continue
        passed_through = _running_statistics(op)
        if all(arg in passed_through and key not in read_in_backward for arg, key in read):
            joint.stand_ins.update(mutated[key] for _, key in read)
        else:
            joint.run_once.add(op)


def _running_statistics(op: fx.Node) -> set[fx.Node]:
    """The running mean and variance of a batch normalization in train mode."""
    aten = torch.ops.aten
    if op.target is aten._native_batch_norm_legit_functional.default and op.args[5] is True:
        return {arg for arg in op.args[3:5] if isinstance(arg, fx.Node)}
    if op.target is aten._batch_norm_with_update_functional.default:
        return {arg for arg in op.args[3:5] if isinstance(arg, fx.Node)}
    return set()


def _refuse_symbols(node: fx.Node) -> None:
    val = node.meta.get("val")
    for leaf in (val,) if isinstance(val, torch.Tensor) else tree_leaves(val):
        if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)) or (
            isinstance(leaf, torch.Tensor) and any(isinstance(s, torch.SymInt) for s in leaf.shape)
        ):
            gives = "has a size" if isinstance(leaf, torch.Tensor) else "gives a number"
            raise DataDependentError(f"{describe(node)} {gives} that depends on the data ({leaf})")


def _reached_from(graph: fx.Graph, sources: list[fx.Node]) -> set[fx.Node]:
    reached = set(sources)
    for node in graph.nodes:
        if any(arg in reached for arg in node.all_input_nodes):
            reached.add(node)
    return reached


def _ancestors(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    stack = list(nodes)
    found = set(stack)
    while stack:
        for arg in stack.pop().all_input_nodes:
            if arg not in found:
                found.add(arg)
                stack.append(arg)
    return found
