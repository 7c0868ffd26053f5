"""Keep inputs attached whose gradients the plan does not expect.

AOTAutograd detaches an input that is no leaf when the planned backward graph gives ``None`` for its gradient, whatever
gradients come later (``_compute_indices_of_inps_to_detach``). The gradient of an output that is not planned for would never
get through to what comes before the input, silently. So the backward graph that it is shown gives something for each such
input; what is compiled gives ``None``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx


def gradients_unplanned(planned: Sequence[Any], full: Sequence[Any]) -> list[int]:
    """Places of the inputs that get a gradient from other outputs alone.

    Args:
        planned: what the planned backward pass gives for each input, ``None`` for no gradient.
        full: the same when all outputs are differentiated.
    """
    return [place for place, (ours, other) in enumerate(zip(planned, full, strict=True)) if ours is None and other is not None]


def show_gradients(backward: fx.Graph, places: Sequence[int]) -> None:
    """Let the backward graph give something at the places; it has at least one placeholder, a gradient that comes."""
    if places:
        _give(backward, places, backward.find_nodes(op="placeholder")[-1])


def hide_gradients(backward: fx.GraphModule, places: Sequence[int]) -> None:
    """Let the graph that is compiled give ``None`` at the places again."""
    if places:
        _give(backward.graph, places, None)
        backward.recompile()


def _give(graph: fx.Graph, places: Sequence[int], value: fx.Node | None) -> None:
    output = graph.output_node()
    given: list[Any] = list(output.args[0])  # type: ignore[arg-type]
    for place in places:
        given[place] = value
    output.args = (tuple(given),)
