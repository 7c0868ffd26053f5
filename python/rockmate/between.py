"""What is held between the pieces of a model, read off the autograd graph.

Ops that run outside of all pieces hold memory, too: what they save for their backward pass, and what they hand to a piece. And
gradients wait between pieces: one for the output of the first piece that comes from the third waits while the second runs
backward. The autograd graph knows the ops' saved tensors and the size of every gradient. Walking it in the order in which the
engine will gives what is held beside each piece.

Not seen: what eager ops hold while they run, and tensors that only Python holds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

# Their backward pass gives a view of the gradient that it gets.
_VIEWS = ("View", "Alias", "Transpose", "TBackward", "Permute", "Squeeze", "Expand", "Detach", "Split", "Unbind", "Select")


@dataclass
class CallRecord:
    """A call of a piece, in its first step.

    Attributes:
        function: the autograd node of the call.
        outputs: storages that it returned, with their bytes.
        inputs: storages that it was given and that are not the module's own, with their bytes.
    """

    function: Any
    outputs: list[tuple[StorageWeakRef, int]] = field(default_factory=list)
    inputs: list[tuple[StorageWeakRef, int]] = field(default_factory=list)


@dataclass
class Between:
    """Bytes held beside ``k`` calls.

    Attributes:
        eager_bytes: ``k + 1`` entries: held from before call ``i`` (the last one: after all) until after its backward.
        waiting_bytes: held besides while call ``i`` runs backward.
        after_bytes: held besides, at the most, between call ``i`` and its backward outside of all pieces.
    """

    eager_bytes: list[int]
    waiting_bytes: list[int]
    after_bytes: list[int]


def storages_of(values: Iterable[Any]) -> list[tuple[StorageWeakRef, int]]:
    """The storages of the tensors among the values."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            try:
                storage = value.untyped_storage()
            except (NotImplementedError, RuntimeError):
                continue
            found.append((StorageWeakRef(storage), storage.nbytes()))
    return found


def held_between(calls: Sequence[CallRecord], outputs: Sequence[Any] | None, given: Iterable[Any]) -> Between:
    """Walk the autograd graph of a step whose forward pass is over.

    Args:
        calls: the calls of the step, in order.
        outputs: what the step returns and its caller holds; ``None`` when unknown: then the walk begins at the last calls.
        given: tensors that were there before the step.
    """
    given = [value for value in given if isinstance(value, torch.Tensor)]
    graph = _Graph(
        [call.function for call in calls],
        [value.grad_fn for value in outputs or () if isinstance(value, torch.Tensor)],
        {id(value.grad_fn) for value in given if value.grad_fn is not None},
    )
    positions = graph.positions
    known = {ref.cdata for ref, _ in storages_of(given)}
    owner: dict[int, int] = {}  # storages that pieces returned
    for index, call in enumerate(calls):
        for ref, _ in call.outputs:
            if ref.cdata not in known:
                owner.setdefault(ref.cdata, index)
    first_use: dict[int, tuple[int, int]] = {}  # other storages: (number of calls before, bytes)

    def uses(storages: Iterable[tuple[StorageWeakRef, int]], position: int) -> None:
        for ref, size in storages:
            key = ref.cdata
            if key not in known and key not in owner:
                first_use[key] = (min(position, first_use[key][0]), size) if key in first_use else (position, size)

    for index, call in enumerate(calls):
        uses(call.inputs, index)
    refs = []  # keep addresses from being taken again
    for node in graph.eager_nodes:
        saved = storages_of(tensor for tensor in _saved_tensors(node) if not isinstance(tensor, torch.nn.Parameter))
        refs.append(saved)
        uses(saved, positions[node])
    eager_bytes = [0] * (len(calls) + 1)
    for position, size in first_use.values():
        eager_bytes[position] += size

    waiting_bytes, after_bytes = graph.run_backward(_differentiated(outputs or ()))
    for index in range(len(calls)):
        # What the caller holds is there throughout. It is counted with the call that made it until that runs backward.
        held = 0
        for key, size in _held_by_the_caller(calls, outputs).items():
            if key in owner:
                held += size if index <= owner[key] else 0
            elif key not in known and index < first_use.get(key, (len(calls), 0))[0]:
                held += size
        waiting_bytes[index] += held
        after_bytes[index] += held + eager_bytes[index + 1]
    return Between(eager_bytes, waiting_bytes, after_bytes)


def parameters_of_eager_ops(outputs: Any) -> list[torch.Tensor]:
    """The leaves whose gradients come from ops outside of all pieces, given what the step returned."""
    stack = [value.grad_fn for value in tree_leaves(outputs) if isinstance(value, torch.Tensor) and value.grad_fn is not None]
    seen = set(stack)
    leaves: dict[int, torch.Tensor] = {}
    while stack:
        node = stack.pop()
        for following, _ in node.next_functions:
            if following is None:
                continue
            if hasattr(following, "variable"):
                if type(node).__name__ != "CompiledFunctionBackward":
                    leaves[id(following.variable)] = following.variable
            elif following not in seen:
                seen.add(following)
                stack.append(following)
    return list(leaves.values())


def _differentiated(outputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs whose gradients are there when the backward pass begins: a loss alone if there is one, else all."""
    candidates = [value for value in outputs if isinstance(value, torch.Tensor) and value.grad_fn is not None]
    return [value for value in candidates if value.dim() == 0] or candidates


def _held_by_the_caller(calls: Sequence[CallRecord], outputs: Sequence[Any] | None) -> dict[int, int]:
    """Storages and their bytes. Unless the outputs are known: what pieces returned, is alive, and is not saved by one."""
    if outputs is not None:
        return {ref.cdata: size for ref, size in storages_of(outputs)}
    saved: set[int] = set()
    for call in calls:
        try:
            saved.update(ref.cdata for ref, _ in storages_of(_saved_tensors(call.function)))
        except RuntimeError:  # the call runs backward right now and has taken what it saved
            saved.update(ref.cdata for ref, _ in call.inputs)
    made = (item for call in calls for item in call.outputs)
    return {ref.cdata: size for ref, size in made if ref.cdata not in saved and not ref.expired()}


def _saved_tensors(node: Any) -> Iterable[torch.Tensor]:
    """What the node holds for its backward pass. Reads the slots as they are: hooks that unpack are not called."""
    for name in dir(node):
        if name.startswith("_raw_saved_"):
            slots = getattr(node, name)
            for slot in slots if isinstance(slots, (list, tuple)) else [slots]:
                yield from (leaf for leaf in tree_leaves(slot.data) if isinstance(leaf, torch.Tensor))


class _Graph:
    """The autograd nodes from the ends of a step to what was there before it."""

    def __init__(self, functions: list[Any], roots: list[Any], stop: set[int]) -> None:
        self.functions = functions
        self.number = {function: index for index, function in enumerate(functions)}
        self.nodes: dict[Any, None] = {}
        self.dependencies: dict[Any, int] = {}
        stack = [root for root in [*roots, *functions] if root is not None]
        while stack:
            node = stack.pop()
            if node in self.nodes or id(node) in stop:
                continue
            self.nodes[node] = None
            for following, _ in node.next_functions:
                if following is not None and id(following) not in stop:
                    self.dependencies[following] = self.dependencies.get(following, 0) + 1
                    stack.append(following)
        order = sorted(function._sequence_nr() for function in functions)
        self.eager_nodes = [node for node in self.nodes if node not in self.number and not _accumulates(node)]
        self.positions = {node: sum(nr < node._sequence_nr() for nr in order) for node in self.eager_nodes}

    def run_backward(self, differentiated: Sequence[torch.Tensor]) -> tuple[list[int], list[int]]:
        """Gradients that wait, as the engine will go: the latest node that is ready comes next."""
        count = len(self.functions)
        waiting_bytes, after_bytes = [0] * count, [0] * count
        waiting: dict[tuple[Any, int], int] = {}
        for value in differentiated:
            if value.grad_fn in self.nodes:
                waiting[value.grad_fn, value.output_nr] = _slot_bytes(value.grad_fn, value.output_nr)
        arrived = set(waiting)
        dependencies = dict(self.dependencies)
        ready = [(-_order(node), i, node) for i, node in enumerate(self.nodes) if not dependencies.get(node)]
        heapq.heapify(ready)
        ties = len(self.nodes)
        # Whoever starts the backward pass of a loss holds its gradient until the end.
        begun = sum(_scalar_bytes(node) for _, _, node in ready)
        pending = set(range(count))
        while ready:
            _, _, node = heapq.heappop(ready)
            if _accumulates(node):
                continue  # the gradient of an input stays
            slots = [key for key in waiting if key[0] is node]
            own = sum(waiting.pop(key) for key in slots)
            others = begun + sum(waiting.values())
            made = again = 0
            edges = [(following, slot) for following, slot in node.next_functions if following is not None]
            for following, slot in edges:
                size = _slot_bytes(following, slot)
                key = (following, slot)
                if key in arrived:
                    again += size  # is added to the one that is there
                elif not _is_parameter(following):
                    made += size
                    waiting[key] = size
                arrived.add(key)
                if following in self.nodes:
                    dependencies[following] -= 1
                    if dependencies[following] == 0:
                        ties += 1
                        heapq.heappush(ready, (-_order(following), ties, following))
            if node in self.number:
                waiting_bytes[self.number[node]] = others + again
                pending.discard(self.number[node])
            elif pending:
                views = any(part in type(node).__name__ for part in _VIEWS)
                held = others + own + again + (0 if views else made)
                after_bytes[max(pending)] = max(after_bytes[max(pending)], held)
        return waiting_bytes, after_bytes


def _order(node: Any) -> int:
    return int(node._sequence_nr()) if not _accumulates(node) else 1 << 62


def _accumulates(node: Any) -> bool:
    return type(node).__name__ == "AccumulateGrad"


def _is_parameter(node: Any) -> bool:
    return _accumulates(node) and isinstance(node.variable, torch.nn.Parameter)


def _scalar_bytes(node: Any) -> int:
    return sum(_slot_bytes(node, i) for i, meta in enumerate(node._input_metadata) if len(meta.shape) == 0)


def _slot_bytes(node: Any, slot: int) -> int:
    meta = node._input_metadata[slot]
    size = 1
    for length in meta.shape:
        size *= int(length)
    return size * int(meta.dtype.itemsize)
