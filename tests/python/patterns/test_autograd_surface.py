"""A: other uses of autograd than loss.backward()."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import Case, weighted
from parts import Fn, mlp, rows
from registry import equal, pattern
from torch import Tensor, nn

import rockmate


def network(width: int = 64) -> Fn:
    parts = {"a": nn.Linear(16, width), "b": nn.Linear(width, 16), "drop": nn.Dropout(0.2)}
    return Fn(lambda m, x: m.b(m.drop(torch.sin(m.a(x)))), **parts)


Step = Callable[[nn.Module, Any, Any], Any]


def only_input(model: nn.Module, args: Any, kwargs: Any) -> Any:
    return torch.autograd.grad(weighted(model(*args)), args[0])


def only_one_parameter(model: Any, args: Any, kwargs: Any) -> Any:
    return torch.autograd.grad(weighted(model(*args)), [model.a.weight])


def backward_into_inputs(model: Any, args: Any, kwargs: Any) -> None:
    weighted(model(*args)).backward(inputs=[model.a.weight])


def retained(model: nn.Module, args: Any, kwargs: Any) -> None:
    loss = weighted(model(*args))
    loss.backward(retain_graph=True)
    loss.backward()


def vector_product(model: nn.Module, args: Any, kwargs: Any) -> None:
    output = model(*args)
    output.backward(torch.linspace(0, 1, output.numel()).view_as(output))


USES: dict[str, Step] = {
    "autograd.grad on the input only": only_input,
    "autograd.grad on one parameter": only_one_parameter,
    "backward(inputs=[w])": backward_into_inputs,
    "backward with a gradient of the output": vector_product,
}


@equal("A1", "{use}")
@pytest.mark.parametrize("use", USES)
def test_partial_gradients(use: str) -> Case:
    return Case(network(), rows(requires_grad=True), step=USES[use], drops_gradients=True)


@pattern(
    "A2",
    "gradient penalty: autograd.grad(..., create_graph=True), then backward through the gradient",
    "refused in the backward pass, when the gradient is to be differentiated: the captured step has one backward pass, and a "
    "plan of second derivatives would be another one's. Nothing is accumulated before",
)
def test_double_backward() -> None:
    model = rockmate.Rockmate(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)))
    (x,) = rows(requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        (gradient.norm() - 1).square().backward()
    assert all(parameter.grad is None for parameter in model.parameters())


@equal("A1", "backward twice through a retained graph")
def test_retained_graph() -> Case:
    return Case(network(), rows(requires_grad=True), step=retained, holds_budget=False)


def two_forwards(model: nn.Module, args: Any, kwargs: Any) -> Any:
    first, second = model(args[0]), model(args[0] * 2)
    weighted([first, second]).backward()
    return first, second


def two_forwards_backward_in_order(model: nn.Module, args: Any, kwargs: Any) -> Any:
    first, second = model(args[0]), model(args[0] * 2)
    weighted(first).backward()
    weighted(second).backward()
    return first, second


def output_fed_back(model: nn.Module, args: Any, kwargs: Any) -> Any:
    output = model(model(model(args[0])))
    weighted(output).backward()
    return output


def forward_dropped(model: nn.Module, args: Any, kwargs: Any) -> Any:
    model(args[0])
    output = model(args[0])
    model(args[0] * 3)
    weighted(output).backward()
    return output


SEVERAL: dict[str, Step] = {
    "two forwards, then one backward": two_forwards,
    "two forwards, then a backward of each, the first one first": two_forwards_backward_in_order,
    "the output fed back twice": output_fed_back,
    "forwards whose backward never comes, before and between": forward_dropped,
}


@equal("A3", "{use}")
@pytest.mark.parametrize("use", SEVERAL)
def test_several_forwards(use: str) -> Case:
    return Case(network(), rows(requires_grad=True), step=SEVERAL[use], holds_budget=False)


@pattern("A3", "two wrapped models used in turn")
def test_two_models_in_turn() -> None:
    torch.manual_seed(0)
    models = [network(), network()]
    results = []
    for budget in (None, "100%", "85%"):
        mine = [copy.deepcopy(m) for m in models]
        wrapped = mine if budget is None else [rockmate.Rockmate(m, budget=budget) for m in mine]
        torch.manual_seed(1)
        for _ in range(3):
            x = torch.linspace(-1, 1, 24 * 16).view(24, 16)
            first, second = wrapped[0](x), wrapped[1](x)
            third = wrapped[0](second)
            weighted(first).backward()
            weighted(third).backward()
        results.append([p.grad for m in mine for p in m.parameters()])
    for got in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], got, strict=True))


@equal("A3", "the same block used six times in one forward")
def test_six_times() -> Case:
    block = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.2))
    return Case(Fn(lambda m, x: m.d(m.d(m.d(m.d(m.d(m.d(x)))))), d=block), rows(requires_grad=True))


class DoublingBackward(torch.autograd.Function):
    """Its own backward pass, which doubles; reads saved tensors twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.tanh(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        again, _ = ctx.saved_tensors
        return 2 * grad * (1 - y * y) + 0 * (x - again)


class HoldsOnCtx(torch.autograd.Function):
    """Keeps a tensor and numbers as attributes of ctx; two inputs, of which one gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float, mask: Tensor) -> Tensor:
        ctx.scale = scale
        ctx.save_for_backward(torch.exp(-x.abs()) * mask)
        return torch.sin(x) * scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return grad * kept * ctx.scale, None, None


class TwoOutputs(torch.autograd.Function):
    """Two outputs, one of them marked as not differentiable, and a gradient that reverses its sign."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        chosen = x.argmax(1)
        ctx.mark_non_differentiable(chosen)
        ctx.save_for_backward(chosen)
        return x * 3, chosen

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Tensor:
        (chosen,) = ctx.saved_tensors
        return -grad * (1 + chosen[:, None])


def reversed_gradient(m: Any, x: Tensor) -> Any:
    h, chosen = TwoOutputs.apply(torch.sin(m.a(x)))
    return m.b(h), chosen


FUNCTIONS: dict[str, Callable[[Any, Tensor], Any]] = {
    "its own backward pass, saved tensors read twice": lambda m, x: m.b(torch.sin(DoublingBackward.apply(m.a(x)))),
    "tensor and number on ctx": lambda m, x: m.b(torch.cos(HoldsOnCtx.apply(m.a(x), 0.7, (x[:, :1] > 0).float()))),
    "two outputs, one not differentiable": reversed_gradient,
}


@equal("A4", "custom autograd.Function: {function}")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_custom_function(function: str) -> Case:
    return Case(Fn(FUNCTIONS[function], **mlp()), rows(requires_grad=True))


def four_micro_batches(model: nn.Module, args: Any, kwargs: Any) -> None:
    for part in args[0].chunk(4):
        weighted(model(part)).backward()


@equal("A5", "gradient accumulation over four micro-batches")
def test_accumulation() -> Case:
    return Case(network(), rows(), step=four_micro_batches, holds_budget=False)


@pattern("A5", "zero_grad(set_to_none=False) between the steps: the peak stays within the budget")
def test_zeroed_gradients() -> None:
    results = []
    for budget in (None, "100%", "85%"):
        torch.manual_seed(0)
        model = network()
        wrapped = model if budget is None else rockmate.Rockmate(model, budget=budget)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = torch.linspace(-1, 1, 24 * 16).view(24, 16)
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            peak = rockmate.measure_peak(lambda: weighted(wrapped(x)).backward(), exclude_grads_of=model)  # noqa: B023
            optimizer.step()
        results.append([p.detach() for p in model.parameters()])
        if budget is not None:
            gradients = sum(p.grad.nbytes for p in model.parameters())  # new ones, beside those that they are added to
            assert peak.activation_bytes <= wrapped.plan.budget_bytes + gradients
    for got in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], got, strict=True))


def eval_between(model: nn.Module, args: Any, kwargs: Any) -> Any:
    output = model(*args)
    model.eval()
    weighted(output).backward()
    model.train()
    return output


def frozen_between(model: Any, args: Any, kwargs: Any) -> Any:
    output = model(*args)
    model.a.weight.requires_grad_(False)
    weighted(output).backward()
    model.a.weight.requires_grad_(True)
    return output


def set_to_other_values_between(model: Any, args: Any, kwargs: Any) -> Any:
    output = model(*args)
    torch.manual_seed(100)
    weighted(output).backward()
    return output


BETWEEN: dict[str, Step] = {
    "eval()": eval_between,
    "requires_grad_(False)": frozen_between,
    "manual_seed": set_to_other_values_between,
}


@equal("A6", "{what} between forward and backward")
@pytest.mark.parametrize("what", BETWEEN)
def test_changes_between_the_passes(what: str) -> Case:
    return Case(network(), rows(requires_grad=True), step=BETWEEN[what])


@pattern(
    "A6", "a parameter overwritten between forward and backward", "refused, as by plain PyTorch: its version counter tells"
)
def test_parameter_overwritten_between_the_passes() -> None:
    for budget in (None, "100%", "85%"):
        model = network()
        wrapped = model if budget is None else rockmate.Rockmate(model, budget=budget)
        loss = weighted(wrapped(*rows()))
        with torch.no_grad():
            model.b.weight.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@equal("A6", "eval() and train() in turn, parts frozen and thawed between the steps")
def test_modes_in_turn() -> Case:
    state = {"step": 0}

    def step(model: Any, args: Any, kwargs: Any) -> Any:
        number = state["step"]
        state["step"] += 1
        model.train(number % 2 == 0)
        model.a.requires_grad_(number < 2)
        output = model(*args)
        weighted(output).backward()
        return output

    return Case(network(), rows(), step=step, steps=4, holds_budget=False)


@equal("A7", "evaluation mode, with an input that needs a gradient")
def test_evaluation() -> Case:
    return Case(network().eval(), rows(requires_grad=True))


@pattern("A7", "under no_grad and inference_mode: the plain model runs, nothing is planned")
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode: Any) -> None:
    model = network()
    wrapped = rockmate.Rockmate(model, budget="50%")
    (x,) = rows(requires_grad=True)
    results = []
    for m in (model, wrapped):
        torch.manual_seed(1)
        with mode():
            results.append((m(x), torch.get_rng_state()))
    (expected, stream), (got, our_stream) = results
    assert torch.equal(expected, got) and torch.equal(stream, our_stream) and not got.requires_grad
    assert got.is_inference() == expected.is_inference() and wrapped.plan is None


@pattern("A8", "two threads, each with its own wrapped model")
def test_two_threads() -> None:
    def train(model: nn.Module, seed: int, into: dict[int, list[Tensor]]) -> None:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(5):
            weighted(model(torch.randn(24, 16, generator=generator))).backward()
        into[seed] = [p.grad for p in model.parameters()]

    def make(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return network(64 + 16 * seed).eval()

    expected: dict[int, list[Tensor]] = {}
    got: dict[int, list[Tensor]] = {}
    for seed in (0, 1):
        train(make(seed), seed, expected)
    models = [rockmate.Rockmate(make(seed), budget="95%") for seed in (0, 1)]
    threads = [threading.Thread(target=train, args=(models[seed], seed, got)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        assert all(torch.equal(a, b) for a, b in zip(expected[seed], got[seed], strict=True))
