"""Refuse what Dynamo's graph would compute otherwise than the plain model."""

from __future__ import annotations

from typing import Any

from torch import fx

from rockmate.errors import CaptureError
from rockmate.joint import describe


def check_dynamo_graph(gm: fx.GraphModule) -> None:
    """Raise :class:`CaptureError` for calls of NumPy's random functions.

    Dynamo replaces them by PyTorch's: other numbers, drawn from another stream.
    """
    for node in gm.graph.nodes:
        function: Any = getattr(node.target, "f", None)  # Dynamo wraps NumPy's functions
        if getattr(function, "__module__", None) == "torch._numpy.random":
            raise CaptureError(
                f"[capture] the model draws from NumPy's random generator: {describe(node)}. A captured step would draw other "
                "numbers. Draw with torch.rand and the like, or draw outside of the model and pass the numbers in"
            )
