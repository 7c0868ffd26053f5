"""A backward pass for gradients that the plan did not expect.

The plan is made for the outputs that are usually differentiated. When a gradient arrives through others too (or through fewer),
the step must still be right: this writes a backward graph for exactly the gradients that came, which recomputes on demand
whatever the forward pass did not save. It is right for any saved set that holds the inputs; it keeps no budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import fx

from rockmate.joint import JointGraph, is_random


@dataclass
class Lacking:
    """What the forward pass would have to save besides: names of nodes, and of random ops for their generator state."""

    nodes: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)


def on_demand_sequence(joint: JointGraph, saved: Iterable[str], states: Iterable[str]) -> tuple[list[fx.Node], Lacking]:
    """The ops of the backward pass in order, each preceded by what it needs and is not there.

    Args:
        joint: the joint graph for the gradients that arrive.
        saved: names of the nodes saved by the forward pass.
        states: names of the random ops whose generator state is saved.
    """
    names = set(saved)
    present = {key for node, keys in joint.storages.items() if node.op in ("placeholder", "get_attr") for key in keys} | {
        key for node, keys in joint.storages.items() if node.name in names for key in keys
    }
    forward = set(joint.ops[: joint.num_forward_ops])
    maker_op = {key: op for op in reversed(joint.ops) for key in joint.storages[op]}
    known_states = set(states)
    sequence: list[fx.Node] = []
    lacking = Lacking()

    def missing_makers(node: fx.Node) -> list[fx.Node]:
        found = []
        for key in joint.storages.get(node, ()):
            if key in present:
                continue
            if maker_op[key] in forward and maker_op[key] in joint.run_once:
                lacking.nodes.append(joint.maker(key).name)  # it can't run twice: its result has to be saved
                present.add(key)
            else:
                found.append(maker_op[key])
        return found

    def run(op: fx.Node) -> None:
        stack = [op]
        while stack:
            current = stack[-1]
            if pending := [maker for arg in current.all_input_nodes for maker in missing_makers(arg)]:
                stack.extend(reversed(pending))
                continue
            stack.pop()
            if current is op or not present.issuperset(joint.storages[current]):
                sequence.append(current)
                present.update(joint.storages[current])
                if current in forward and is_random(current) and current.name not in known_states:
                    lacking.states.append(current.name)
                    known_states.add(current.name)

    for op in joint.ops[joint.num_forward_ops :]:
        run(op)
    for output in joint.backward_outputs:
        if isinstance(output, fx.Node):
            for maker in missing_makers(output):
                run(maker)
    return sequence, lacking


def held_for_others(joint: JointGraph, full: JointGraph) -> Lacking:
    """What the forward pass saves for gradients that are not expected, whatever the plan of those that are.

    Everything else can be computed again from what the plan saves and from the inputs.

    Args:
        joint: the joint graph for the gradients that are expected.
        full: the one for all.
    """
    # What the expected backward pass reads of the forward pass is saved, or computed again: then the generator states of the
    # draws behind it are saved by the plan.
    made = set(joint.primals).union(joint.ops[: joint.num_forward_ops])
    forward_keys = {key for node in made for key in joint.storages.get(node, ())}
    read = [arg for op in joint.ops[joint.num_forward_ops :] for arg in op.all_input_nodes]
    read += [node for node in joint.backward_outputs if isinstance(node, fx.Node)]
    saved = [node.name for node in read if forward_keys.issuperset(joint.storages.get(node, ()))]
    return Lacking(on_demand_sequence(full, (), ())[1].nodes, on_demand_sequence(full, saved, ())[1].states)
