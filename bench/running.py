"""Train a few steps and remember all that has to be equal; time steps of several variants against each other."""

from __future__ import annotations

import copy
import gc
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from workloads import Inputs, Make

import rockmate

Step = Callable[[], Any]
LEARNING_RATE = 0.01


@dataclass
class Run:
    """What each step left behind; of the last one the activation peak in bytes, and the time in seconds.

    ``allocated_peak_bytes`` is what ``torch.cuda.max_memory_allocated`` says of it, parameter gradients included; 0 on the CPU.
    """

    states: list[dict[str, torch.Tensor | None]] = field(default_factory=list)
    peak_bytes: int = 0
    allocated_peak_bytes: int = 0
    step_s: float = 0.0
    model: Any = None


def train(make: Make, wrap: Callable[[nn.Module], nn.Module] = lambda model: model, steps: int = 3) -> Run:
    """Train with plain SGD from fixed seeds. The random stream is set once, before the model is wrapped."""
    torch.manual_seed(0)
    model, inputs = make()
    torch.manual_seed(1)
    trained = wrap(model)
    run = Run(model=trained)
    for _ in range(steps):
        outputs: list[Any] = []
        before_bytes = _start_cuda_peak()
        begin = time.perf_counter()
        peak = rockmate.measure_peak(lambda outputs=outputs: train_step(trained, inputs, outputs), exclude_grads_of=model)
        synchronize()
        run.step_s = time.perf_counter() - begin
        run.peak_bytes = peak.activation_bytes
        if torch.cuda.is_available():
            run.allocated_peak_bytes = torch.cuda.max_memory_allocated() - before_bytes
        run.states.append(
            {
                "loss": outputs[0].loss.detach().clone(),
                **{f"grad {name}": None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()},
                **{f"buffer {name}": buffer.clone() for name, buffer in model.named_buffers()},
                "random stream": torch.get_rng_state(),
                **({"random stream of the device": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {}),
            }
        )
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter -= LEARNING_RATE * parameter.grad
                parameter.grad = None
    return run


def _start_cuda_peak() -> int:
    if not torch.cuda.is_available():
        return 0
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def synchronize() -> None:
    """Wait for the accelerator, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def train_step(model: nn.Module, inputs: Inputs, outputs: list[Any]) -> None:
    output = model(**inputs)
    outputs.append(output)  # a training loop holds the output while it goes backward
    output.loss.backward()


def first_difference(expected: Run, got: Run) -> str | None:
    """Name of the first thing that is not equal to the bit, or ``None``: losses, gradients, buffers, random stream."""
    for step, (plain, ours) in enumerate(zip(expected.states, got.states, strict=True), start=1):
        for name, value in plain.items():
            other = ours.get(name)
            same = other is None if value is None else other is not None and torch.equal(value, other)
            if not same:
                return f"step {step}: {name}"
    return None


def same_results(expected: Run, got: Run) -> bool:
    """Whether all is equal to the bit."""
    return first_difference(expected, got) is None


def beyond_rounding(expected: Run, got: Run, tolerance: float = 1e-3) -> str | None:
    """Name of the first thing of the first step that rounding does not explain, or ``None``.

    Floating-point tensors may differ by ``tolerance`` of their largest entry, all others not at all; gradients that are
    nothing but rounding, by as much of :func:`_gradient_floor`. Later steps start from parameters that rounding has moved.
    """
    floor = _gradient_floor(expected)
    for name, value in expected.states[0].items():
        other = got.states[0].get(name)
        if value is None or other is None:
            if value is not other:
                return name
            continue
        scale = floor if name.startswith("grad ") else 1e-30
        if value.is_floating_point() and value.numel() > 0:
            allowed = tolerance * max(value.abs().max().item(), scale)
            is_close = value.shape == other.shape and (value - other).abs().max().item() <= allowed  # not where either is nan
        else:
            is_close = torch.equal(value, other)
        if not is_close:
            return name
    return None


def _gradient_floor(run: Run) -> float:
    """Below it the entries of a gradient are rounding: a hundred thousandth of the largest entry of all gradients.

    The bias of an attention's keys has no gradient, since softmax does not feel it: what is computed for it is what rounding
    leaves.
    """
    gradients = (value for name, value in run.states[0].items() if name.startswith("grad ") and value is not None)
    return max(1e-5 * max((value.abs().max().item() for value in gradients if value.numel() > 0), default=0.0), 1e-30)


def largest_gradient_error(expected: Run, got: Run) -> float:
    """Of the first step: the largest difference in any gradient, relative to the largest entry of that gradient, or to the
    floor of what is rounding."""
    worst, floor = 0.0, _gradient_floor(expected)
    for name, value in expected.states[0].items():
        other = got.states[0].get(name)
        if name.startswith("grad ") and value is not None and other is not None:
            scale = max(value.abs().max().item(), floor)
            error = (value - other).abs().max().item() / scale
            worst = max(worst, error if error == error else float("inf"))  # nan is no small error
    return worst


def step_of(model: nn.Module, inputs: Inputs) -> Step:
    """One forward and backward pass. Gradients of the step before are dropped first."""

    def step() -> None:
        model.zero_grad(set_to_none=True)
        train_step(model, inputs, [])
        synchronize()

    return step


def copies(make: Make, count: int) -> tuple[list[nn.Module], Inputs]:
    """As many equal models, so that each variant has its own."""
    torch.manual_seed(0)
    model, inputs = make()
    return [model, *(copy.deepcopy(model) for _ in range(count - 1))], inputs


def interleaved(
    variants: Mapping[str, Step],
    seconds: float,
    least_rounds: int = 12,
    most_rounds: int = 300,
    rare: Collection[str] = (),
) -> dict[str, dict[int, float]]:
    """Wall time in seconds of each variant, by round; the order turns from round to round.

    As many rounds as fit into ``seconds``, between the two bounds; a round before them warms up and is not counted.
    The ``rare`` variants, slow ones, take part in every fourth round only.
    """
    cost = {name: _timed(variants[name]) for name in variants}
    one_round = sum(seconds / (4 if name in rare else 1) for name, seconds in cost.items())
    rounds = max(least_rounds, min(most_rounds, int(seconds / one_round)))
    times: dict[str, dict[int, float]] = {name: {} for name in variants}
    gc.collect()
    gc.disable()
    try:
        for round_ in range(rounds):
            names = [name for name in variants if name not in rare or round_ % 4 == 0]
            for shift in range(len(names)):
                name = names[(round_ + shift) % len(names)]
                times[name][round_] = _timed(variants[name])
    finally:
        gc.enable()
    return times


def _timed(step: Step) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def ratio_figures(times: Mapping[str, Mapping[int, float]], name: str, base: str) -> dict[str, float]:
    """Median step time in ms, and median and quartiles of the time against ``base`` in the same round."""
    ratios = [mine / times[base][round_] for round_, mine in times[name].items()]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "step_ms": statistics.median(times[name].values()) * 1e3,
        "ratio": middle,
        "ratio_low": low,
        "ratio_high": high,
        "rounds": len(ratios),
    }
