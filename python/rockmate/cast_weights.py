"""Tell of weights that plain PyTorch casts once, and that two captured graphs cast apart.

In an autocast region plain PyTorch casts a weight for the first op that needs it, and keeps the cast until the region ends: the
weight's gradients meet in the low precision. Each captured graph has casts of its own (see :mod:`rockmate.autocast`). So when
a model is called twice in one region, or two of its pieces use one weight, the gradients meet in the high precision: they
differ from plain training by the rounding of the low one. A warning says so, once for each graph.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from rockmate.autocast import weights_cast


class _Region(threading.local):
    """The autocast region that this thread was in last, and what was cast in it."""

    def __init__(self) -> None:
        self.probes: dict[torch.device, torch.Tensor] = {}
        self.cast: Any = None  # the autograd node of the probe's cast, which lives as long as the region
        self.weights: set[int] = set()


_region = _Region()


class CastWeights:
    """The weights that a captured graph casts under autocast."""

    def __init__(self, gm: fx.GraphModule, inputs: Sequence[Any]) -> None:
        self._numbers, self._goes_on = weights_cast(gm, inputs)
        self._told = False

    def begin_call(self, args: Sequence[Any], cast_in_step: set[int] | None = None) -> None:
        """Warn when a weight was cast before in the region that this call is in, or in this step of a model in pieces."""
        if self._told or not self._numbers:
            return
        weights = {id(args[number]) for number in self._numbers}
        seen = cast_in_step if cast_in_step is not None else set()
        if self._goes_on:
            seen = seen | _cast_in_region(args[self._numbers[0]].device)
            _region.weights |= weights
        if not weights.isdisjoint(seen):
            self._told = True
            warnings.warn(
                "[autocast] a weight is used by two calls of the model, or by two of its pieces, in one autocast region. Plain "
                "PyTorch casts it once there; here each call or piece casts it, and the weight's gradient is summed in the "
                "precision of the weight, not in that of autocast: it differs from plain training in rounding. Give each call "
                "a region of its own, or switch the cache off (cache_enabled=False), for results that are the same",
                RuntimeWarning,
                stacklevel=3,
            )
        if cast_in_step is not None:
            cast_in_step |= weights


def _cast_in_region(device: torch.device) -> set[int]:
    """What graphs have cast in the region that this thread is in now: the cast of a tensor without elements tells it."""
    probe = _region.probes.get(device)
    if probe is None:
        probe = _region.probes[device] = torch.zeros(0, 0, device=device, requires_grad=True)
    with torch.enable_grad():
        cast = torch.mm(probe, probe).grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    if cast is not _region.cast:
        _region.cast, _region.weights = cast, set()
    return _region.weights
