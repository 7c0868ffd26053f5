"""Kinds of models that re-materialization tools get wrong, each trained for three steps at the least budget and at 100 %.

The names are those of the public reports: R randomness, S state, F frozen and odd gradients, A the autograd surface, C calling
convention.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from compare import assert_same, train, wrapped
from torch import Tensor, nn

import rockmate

Build = Callable[[], nn.Module]


class Fn(nn.Module):
    """A module from a function of (module, x); ``parts`` become submodules, buffers or attributes."""

    def __init__(self, function: Callable[[Any, Tensor], Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def mlp(**more: Any) -> dict[str, Any]:
    return {"a": nn.Linear(16, 32), "b": nn.Linear(32, 16), "c": nn.Linear(16, 1), **more}


class DoublingBackward(torch.autograd.Function):
    """Its own backward pass, which doubles; reads a saved tensor twice and holds one on ctx."""

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


def ema(m: Any, x: Tensor) -> Tensor:
    h = torch.relu(m.a(x))
    with torch.no_grad():
        m.mean.lerp_(h.mean(0), 0.1)
        m.count.add_(1)
    return m.c(m.b(h - m.mean)).sum()


def straight_through(m: Any, x: Tensor) -> Tensor:
    h = m.b(torch.sigmoid(m.a(x)))
    return m.c(h + (torch.round(h) - h).detach()).sum()


def in_place(m: Any, x: Tensor) -> Tensor:
    h = torch.sigmoid(F.elu(m.a(x), inplace=True))
    g = h * 2
    g += torch.cos(h)
    g[:, :4] = g[:, 4:8] * 2
    h = torch.cos(g)
    y = m.b(h)
    y.mul_(0.5).add_(1.0)
    return m.c(y).sum()


def experts(m: Any, x: Tensor) -> Tensor:
    weights, chosen = torch.topk(torch.softmax(m.router(x), -1), 2)
    every = torch.stack([expert(x) for expert in m.experts], 1)
    picked = torch.gather(every, 1, chosen[..., None].expand(-1, -1, 16))
    return m.c((picked * weights[..., None]).sum(1)).sum()


def attention_with_dropout(m: Any, x: Tensor) -> Tensor:
    q, k, v = m.qkv(x).view(4, 2, 4, 24).split(8, -1)
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3)
    return m.c(m.out(y.reshape(8, 32))).sum()


PATTERNS: dict[str, Build] = {
    "R1 dropout": lambda: Fn(lambda m, x: m.c(m.b(F.dropout(torch.sin(m.a(x)), 0.3))).sum(), **mlp()),
    "R1 randn_like": lambda: Fn(lambda m, x: m.c(m.b(torch.sin(h := m.a(x)) * torch.randn_like(h))).sum(), **mlp()),
    "R1 bernoulli": lambda: Fn(
        lambda m, x: m.c(m.b(torch.sin(h := m.a(x)) * torch.bernoulli(torch.full_like(h, 0.5)))).sum(), **mlp()
    ),
    "R1 rrelu": lambda: Fn(lambda m, x: m.c(m.b(F.rrelu(m.a(x), training=True))).sum(), **mlp()),
    "R1 attention dropout": lambda: Fn(
        attention_with_dropout, qkv=nn.Linear(16, 96), out=nn.Linear(32, 16), c=nn.Linear(16, 1)
    ),
    "R3 two draws": lambda: Fn(
        lambda m, x: m.c(m.b(F.dropout(h := torch.sin(m.a(x))) + F.dropout(h) + torch.rand(32) * torch.rand(32))).sum(),
        **mlp(),
    ),
    "R4 unused draw": lambda: Fn(lambda m, x: (torch.rand(3), m.c(m.b(F.dropout(torch.sin(m.a(x))))).sum())[1], **mlp()),
    "S1 batch norm": lambda: nn.Sequential(
        nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(inplace=True), nn.Linear(32, 16), nn.BatchNorm1d(16)
    ),
    "S2 moving average": lambda: Fn(ema, **mlp(mean=torch.zeros(32), count=torch.zeros((), dtype=torch.long))),
    "F1 frozen with low rank": lambda: Fn(
        lambda m, x: m.c(torch.sin(m.frozen(x)) + m.up(m.down(x))).sum(),
        frozen=nn.Linear(16, 16).requires_grad_(False),
        up=nn.Linear(4, 16),
        down=nn.Linear(16, 4),
        c=nn.Linear(16, 1),
    ),
    "F2 frozen middle": lambda: Fn(
        lambda m, x: m.c(torch.sin(m.middle(torch.sin(m.b(torch.sin(m.a(x))))))).sum(),
        **mlp(middle=nn.Linear(16, 16).requires_grad_(False)),
    ),
    "F4 straight-through": lambda: Fn(straight_through, **mlp()),
    "F4 no_grad part": lambda: Fn(
        lambda m, x: m.c(m.b(torch.relu(m.a(x)))).sum() * torch.no_grad()(lambda: m.a(x).abs().mean())(), **mlp()
    ),
    "F5 tied weights": lambda: Fn(lambda m, x: (F.linear(torch.tanh(m.a(x)), m.a.weight.t()) ** 2).sum(), a=nn.Linear(16, 32)),
    "A3 six times": lambda: Fn(
        lambda m, x: m.c(m.d(m.d(m.d(m.d(m.d(m.d(x))))))).sum(),
        d=nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.2)),
        c=nn.Linear(16, 1),
    ),
    "A4 custom backward": lambda: Fn(lambda m, x: m.c(m.b(DoublingBackward.apply(m.a(x)))).sum(), **mlp()),
    "C3 in place": lambda: Fn(in_place, **mlp()),
    "C7 multi-head attention": lambda: Fn(
        lambda m, x: m.c(m.attention(x[None], x[None], x[None], need_weights=True)[0]).sum(),
        attention=nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True),
        c=nn.Linear(16, 1),
    ),
    "C7 transformer": lambda: Fn(
        lambda m, x: m.c(m.t(x[None], torch.sin(x[None]))).sum(),
        t=nn.Transformer(16, 2, 1, 1, 32, batch_first=True),
        c=nn.Linear(16, 1),
    ),
    "C7 dense concatenation": lambda: Fn(
        lambda m, x: m.c(torch.cat([x, h := torch.relu(m.a(x)), m.b(h)], 1)[:, :16]).sum(), **mlp()
    ),
    "C7 top-k experts": lambda: Fn(
        experts,
        router=nn.Linear(16, 4),
        experts=nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(4)),
        c=nn.Linear(16, 1),
    ),
    "C9 float64": lambda: Fn(lambda m, x: m.c(m.b(torch.sin(m.a(x.double())))).sum(), **mlp()).double(),
    "C9 complex": lambda: Fn(
        lambda m, x: m.c(m.b(torch.fft.irfft(torch.fft.rfft(m.a(x)) * torch.polar(m.r, m.r), n=32))).sum(),
        **mlp(r=nn.Parameter(torch.rand(17))),
    ),
    "C6 item": lambda: Fn(lambda m, x: m.c(m.b(torch.relu(m.a(x)))).sum() * m.a(x).sum().item(), **mlp()),
    "M3 single op": lambda: nn.Linear(16, 1),
    "M4 derived weights": lambda: Fn(
        lambda m, x: m.c(F.linear(torch.sin(m.a(x)), (m.b.weight.half().float() * 0.5).contiguous())).sum(), **mlp()
    ),
}


class Named(nn.Module):
    """Gives the model a keyword input, the form in which the tests call it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Any:
        return self.model(x)


def make(name: str) -> tuple[nn.Module, dict[str, Any]]:
    return Named(PATTERNS[name]()).train(), {"x": torch.randn(8, 16)}


def scalar(output: Any) -> Tensor:
    return output if output.dim() == 0 else output.square().sum()


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern(name: str) -> None:
    plain = train(lambda: make(name), loss_of=scalar)
    stored = train(lambda: make(name), wrapped("100%"), loss_of=scalar)
    assert_same(plain, stored)
    assert stored.model.plan.recomputed == []
    least = train(lambda: make(name), wrapped(stored.model.plan.min_budget_bytes), loss_of=scalar)
    assert_same(plain, least)


IN_PIECES: dict[str, Build] = {
    "R5 Python's random": lambda: Fn(lambda m, x: m.c(m.b(torch.sin(m.a(x)))).sum() * random.random(), **mlp()),
    "S1 batch norm, cumulative": lambda: nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32, momentum=None)),
    "C6 branch": lambda: Fn(lambda m, x: m.b(m.a(x)).sum() if x.sum() > 0 else m.a(x).sum(), **mlp()),
}


@pytest.mark.parametrize("name", IN_PIECES)
def test_in_pieces(name: str) -> None:
    """What Dynamo can't capture whole; test_pieces.py holds the budgets of such models."""
    runs = []
    for wrap in (lambda model: model, wrapped("100%")):
        random.seed(0)
        runs.append(train(lambda: (Named(IN_PIECES[name]()).train(), {"x": torch.randn(8, 16)}), wrap, loss_of=scalar))
    assert_same(*runs)


def test_lstm() -> None:
    """C7: captured whole."""

    def build() -> tuple[nn.Module, dict[str, Any]]:
        model = Fn(lambda m, x: m.c(m.rnn(x[None])[0]).sum(), rnn=nn.LSTM(16, 16), c=nn.Linear(16, 1))
        return Named(model).train(), {"x": torch.randn(8, 16)}

    ours = train(build, wrapped("100%"), loss_of=scalar)
    assert_same(train(build, loss_of=scalar), ours)
    assert isinstance(ours.model.plan, rockmate.Plan)


def least_budget(model: nn.Module, *inputs: Tensor) -> int:
    plan = rockmate.Rockmate(model, sample_inputs=inputs).plan
    assert plan is not None
    return plan.min_budget_bytes


def test_gradient_of_the_input_only() -> None:
    """A1: autograd.grad on the input, and backward(inputs=[w]), leave the others alone."""
    torch.manual_seed(0)
    model, inputs = make("R1 dropout")
    x = inputs["x"].requires_grad_()
    grads = []
    for m in (model, rockmate.Rockmate(model, budget="80%")):
        torch.manual_seed(1)
        grads.append(torch.autograd.grad(m(x=x), x)[0])
        assert all(p.grad is None for p in m.parameters()) and x.grad is None
        torch.manual_seed(1)
        m(x=x).backward(inputs=[m.model.a.weight])
        grads.append(m.model.a.weight.grad.clone())
        assert m.model.b.weight.grad is None
        m.model.a.weight.grad = None
    assert torch.equal(grads[0], grads[2]) and torch.equal(grads[1], grads[3])


def test_accumulation_hooks_and_modes() -> None:
    """A5, A6, F5: four micro-batches; parameter hooks fire once each; eval() and requires_grad_ between the passes."""
    results = []
    for wrap in (lambda m: m, wrapped("80%")):
        torch.manual_seed(0)
        model, inputs = make("R1 dropout")
        fired: list[str] = []
        model.model.a.weight.register_hook(lambda g, f=fired: f.append("hook"))
        model.model.a.weight.register_post_accumulate_grad_hook(lambda p, f=fired: f.append("post"))
        wrapper = wrap(model)
        for i in range(4):
            loss = wrapper(x=inputs["x"] + i)
            if i == 2:
                wrapper.eval()
            loss.backward()
            wrapper.train()
        results.append(([p.grad.clone() for p in model.parameters()], fired))
    assert results[0][1] == results[1][1]
    assert all(torch.equal(a, b) for a, b in zip(results[0][0], results[1][0], strict=True))


def test_expanded_gradient_and_output_read_again() -> None:
    """F6, F7: the gradient of y.sum() has stride 0; the output is intact after backward."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    x = torch.randn(8, 16)
    expected = model(x)
    expected.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    wrapper = rockmate.Rockmate(model, budget=least_budget(model, x))
    got = wrapper(x)
    got.sum().backward()
    assert torch.equal(got, expected)
    assert all(torch.equal(a, p.grad) for a, p in zip(gradients, model.parameters(), strict=True))


def test_forwards_without_backward_do_not_grow() -> None:
    """M5: with the garbage collector off, a dropped step leaves nothing behind."""
    import gc

    model, inputs = make("R1 dropout")
    wrapper = rockmate.Rockmate(model, budget="80%")
    wrapper(**inputs).backward()
    gc.collect()
    gc.disable()
    try:
        with rockmate.Meter(known=[p.grad for p in model.parameters()]) as meter:
            for _ in range(20):
                wrapper(**inputs)
                wrapper(**inputs).backward()
        assert meter.current_bytes == 0
    finally:
        gc.enable()
