"""Train a model plainly and through Rockmate at three budgets, and hold everything that can be seen against the other.

Per step: outputs (structure, types, values, strides, ``requires_grad``, which are the same object or share memory), the
gradient of every parameter and input (or its absence), inputs, buffers, what the case itself counts, and the state of the
random streams of PyTorch, NumPy and Python. Then the measured peak against the budget.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import rockmate
from rockmate import measure_peak

Wrap = Callable[[nn.Module], nn.Module]


@dataclasses.dataclass
class Case:
    """What is trained: a model, its inputs, and how a step goes where it is not ``loss(model(...)).backward()``.

    Attributes:
        model: the model, in the mode it is trained in.
        inputs: positional inputs (a tuple), keyword inputs (a dict), both (a pair of them), or a function from the number of
            the step to any of these. Each step gets copies of its own.
        loss: from the output to the scalar that is differentiated.
        step: the whole step instead: (model, args, kwargs) to what is compared.
        effects: what else the case sees happen, such as a count.
    """

    model: nn.Module
    inputs: Any
    loss: Callable[[Any], Tensor] | None = None
    step: Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any] | None = None
    effects: Callable[[], Any] = lambda: None
    steps: int = 3
    holds_budget: bool = True  # False: the step does things beside the model that take memory of their own
    drops_gradients: bool = False  # parameter gradients are made that do not become ``.grad``: they are allowed for


@functools.cache
def _weights(count: int, dtype: torch.dtype) -> Tensor:
    return torch.linspace(-1, 1, count, dtype=dtype) if count > 1 else torch.ones(count, dtype=dtype)


def weighted(output: Any) -> Tensor:
    """The sum of all tensors that require a gradient, each element with a weight of its own. Allocates nothing but scalars."""
    total = torch.zeros(())
    for leaf in tensors_in(output):
        if leaf.requires_grad:
            flat = torch.view_as_real(leaf).reshape(-1) if leaf.is_complex() else leaf.reshape(-1)
            total = total + torch.dot(flat, _weights(flat.numel(), flat.dtype))
    return total


SCALARS_OF_THE_LOSS_BYTES = 24  # for each output: its product, the sum so far and its gradient, in at most eight bytes


def tensors_in(tree: Any) -> list[Tensor]:
    if isinstance(tree, Tensor):
        return [tree]
    return [tensor for _, child in _children(tree) for tensor in tensors_in(child)]


def _children(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return []


def observe(what: str, tree: Any, seen: dict[str, Any], order: dict[str, dict[Any, str]]) -> None:
    """Write down everything about ``tree`` under names that begin with ``what``; ``order`` finds repeated objects."""
    seen[f"{what}: type"] = type(tree)
    if isinstance(tree, Tensor):
        strides = [stride for size, stride in zip(tree.shape, tree.stride(), strict=True) if size != 1]  # others say nothing
        seen[f"{what}: dtype, strides, requires_grad"] = (
            tree.dtype,
            tree.shape,
            strides,
            tree.requires_grad,
            tree.is_leaf,
        )
        seen[f"{what}: values"] = tree.detach().clone()
        seen[f"{what}: is the same object as"] = order["objects"].setdefault(id(tree), what)
        if tree.untyped_storage().nbytes():
            seen[f"{what}: shares memory with"] = order["storages"].setdefault(tree.untyped_storage().data_ptr(), what)
        return
    children = _children(tree)
    seen[f"{what}: value"] = [key for key, _ in children] if children or isinstance(tree, (list, tuple, Mapping)) else tree
    for key, child in children:
        observe(f"{what}[{key!r}]", child, seen, order)


def _inputs_of(case: Case, step: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given = case.inputs(step) if callable(case.inputs) else case.inputs
    given = copy.deepcopy(given)
    if isinstance(given, dict):
        return (), given
    if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict):
        return given
    return given, {}


def plain_step(case: Case, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    output = model(*args, **kwargs)
    loss = (case.loss or weighted)(output)
    if loss.requires_grad:
        loss.backward()
    return output


def random_streams() -> tuple[Any, ...]:
    return torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()


@dataclasses.dataclass
class Run:
    steps: list[dict[str, Any]]
    peak_bytes: int  # of the last step that captured nothing; parameter gradients and the loss outside of the model left out
    model: Any


def train(make: Callable[[], Case], wrap: Wrap = lambda model: model) -> Run:
    """Some steps of SGD from a fixed seed. The random streams are seeded once, before the model is wrapped."""
    torch.manual_seed(0)
    case = make()
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    model = wrap(case.model)
    steps: list[dict[str, Any]] = []
    peak_bytes = 0
    for number in range(case.steps):
        streams = random_streams()
        args, kwargs = _inputs_of(case, number)
        torch.set_rng_state(streams[0])  # the inputs of a step may be random
        outputs: list[Any] = []

        def step(args: Any = args, kwargs: Any = kwargs, outputs: list[Any] = outputs) -> None:
            if case.step is not None:
                outputs.append(case.step(model, args, kwargs))
            else:
                outputs.append(plain_step(case, model, args, kwargs))

        plans = len(getattr(model, "plans", ()))
        peak = measure_peak(step, exclude_grads_of=case.model).activation_bytes
        if len(getattr(model, "plans", ())) == plans:  # Dynamo's own work is no part of a step
            peak_bytes = peak - (SCALARS_OF_THE_LOSS_BYTES * (1 + len(tensors_in(outputs))) if case.loss is None else 0)
        streams = random_streams()
        seen: dict[str, Any] = {}
        order: dict[str, dict[Any, str]] = {"objects": {}, "storages": {}}
        observe("inputs", (args, kwargs), seen, order)
        observe("outputs", outputs[0], seen, order)
        observe("input gradients", [x.grad for x in tensors_in((args, kwargs)) if x.is_leaf], seen, order)
        observe("gradients", {name: p.grad for name, p in case.model.named_parameters()}, seen, order)
        observe("buffers", {name: b.clone() for name, b in case.model.named_buffers()}, seen, order)
        observe("effects", copy.deepcopy(case.effects()), seen, order)
        observe("random streams", streams, seen, order)
        steps.append(seen)
        with torch.no_grad():
            for parameter in case.model.parameters():
                if parameter.grad is not None:
                    parameter -= 0.01 * parameter.grad
                parameter.grad = None
    return Run(steps, peak_bytes, model)


def assert_same(plain: Run, ours: Run, budget: str) -> None:
    for number, (expected, got) in enumerate(zip(plain.steps, ours.steps, strict=True)):
        assert list(got) == list(expected), f"budget {budget}, step {number}: other structure"
        for name, value in expected.items():
            where = f"budget {budget}, step {number}: {name}"
            if isinstance(value, Tensor):
                assert torch.allclose(value, got[name], rtol=0, atol=0, equal_nan=True), f"{where} differ"
            else:
                assert got[name] == value, f"{where}: {got[name]} instead of {value}"


def check_equal(make: Callable[[], Case], **options: Any) -> None:
    """Plain training against ours at 100 %, 50 % and the least budget."""
    plain = train(make)
    case = make()
    beside_bytes = sum(p.nbytes for p in case.model.parameters()) if case.drops_gradients else 0
    budget: Any = "100%"
    for name in ("100 %", "50 %", "least"):
        ours = train(make, lambda model, budget=budget: rockmate.Rockmate(model, budget=budget, **options))
        assert_same(plain, ours, name)
        plans = ours.model.plans
        if not plans:  # nothing is trained
            assert not any(leaf.requires_grad for leaf in ours.model.parameters())
            return
        if case.holds_budget:
            assert ours.peak_bytes <= max(plan.budget_bytes for plan in plans) + beside_bytes, (
                f"budget {name}: {ours.peak_bytes} bytes held, {[plan.budget_bytes for plan in plans]} allowed"
            )
        if name == "100 %":
            assert all(plan.recomputed == [] for plan in plans)
            least = max(plan.min_budget_bytes for plan in plans)
            budget = max(max(plan.store_all_peak_bytes for plan in plans) // 2, least)
        else:
            budget = least
