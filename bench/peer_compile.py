"""torch.compile with PyTorch's own memory budget (``torch._functorch.config.activation_memory_budget``)."""

from __future__ import annotations

from typing import Any

import torch
from peer_models import Wrap
from torch import nn


def compiled(share: float, compiler: str) -> Wrap:
    """The model compiled by ``"aot_eager"`` or ``"inductor"`` under a memory budget, in a graph of its own.

    Inductor draws random numbers by ATen's generators here: with its own there would be nothing to compare. The backward
    graph is compiled at once, under the same settings.
    """

    def wrap(model: nn.Module) -> nn.Module:
        def backend(gm: Any, inputs: Any) -> Any:
            with (
                torch._functorch.config.patch(activation_memory_budget=share, force_non_lazy_backward_lowering=True),
                torch._inductor.config.patch(fallback_random=True),
            ):
                return torch._dynamo.lookup_backend(compiler)(gm, inputs)

        return torch.compile(model, backend=backend, dynamic=False)

    return wrap
