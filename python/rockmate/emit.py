"""Write a schedule down as the two FX graphs that AOTAutograd asks of a partition function.

Both hold plain nodes in schedule order, so that any compiler can take them. The backward graph holds the recomputed ops. A
random op that is recomputed becomes PyTorch's ``run_and_save_rng_state`` in the forward graph, and ``run_with_rng_state`` where
it is replayed.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import (
    SavedForBackwardsAOTOutput,
    SavedForBackwardsNoVcCheckAOTOutput,
)
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state

from rockmate.capture import CPU_RNG_STATE_BYTES
from rockmate.fallback import on_demand_sequence
from rockmate.joint import JointGraph, is_random, tensor_leaves

COMPUTE = "compute"


@dataclass
class EmittedGraphs:
    """``forward`` returns the step's outputs, then what is saved; ``backward`` takes what is saved, then the tangents."""

    forward: fx.Graph
    backward: fx.Graph
    # What is saved, in order, by names in the joint graph: nodes, random ops by their generator state, and inputs that may be
    # overwritten before they are handed to a recomputed op.
    saved: list[str]
    replayed: list[str]
    unwatched: list[str]


class _Writer:
    """One of the two graphs while it is written. ``env`` holds, for nodes of the joint graph, their present copy."""

    def __init__(self, joint: JointGraph) -> None:
        self.joint = joint
        self.graph = fx.Graph()
        self.env: dict[fx.Node, fx.Node] = {}
        self.rng_states: dict[fx.Node, fx.Node] = {}
        self.alive: set[int] = set()  # storages with a present copy
        self.computed: set[fx.Node] = set()

    def placeholder(self, node: fx.Node) -> None:
        copy = self.graph.placeholder(node.name)
        copy.meta = dict(node.meta)
        if node in self.joint.stand_ins:
            copy.meta["saved_tensor_with_no_vc_check"] = True  # AOTAutograd's word for: may have changed since
        self.env[node] = copy
        self.alive.update(self.joint.storages.get(node, ()))

    def rng_placeholder(self, op: fx.Node) -> None:
        copy = self.graph.placeholder(f"{op.name}_rng_state")
        copy.meta = {"val": _fake_rng_state(op)}
        self.rng_states[op] = copy

    def get(self, node: fx.Node) -> fx.Node:
        """The node's copy; views and constants are made again where they are missing."""
        found = self.env.get(node)
        if found is not None:
            return found
        if node in self.joint.op_set or node.op == "placeholder":
            raise AssertionError(f"[emit] {node.name} is used where the schedule does not have it")
        self.env[node] = copy = self.graph.node_copy(node, self.get)
        copy.meta = dict(node.meta)
        return copy

    def compute(self, op: fx.Node, rng: str) -> None:
        """Emit one compute. ``rng`` is ``"plain"``, ``"save"`` or ``"replay"``."""
        args = fx.node.map_arg(op.args, self.get)
        kwargs = fx.node.map_arg(dict(op.kwargs), self.get)
        name = op.name if op not in self.computed else f"{op.name}_again"
        self.computed.add(op)
        if rng == "plain":
            result = self._call(name, op.target, args, kwargs)
            result.meta = dict(op.meta)
        elif rng == "save":
            both = self._call(name, run_and_save_rng_state, (op.target, *args), kwargs)
            both.meta = {**op.meta, "val": (_fake_rng_state(op), op.meta["val"])}
            self.rng_states[op] = self._getitem(both, 0)
            result = self._getitem(both, 1)
        else:
            result = self._call(name, run_with_rng_state, (self.rng_states[op], op.target, *args), kwargs)
            result.meta = dict(op.meta)
        self._bind(op, result)

    def _call(self, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> fx.Node:
        return self.graph.create_node("call_function", target, args, kwargs, name=name)

    def _getitem(self, node: fx.Node, index: int) -> fx.Node:
        item = self.graph.call_function(operator.getitem, (node, index))
        item.meta = {**node.meta, "val": node.meta["val"][index]}
        return item

    def _bind(self, op: fx.Node, result: fx.Node) -> None:
        """Let the outputs that have no present copy point to ``result``; the others keep theirs."""
        if isinstance(op.meta.get("val"), torch.Tensor):
            if not self.joint.storages[op] or not self.alive.issuperset(self.joint.storages[op]):
                self.env[op] = result
        else:
            for item in op.users:
                if item.target is not operator.getitem or item not in self.joint.storages:
                    continue
                if not self.alive.issuperset(self.joint.storages[item]) or not self.joint.storages[item]:
                    copy = self.graph.call_function(operator.getitem, (result, item.args[1]))
                    copy.meta = dict(item.meta)
                    self.env[item] = copy
        self.alive.update(self.joint.storages[op])

    def free(self, storage: int) -> None:
        for node in self.joint.nodes_of[storage]:
            self.env.pop(node, None)
        self.alive.discard(storage)

    def finish(self, outputs: Sequence[Any], descs: Sequence[Any]) -> fx.Graph:
        output = self.graph.output(tuple(outputs))
        output.meta["desc"] = list(descs)
        output.meta["output_stack_traces"] = [None] * len(outputs)
        return self.graph

    def get_output(self, value: Any) -> Any:
        return self.get(value) if isinstance(value, fx.Node) else value


def _fake_rng_state(op: fx.Node) -> torch.Tensor:
    """A stand-in for the generator state, for node metadata: bytes on the host."""
    sample = tensor_leaves(op.meta["val"])[0]
    size = CPU_RNG_STATE_BYTES if sample.device.type == "cpu" else 16
    return sample.new_empty((size,), dtype=torch.uint8, device="cpu")


def emit(
    joint: JointGraph,
    storage_of: Sequence[int],
    actions: Sequence[tuple[str, int]],
    forward_end: int,
    output_descs: Sequence[Any],
    full: JointGraph,
) -> EmittedGraphs:
    """Write the schedule ``actions`` (ids of the capture) as a forward and a backward graph.

    ``full`` is the joint graph with all tangents: the forward graph saves what :func:`emit_on_demand` needs of it, too.
    """
    runs = Counter(id for kind, id in actions if kind == COMPUTE)
    saved = _saved_by_forward(joint, storage_of, actions[forward_end:])
    replayed = [joint.ops[id] for id, count in runs.items() if count > 1 and is_random(joint.ops[id])]
    by_name = {node.name: node for node in joint.storages}
    if full is not joint:
        sequence, lacking = on_demand_sequence(full, [node.name for node in saved], [op.name for op in replayed])
        saved += [by_name[name] for name in lacking.nodes if name in by_name]
        names = {node.name for node in saved}
        saved += [by_name[n.name] for n in _inputs_read(full, sequence) if n.name in by_name and n.name not in names]
        replayed += [by_name[name] for name in lacking.states if name in by_name]

    # Saved in AOTAutograd's order: what autograd watches for later changes, then what may change.
    watched = [node for node in saved if node not in joint.stand_ins]
    unwatched = [node for node in saved if node in joint.stand_ins]
    returned = {key for node in joint.forward_outputs if isinstance(node, fx.Node) for key in joint.storages.get(node, ())}
    forward = _Writer(joint)
    for node in joint.primals:
        forward.placeholder(node)
    for kind, id in actions[:forward_end]:
        if kind == COMPUTE:
            op = joint.ops[id]
            forward.compute(op, "save" if op in replayed else "plain")
        elif storage_of[id] not in returned:  # new contents of buffers die as soon as they are returned
            forward.free(storage_of[id])
    outputs = [forward.get_output(node) for node in joint.forward_outputs]
    outputs += [forward.get(node) for node in watched] + [forward.rng_states[op] for op in replayed]
    outputs += [forward.get(node) for node in unwatched]
    num_forward_outputs, num_watched = len(joint.forward_outputs), len(watched) + len(replayed)
    descs = list(output_descs[:num_forward_outputs])
    descs += [SavedForBackwardsAOTOutput(i) for i in range(num_watched)]
    descs += [SavedForBackwardsNoVcCheckAOTOutput(num_watched + i) for i in range(len(unwatched))]
    forward_graph = forward.finish(outputs, descs)

    backward = _Writer(joint)
    for node in watched:
        backward.placeholder(node)
    for op in replayed:
        backward.rng_placeholder(op)
    for node in unwatched + joint.tangents:
        backward.placeholder(node)
    computed = {id for kind, id in actions[:forward_end] if kind == COMPUTE}
    for kind, id in actions[forward_end:]:
        if kind == COMPUTE:
            op = joint.ops[id]
            backward.compute(op, "replay" if id in computed and op in replayed else "plain")
            computed.add(id)
        else:
            backward.free(storage_of[id])
    backward_graph = backward.finish(
        [backward.get_output(node) for node in joint.backward_outputs], output_descs[num_forward_outputs:]
    )
    return EmittedGraphs(
        forward_graph,
        backward_graph,
        [node.name for node in watched],
        [op.name for op in replayed],
        [node.name for node in unwatched],
    )


def _backward_after(joint: JointGraph, emitted: EmittedGraphs) -> _Writer:
    """The beginning of a backward graph of ``joint`` that takes what the forward graph of ``emitted`` saves."""
    by_name = {node.name: node for node in joint.storages}
    backward = _Writer(joint)
    for name in emitted.saved:
        _saved_placeholder(backward, by_name, name)
    for name in emitted.replayed:
        if name in by_name:
            backward.rng_placeholder(by_name[name])
        else:
            backward.graph.placeholder(f"{name}_rng_state")
    for name in emitted.unwatched:
        _saved_placeholder(backward, by_name, name)
    for node in joint.tangents:
        backward.placeholder(node)
    return backward


def emit_on_demand(joint: JointGraph, emitted: EmittedGraphs) -> fx.Graph:
    """A backward graph for ``joint`` that takes what the forward graph of ``emitted`` saves; see :mod:`rockmate.fallback`."""
    backward = _backward_after(joint, emitted)
    sequence, lacking = on_demand_sequence(joint, emitted.saved + emitted.unwatched, emitted.replayed)
    if lacking.nodes or lacking.states:
        raise AssertionError(f"[emit] the forward pass did not save {lacking}")
    forward_ops = set(joint.ops[: joint.num_forward_ops])
    for op in sequence:
        backward.compute(op, "replay" if op in forward_ops and is_random(op) else "plain")
    descs = joint.graph.output_node().meta["desc"][len(joint.forward_outputs) :]
    return backward.finish([backward.get_output(node) for node in joint.backward_outputs], descs)


def emit_late(joint: JointGraph, storage_of: Sequence[int], schedule: Any, emitted: EmittedGraphs) -> fx.Graph:
    """The backward graph of a schedule that computes everything again, on what the forward graph of ``emitted`` saves.

    ``emitted`` was written for another such schedule, ``joint`` may hold other tangents.
    """
    backward = _backward_after(joint, emitted)
    computed = set(joint.ops[: joint.num_forward_ops])
    for kind, id in schedule.actions[schedule.forward_end :]:
        if kind == COMPUTE:
            op = joint.ops[id]
            backward.compute(op, "replay" if op in computed and is_random(op) else "plain")
            computed.add(op)
        else:
            backward.free(storage_of[id])
    descs = joint.graph.output_node().meta["desc"][len(joint.forward_outputs) :]
    return backward.finish([backward.get_output(node) for node in joint.backward_outputs], descs)


def _inputs_read(joint: JointGraph, sequence: Sequence[fx.Node]) -> list[fx.Node]:
    """The inputs of the step that the ops, or the backward pass's outputs, look at."""
    outputs = [node for node in joint.backward_outputs if isinstance(node, fx.Node)]
    read = [arg for op in sequence for arg in op.all_input_nodes] + outputs
    sources = (joint.source(node, key) for node in read for key in joint.storages.get(node, ()))
    primals = set(joint.primals)
    return list(dict.fromkeys(source for source in sources if source in primals))


def _saved_placeholder(backward: _Writer, by_name: dict[str, fx.Node], name: str) -> None:
    if name in by_name:
        backward.placeholder(by_name[name])
    else:
        backward.graph.placeholder(name)  # saved for others


def _saved_by_forward(
    joint: JointGraph, storage_of: Sequence[int], backward_actions: Sequence[tuple[str, int]]
) -> list[fx.Node]:
    """Where the storages come from that the backward actions take from the forward pass, or from its inputs."""
    present = {key for node in joint.tangents for key in joint.storages.get(node, ())}
    saved: dict[fx.Node, None] = {}

    def read(node: fx.Node) -> None:
        for key in joint.storages.get(node, ()):
            if key not in present and (source := joint.source(node, key)).op != "get_attr":
                saved[source] = None

    for kind, id in backward_actions:
        if kind != COMPUTE:
            present.discard(storage_of[id])
            continue
        for arg in joint.ops[id].all_input_nodes:
            read(arg)
        present.update(joint.storages[joint.ops[id]])
    for node in joint.backward_outputs:
        if isinstance(node, fx.Node):
            read(node)
    return list(saved)
