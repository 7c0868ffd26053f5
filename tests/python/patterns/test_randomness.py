"""R: whatever draws random numbers draws the same ones, once, and replays them where it is recomputed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from harness import Case, train
from parts import Fn, images, mlp, rows
from registry import equal, pattern, variants
from torch import Tensor, nn

import rockmate

RANDOM_OPS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda h: F.dropout(h, 0.3),
    "dropout, in place": lambda h: F.dropout(h * 1, 0.3, inplace=True),
    "native_dropout": lambda h: torch.native_dropout(h, 0.3, True)[0],
    "alpha_dropout": lambda h: F.alpha_dropout(h, 0.3, training=True),
    "feature_alpha_dropout": lambda h: F.feature_alpha_dropout(h[None, :, :, None], 0.3, training=True)[0, :, :, 0],
    "randn_like": lambda h: h * torch.randn_like(h),
    "rand_like, in another type": lambda h: h * torch.rand_like(h, dtype=torch.float64).float(),
    "randint_like": lambda h: h * torch.randint_like(h, 5),
    "rand": lambda h: h * torch.rand(h.shape),
    "randperm": lambda h: h * h[torch.randperm(h.shape[0])],
    "normal of tensors": lambda h: torch.sin(h) * torch.normal(h.detach(), 1.0),
    "bernoulli": lambda h: torch.sin(h) * torch.bernoulli(torch.sigmoid(h.detach())),
    "bernoulli with p": lambda h: torch.sin(h) * torch.bernoulli(h.detach(), 0.4),
    "bernoulli_": lambda h: torch.sin(h) * torch.empty_like(h).bernoulli_(0.4),
    "uniform_": lambda h: torch.sin(h) * torch.empty_like(h).uniform_(-1, 1),
    "normal_": lambda h: torch.sin(h) * torch.empty_like(h).normal_(),
    "exponential_": lambda h: torch.sin(h) * torch.empty_like(h).exponential_(),
    "cauchy_": lambda h: torch.sin(h) * torch.empty_like(h).cauchy_(),
    "log_normal_": lambda h: torch.sin(h) * torch.empty_like(h).log_normal_(),
    "geometric_": lambda h: torch.sin(h) * torch.empty_like(h).geometric_(0.4),
    "random_": lambda h: torch.sin(h) * torch.zeros_like(h).random_(0, 3),
    "multinomial": lambda h: h[torch.multinomial(torch.softmax(h.detach()[:, 0], 0), 24, replacement=True)] * torch.sin(h),
    "poisson": lambda h: torch.sin(h) * torch.poisson(h.detach().abs()),
    "binomial": lambda h: torch.sin(h) * torch.binomial(torch.full_like(h, 5.0).detach(), torch.sigmoid(h.detach())),
    "gamma, differentiable": lambda h: torch.sin(h) * torch._standard_gamma(h.abs() + 1),
    "rrelu": lambda h: F.rrelu(h, training=True),
    "gumbel softmax": lambda h: torch.sin(h) * F.gumbel_softmax(h, hard=True),
    "reparametrized normal": lambda h: torch.distributions.Normal(h, h.abs() + 1, validate_args=False).rsample(),
    "trunc_normal_": lambda h: torch.sin(h) * nn.init.trunc_normal_(torch.empty_like(h)),
}


@equal("R1", "linear, sin, random op, linear: {op}")
@pytest.mark.parametrize(
    "op", variants(RANDOM_OPS, "dropout", "randint_like", "bernoulli_", "rrelu", "multinomial", "gumbel softmax")
)
def test_random_op(op: str) -> Case:
    draw = RANDOM_OPS[op]
    return Case(Fn(lambda m, x: m.c(m.b(torch.cos(draw(torch.sin(m.a(x))) * 2))), **mlp()), rows())


IMAGE_OPS: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout1d": lambda h: F.dropout1d(h.flatten(2)).view_as(h),
    "dropout2d": lambda h: F.dropout2d(h, 0.3),
    "dropout3d": lambda h: F.dropout3d(h[:, :, None]).squeeze(2),
    "fractional max pooling": lambda h: F.fractional_max_pool2d(h, 2, output_ratio=(0.5, 0.5)),
}


@equal("R1", "convolution, random op, convolution: {op}")
@pytest.mark.parametrize("op", variants(IMAGE_OPS, "dropout2d"))
def test_random_op_on_images(op: str) -> Case:
    draw = IMAGE_OPS[op]
    parts = {"a": nn.Conv2d(3, 16, 3, padding=1), "b": nn.Conv2d(16, 4, 3, padding=1)}
    return Case(Fn(lambda m, x: torch.sin(m.b(torch.cos(draw(torch.sin(m.a(x)))))), **parts), images())


@equal("R1", "attention with dropout_p, {dtype}, causal {causal}")
@pytest.mark.parametrize(("dtype", "causal"), [(torch.float32, False), (torch.float64, True), (torch.bfloat16, True)])
def test_attention_dropout(dtype: torch.dtype, causal: bool) -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        q, k, v = m.qkv(x.to(dtype)).view(4, 6, 4, 24).transpose(1, 2).split(8, -1)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3, is_causal=causal)
        return m.out(torch.sin(y.transpose(1, 2).reshape(24, 32)))

    return Case(Fn(forward, qkv=nn.Linear(16, 96), out=nn.Linear(32, 16)).to(dtype), rows())


@equal("R2", "five dropouts in a row, no reseeding between the steps")
def test_new_masks_each_step() -> Case:
    layers = [layer for _ in range(5) for layer in (nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.2))]
    return Case(nn.Sequential(*layers), rows(), steps=5)


@pattern("R2", "the masks of two steps differ")
def test_masks_differ() -> None:
    model = rockmate.Rockmate(Fn(lambda m, x: F.dropout(torch.sin(m.a(x))), a=nn.Linear(16, 64)), budget="100%")
    x = torch.randn(24, 16)
    assert not torch.equal(model(x), model(x))


TWO_DRAWS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "dropout(h) + dropout(h)": lambda m, x: m.b(torch.sin(F.dropout(h := m.a(x)) + F.dropout(h))),
    "rand() * rand()": lambda m, x: m.b(torch.sin(m.a(x)) * torch.rand(64) * torch.rand(64)),
    "randn_like(h) - randn_like(h)": lambda m, x: m.b(torch.sin(h := m.a(x)) * (torch.randn_like(h) - torch.randn_like(h))),
    "the same dropout module twice": lambda m, x: m.b(torch.sin(m.drop(h := m.a(x))) * m.drop(h)),
}


@equal("R3", "two equal draws: {draws}")
@pytest.mark.parametrize("draws", TWO_DRAWS)
def test_two_draws(draws: str) -> Case:
    return Case(Fn(TWO_DRAWS[draws], **mlp(drop=nn.Dropout(0.5))), rows())


@equal("R4", "a draw that nobody reads, before and after a dropout; a dropout of probability 0 and 1")
def test_unused_draws() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        torch.rand(3)
        h = F.dropout(torch.sin(m.a(x)))
        torch.randn_like(h)
        return m.b(F.dropout(F.dropout(h, 0.0), 1.0) + h)

    return Case(Fn(forward, **mlp()), rows())


@equal("R4", "draws in evaluation mode, and draws whose result needs no gradient")
def test_draws_without_gradient() -> Case:
    def forward(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        noise = torch.rand_like(x)
        return m.b(torch.sin(m.drop(m.a(x + noise)))), torch.bernoulli(noise)

    return Case(Fn(forward, **mlp(drop=nn.Dropout())).eval(), rows())


@pattern("R4", "two random modules of which only one is recomputed")
def test_only_one_of_two_is_recomputed() -> None:
    """Over the budgets of the whole curve, at some of them one dropout is recomputed and the other kept."""

    def make() -> Case:
        def forward(m: Any, x: Tensor) -> Tensor:
            return m.b(F.rrelu(torch.sin(m.a(x)), training=True)) * torch.rand_like(x)

        return Case(nn.Sequential(Fn(forward, **mlp()), Fn(forward, **mlp(256))), rows())

    plain = train(make)
    first = train(make, lambda model: rockmate.Rockmate(model, budget="100%"))
    sets = set()
    for point in first.model.plan.curve[::2]:
        ours = train(make, lambda model, point=point: rockmate.Rockmate(model, budget=point.peak_bytes))
        drawn = tuple(op for op in ours.model.plan.recomputed if "rrelu" in op or "rand" in op)
        sets.add(drawn)
        for expected, got in zip(plain.steps, ours.steps, strict=True):
            assert all(torch.equal(value, got[name]) for name, value in expected.items() if isinstance(value, Tensor))
    assert any(len(drawn) == 1 for drawn in sets), sets


HOST_RANDOM: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "a scale from Python's random": lambda m, x: m.b(torch.sin(m.a(x))) * random.random(),
    "a scale from random.uniform": lambda m, x: m.b(torch.sin(m.a(x))) * random.uniform(0.5, 2.0),
    "layers dropped by Python's random": lambda m, x: m.b(torch.sin(m.a(x))) if random.random() < 0.5 else m.b(m.a(x)),
    "a scale from NumPy": lambda m, x: m.b(torch.sin(m.a(x))) * float(np.random.rand()),
    "an array from NumPy": lambda m, x: m.b(torch.sin(m.a(x))) * torch.from_numpy(np.random.rand(16).astype(np.float32)),
    "layers dropped by NumPy": lambda m, x: m.b(torch.sin(m.a(x))) if np.random.uniform(0, 1) < 0.5 else m.b(m.a(x)),
    "layers dropped by torch.rand": lambda m, x: m.b(torch.sin(m.a(x))) if torch.rand([]) < 0.5 else m.b(m.a(x)),
    "a generator of its own": lambda m, x: m.b(torch.sin(m.a(x))) * torch.rand(16, generator=torch.Generator().manual_seed(3)),
    "a seed set in forward": lambda m, x: (torch.manual_seed(3), m.b(F.dropout(torch.sin(m.a(x)))))[1],
}


@equal("R5", "{what}")
@pytest.mark.parametrize(
    "what", variants(HOST_RANDOM, "layers dropped by Python's random", "an array from NumPy", "a generator of its own")
)
def test_host_random(what: str) -> Case:
    return Case(Fn(HOST_RANDOM[what], **mlp()), rows(), steps=5)
