"""Let a piece hand on the gradient of an input term by term.

Sums of floating-point numbers depend on their order. The gradient of a tensor ``a`` that is read in several places is summed in
the order in which the backward pass reaches them, latest first. When one place is in a later piece and two are in this one,

    plain      (g_later + g_2) + g_1
    in pieces  g_later + (g_2 + g_1)

The piece would add its terms before autograd adds the sum to what is there already. So each term gets an output of its own: the
piece takes ``a`` several times, and the gradient of each is one term. Autograd then adds them up in the plain order. How many
terms there are is guessed from the Dynamo graph, and known when the piece has been traced: where the guess was too low, it is
traced once more.

A weight that is used at every step of a loop has many terms, each as large as the weight: of a parameter's terms only the last
few are handed on by themselves. Where that changes the sum, because a later piece reads the weight too, a warning tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import PlainAOTInput
from torch.utils._pytree import tree_leaves

from rockmate.joint import inputs_with_gradients, tangents_of
from rockmate.leaf_gradients import COPIED_FOR_ENGINE

MOST_TERMS = 16
MOST_TERMS_OF_PARAMETERS = 8


@dataclass
class Terms:
    """How many terms the gradients of a piece's inputs have, by the number of the input.

    Attributes:
        guessed: from the Dynamo graph.
        limits: how many are handed on by themselves at most.
        counted: in what was traced; the most of all traces.
        fixed: how many places each gradient has, once the piece was compiled: its schedules are made for so many.
    """

    guessed: dict[int, int]
    limits: dict[int, int]
    counted: dict[int, int] = field(default_factory=dict)
    fixed: dict[int, int] | None = None

    @staticmethod
    def of(gm: fx.GraphModule, inputs: Sequence[Any]) -> Terms:
        terms = Terms({}, {})
        for index, (node, value) in enumerate(zip(gm.graph.find_nodes(op="placeholder"), inputs, strict=True)):
            if isinstance(value, torch.Tensor) and value.requires_grad:
                terms.guessed[index] = _most_terms(node, value)
                terms.limits[index] = _limit(node, value)
        return terms

    def places(self) -> dict[int, int]:
        """How many places each gradient gets."""
        if self.fixed is not None:
            return self.fixed
        return {i: min(max(guess, self.counted.get(i, 0)), self.limits[i]) for i, guess in self.guessed.items()}

    def count(self, index: int, terms: int) -> None:
        self.counted[index] = max(terms, self.counted.get(index, 0))

    def summed_beforehand(self) -> frozenset[int]:
        """Numbers of the inputs whose gradients have more terms than are handed on by themselves."""
        places = self.places()
        return frozenset(i for i, count in self.counted.items() if count > places.get(i, count))


def with_repeated_inputs(gm: fx.GraphModule, terms: Terms) -> tuple[fx.GraphModule, list[int]]:
    """The Dynamo graph with more placeholders, for inputs whose gradients may be sums; and which input each one stands for.

    Nothing reads them: they give the gradients a place.
    """
    placeholders = gm.graph.find_nodes(op="placeholder")
    repeated = [index for index, places in terms.places().items() for _ in range(places - 1)]
    if not repeated:
        return gm, repeated
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node is placeholders[-1]:
            for number, index in enumerate(repeated):
                graph.placeholder(f"{placeholders[index].name}_term_{number}")
    return fx.GraphModule(gm, graph), repeated


def _limit(node: fx.Node, value: torch.Tensor) -> int:
    """How many terms are handed on by themselves. An input that the graph writes into can't be given more than once."""
    traced = node.meta.get("example_value")
    if isinstance(traced, torch.Tensor) and traced._version > 0:
        return 1
    return MOST_TERMS_OF_PARAMETERS if isinstance(value, torch.nn.Parameter) else MOST_TERMS


def _most_terms(node: fx.Node, value: torch.Tensor) -> int:
    """How often the graph reads the input. Functions made of several ops may read an input more often than the graph shows."""
    uses = sum(tree_leaves((user.args, user.kwargs)).count(node) for user in node.users)
    if isinstance(value, torch.nn.Parameter):
        return uses
    return uses + sum(user.op == "call_function" for user in node.users)


def separate_terms(
    joint: fx.Graph, num_forward_outputs: int, repeated: Sequence[int], num_inputs: int, counts: Terms
) -> fx.Graph:
    """The joint graph; a copy where it has summed gradients whose terms are handed to the repeated inputs. Keeps names.

    Args:
        joint: forward and backward pass.
        num_forward_outputs: so many of its outputs are the forward pass's.
        repeated: see :func:`with_repeated_inputs`.
        num_inputs: inputs of the Dynamo graph, the repeated ones not counted.
        counts: is told how many terms there are.
    """
    places, inputs, backward = _places_of_inputs(joint), inputs_with_gradients(joint), _backward_nodes(joint)
    outputs: list[Any] = list(joint.output_node().args[0])  # type: ignore[arg-type]
    handed_on: dict[int, Any] = {}  # by the place among the outputs
    for index in [index for index in places if index < num_inputs]:
        first = num_forward_outputs + places[index]
        gradient = _before_copy(outputs[first])
        # No more terms than reads: h = a + b hands the gradient of h on as it is, and other sums in it are those of h.
        count = min(len(_sums(gradient)) + 1, max(_forward_reads(inputs[places[index]], backward), 1))
        counts.count(index, count)
        others = [places[num_inputs + n] for n, of in enumerate(repeated) if of == index and num_inputs + n in places]
        terms = _terms(gradient, min(count, len(others) + 1))
        if len(terms) > 1:
            handed_on.update(zip([first, *(num_forward_outputs + place for place in others)], terms, strict=False))
    if not handed_on:
        return joint
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in joint.nodes:
        if node.op != "output":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    results = [handed_on.get(place, result) for place, result in enumerate(outputs)]
    graph.output(tuple(copies.get(result, result) for result in results)).meta = dict(joint.output_node().meta)
    return graph


def _places_of_inputs(graph: fx.Graph) -> dict[int, int]:
    """For each input of the Dynamo graph the place of its gradient among those of the joint graph."""
    descs = [node.meta.get("desc") for node in inputs_with_gradients(graph)]
    return {desc.idx: place for place, desc in enumerate(descs) if isinstance(desc, PlainAOTInput)}


def _backward_nodes(graph: fx.Graph) -> set[fx.Node]:
    """All from the first op on that depends on a gradient."""
    tangents = set(tangents_of(graph))
    backward: set[fx.Node] = set()
    for node in graph.nodes:
        if backward or not tangents.isdisjoint(node.all_input_nodes):
            backward.add(node)
    return backward


def _forward_reads(value: fx.Node, backward: set[fx.Node]) -> int:
    """How often the forward pass reads the value."""
    return sum(tree_leaves((user.args, user.kwargs)).count(value) for user in value.users if user not in backward)


def _before_copy(gradient: Any) -> Any:
    """The sum itself, where it is copied for the autograd engine: terms are added up by the engine, which then copies."""
    while isinstance(gradient, fx.Node) and gradient.meta.get(COPIED_FOR_ENGINE):
        gradient = gradient.args[0]
    return gradient


def _sums(gradient: Any) -> list[fx.Node]:
    """The additions by which autograd summed the gradient, the last one first."""
    sums = []
    while isinstance(gradient, fx.Node) and gradient.meta.get("is_gradient_acc") and len(gradient.args) == 2:
        sums.append(gradient)
        gradient = gradient.args[0]
    return sums


def _terms(gradient: Any, most: int) -> list[Any]:
    """The terms of the sum, in the order in which they were added; those before the last ``most - 1`` together, as one."""
    last = _sums(gradient)[: most - 1]
    return [last[-1].args[0], *(node.args[1] for node in reversed(last))] if last else [gradient]
