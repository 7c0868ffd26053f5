"""torch.utils.checkpoint as a user would apply it: per layer, and the best selective choice that keeps a peak."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from peer_models import PeerModel
from running import Run, same_results, step_of, train
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from workloads import Make

import rockmate

_aten = torch.ops.aten
_MATMULS = [_aten.mm, _aten.addmm, _aten.bmm, _aten.baddbmm, _aten.linear]
_ATTENTION = [
    getattr(_aten, name)
    for name in (
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_fused_attention_overrideable",
    )
]
_CONVOLUTIONS = [_aten.convolution, _aten._convolution, _aten.cudnn_convolution, _aten.mkldnn_convolution]
_BATCH_NORMS = [
    _aten.native_batch_norm,
    _aten._native_batch_norm_legit,
    _aten.cudnn_batch_norm,
    _aten._batch_norm_with_update,
]

#: Ops whose results a checkpointed layer keeps; everything else in it is computed again.
POLICIES: dict[str, list[Any]] = {
    "nothing kept": [],
    "matmuls kept": _MATMULS,
    "attention kept": _ATTENTION,
    "matmuls and attention kept": _MATMULS + _ATTENTION,
    "convolutions kept": _CONVOLUTIONS,
    "batch norms kept": _BATCH_NORMS,
    "convolutions and batch norms kept": _CONVOLUTIONS + _BATCH_NORMS,
}


@dataclass
class Choice:
    """A selective choice: policy, and how many of the layers, counted from the first, are checkpointed."""

    policy: str
    count: int
    of: int
    run: Run
    step_s: float
    is_right: bool

    def __str__(self) -> str:
        return f"first {self.count} of {self.of} layers, {self.policy}" + ("" if self.is_right else " (wrong)")


def checkpoint_layers(model: nn.Module, layers: list[nn.Module], kept: list[Any], seen: set[Any] | None = None) -> nn.Module:
    """Run each of the layers under torch.utils.checkpoint. ``seen`` collects the ops of ``kept`` that they call."""

    def policy(_: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        if getattr(op, "overloadpacket", op) in kept:
            if seen is not None:
                seen.add(op)
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    options: dict[str, Any] = {"use_reentrant": False}
    if kept:
        options["context_fn"] = partial(create_selective_checkpoint_contexts, policy)
    for layer in layers:
        # On the instance, as users do it where a model has no switch of its own.
        layer.forward = _checkpointed(layer.forward, options)
    return model


def _checkpointed(forward: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: checkpoint(forward, *args, **options, **kwargs)


def best_selective(
    peer: PeerModel, make: Make, plain: Run, within_bytes: int, progress: Callable[[str], None]
) -> tuple[list[Choice], int]:
    """The choices that keep the peak, one for each policy, the best first: right results before wrong ones, then time.

    Each policy is applied to as few layers as keep the peak (found by bisection: checkpointing more layers holds less).
    Policies that save nothing in this model are left out, as are those that fail. Returned besides is the least peak of
    any policy, in bytes.
    """
    torch.manual_seed(0)
    model, inputs = make()
    total = len(peer.layers_of(model))
    choices = []
    least_bytes = plain.peak_bytes
    for name, kept in POLICIES.items():
        seen: set[Any] = set()

        def peak(count: int, kept: list[Any] = kept, seen: set[Any] = seen) -> int:
            trial = copy.deepcopy(model)
            checkpoint_layers(trial, peer.layers_of(trial)[:count], kept, seen)
            return rockmate.measure_peak(step_of(trial, inputs), exclude_grads_of=trial).activation_bytes

        try:
            all_layers_bytes = peak(total)
            least_bytes = min(least_bytes, all_layers_bytes)
            if all_layers_bytes > within_bytes or (kept and not seen):
                continue
            low, high = 0, total  # of which high keeps the peak
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if peak(middle) <= within_bytes else (middle, high)
            progress(f"checkpoint the first {high} of {total} layers, {name}")
            run = train(make, lambda m, n=high, kept=kept: checkpoint_layers(m, peer.layers_of(m)[:n], kept))
        except Exception as error:
            progress(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
            continue
        choices.append(Choice(name, high, total, run, run.step_s, same_results(plain, run)))
    return sorted(choices, key=lambda choice: (not choice.is_right, choice.step_s)), least_bytes
