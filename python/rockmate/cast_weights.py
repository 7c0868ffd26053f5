"""Tell of weights that plain PyTorch casts once, and that two captured graphs cast apart.

In an autocast region plain PyTorch casts a weight for the first op that needs it, and keeps the cast until the region ends: the
weight's gradients meet in the low precision. Each captured graph has casts of its own (see :mod:`rockmate.autocast`). So when
a model is called twice in one region, or two of its pieces use one weight, the gradients meet in the high precision: they
differ from plain training by the rounding of the low one. A warning says so, once for each graph. A backward pass between
two calls takes the gradient to the weight at once, in plain training too: nothing differs then.

Uses of a weight outside of all captured graphs are not seen.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from rockmate.autocast import weights_cast

Weights = dict[int, tuple[int, int]]  # the state of its gradient when it was cast, by the identity of each weight


class _Regions(threading.local):
    """The autocast region on each device that this thread was in last, and what was cast in it."""

    def __init__(self) -> None:
        self.probes: dict[torch.device, torch.Tensor] = {}
        self.casts: dict[torch.device, Any] = {}  # autograd nodes of the probes' casts, which live as long as the region
        self.weights: dict[torch.device, Weights] = {}


_regions = _Regions()


class CastWeights:
    """The weights that a captured graph casts under autocast."""

    def __init__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> None:
        self._numbers, self._goes_on = weights_cast(gm, inputs)
        self._told = False

    def begin_call(self, args: Sequence[Any], cast_in_step: Weights | None = None) -> None:
        """Warn when a weight was cast before in the region that this call is in.

        A region of the model's own, which a break between two pieces cuts, is taken for one with the others of the step.
        """
        if self._told or not self._numbers:
            return
        weights = {id(args[number]): _state_of_gradient(args[number]) for number in self._numbers}
        seen = _cast_in_region(args[self._numbers[0]].device) if self._goes_on else cast_in_step
        if seen is None:
            return
        if any(seen.get(weight) == state for weight, state in weights.items()):
            self._told = True
            warnings.warn(
                "[autocast] a weight is used by two calls of the model, or by two of its pieces, in one autocast region. Plain "
                "PyTorch casts it once there; here each call or piece casts it, and the weight's gradient is summed in the "
                "precision of the weight, not in that of autocast: it may differ from plain training in rounding. Give each "
                "call a region of its own, or switch the cache off (cache_enabled=False), for results that are the same",
                RuntimeWarning,
                stacklevel=3,
            )
        seen.update(weights)


def _state_of_gradient(weight: torch.Tensor) -> tuple[int, int]:
    """Changes when a backward pass adds to the gradient."""
    return (0, -1) if weight.grad is None else (id(weight.grad), weight.grad._version)


def _cast_in_region(device: torch.device) -> Weights:
    """What graphs have cast in the region that this thread is in now: the cast of a tensor without elements tells it."""
    probe = _regions.probes.get(device)
    if probe is None:
        probe = _regions.probes[device] = torch.zeros(0, 0, dtype=torch.float32, device=device, requires_grad=True)
    with torch.enable_grad():
        cast = torch.mm(probe, probe).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    if cast is not _regions.casts.get(device):
        _regions.casts[device], _regions.weights[device] = cast, {}
    return _regions.weights[device]
