"""F: frozen, partial and odd gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from harness import Case, plain_step
from parts import Fn, images, mlp, rows
from registry import equal
from torch import Tensor, nn


@equal("F1", "frozen embedding of integer ids, frozen linear with a trainable low-rank pair, {dtype}")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_rank_on_frozen(dtype: torch.dtype) -> Case:
    def forward(m: Any, ids: Tensor) -> Tensor:
        h = m.embedding(ids)
        for frozen, down, up in zip(m.frozen, m.down, m.up, strict=True):
            h = torch.sin(frozen(h) + up(F.dropout(down(h), 0.1)))
        return h

    parts = {
        "embedding": nn.Embedding(20, 16).requires_grad_(False),
        "frozen": nn.ModuleList(nn.Linear(16, 16) for _ in range(3)).requires_grad_(False),
        "down": nn.ModuleList(nn.Linear(16, 2, bias=False) for _ in range(3)),
        "up": nn.ModuleList(nn.Linear(2, 16, bias=False) for _ in range(3)),
    }
    return Case(Fn(forward, **parts).to(dtype), (torch.randint(0, 20, (4, 6)),))


@equal("F1", "sparse ids with padding: embedding with padding_idx, EmbeddingBag")
def test_embeddings() -> Case:
    parts = {"e": nn.Embedding(20, 16, padding_idx=0), "bag": nn.EmbeddingBag(20, 16, mode="mean"), "b": nn.Linear(16, 16)}
    return Case(Fn(lambda m, ids: m.b(torch.sin(m.e(ids).sum(1) * m.bag(ids))), **parts), (torch.randint(0, 20, (4, 6)),))


@equal("F2", "no trainable parameter at all, input {what}")
@pytest.mark.parametrize("what", ["needs no gradient", "needs a gradient"])
def test_nothing_trainable(what: str) -> Case:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(), nn.Linear(32, 16)).requires_grad_(False)
    return Case(model, rows(requires_grad=what == "needs a gradient"))


@equal("F2", "a frozen block in the middle; two inputs that need a gradient and one that does not")
def test_frozen_middle() -> Case:
    def forward(m: Any, x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.sin(m.middle(torch.sin(m.b(torch.sin(m.a(x))))))
        return h * y, torch.cos(m.middle(z))

    middle = nn.Linear(16, 16).requires_grad_(False)
    inputs = (*rows(requires_grad=True), *rows(requires_grad=True), *rows())
    return Case(Fn(forward, **mlp(middle=middle)), inputs)


@equal("F2", "a parameter that is not used, and one that only a detached result depends on")
def test_unused_parameters() -> Case:
    parts = mlp(unused=nn.Linear(4, 4), detached=nn.Linear(16, 16))
    return Case(Fn(lambda m, x: (m.b(torch.sin(m.a(x))), m.detached(x).detach()), **parts), rows())


@equal("F3", "block that returns hidden states, an integer mask, a bool and a buffer without gradient")
def test_mixed_outputs_of_a_block() -> Case:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(16, 16)
            self.register_buffer("scale", torch.full((16,), 0.5))

        def forward(self, h: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, bool]:
            h = torch.sin(self.linear(h)) * self.scale
            return h.masked_fill(mask > 2, 0.0), (mask + 1) % 4, h > 0, self.scale, True

    def forward(m: Any, x: Tensor, mask: Tensor) -> Any:
        for block in m.blocks:
            x, mask, positive, scale, flag = block(x, mask)
        return x, mask, positive, scale, flag

    return Case(Fn(forward, blocks=nn.ModuleList(Block() for _ in range(3))), (*rows(), torch.randint(0, 4, (24, 16))))


def straight_through(m: Any, x: Tensor) -> Tensor:
    h = m.b(torch.sigmoid(m.a(x)))
    return torch.cos(h + (torch.round(h) - h).detach())


def under_no_grad(m: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        scale = m.a(x).abs().mean() + F.dropout(m.a(x)).mean()
    return m.b(torch.sin(m.a(x))) * scale


def gradients_enabled_within(m: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        h = torch.sin(m.a(x))
        with torch.enable_grad():
            g = torch.cos(m.b(torch.tanh(m.a(x)) + h))
    return g


def stop_gradient_of_one_branch(m: Any, x: Tensor) -> Tensor:
    h = torch.sin(m.a(x))
    return m.b(h) * m.b(h.detach() * 2) + m.b(h).detach()


PARTS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "straight-through rounding": straight_through,
    "statistics under no_grad": under_no_grad,
    "enable_grad within no_grad": gradients_enabled_within,
    "one branch detached": stop_gradient_of_one_branch,
}


@equal("F4", "{part}")
@pytest.mark.parametrize("part", PARTS)
def test_parts_without_gradient(part: str) -> Case:
    return Case(Fn(PARTS[part], **mlp()), rows(requires_grad=True))


@equal("F5", "tied embedding and output layer; hooks on the tied weight fire once")
def test_tied_weights_and_hooks() -> Case:
    embedding = nn.Embedding(20, 16)
    output = nn.Linear(16, 20, bias=False)
    output.weight = embedding.weight
    model = Fn(
        lambda m, ids: m.output(torch.sin(m.a(m.embedding(ids)))), embedding=embedding, output=output, a=nn.Linear(16, 16)
    )
    fired: list[str] = []

    def scale(grad: Tensor) -> Tensor:
        fired.append("gradient hook")
        return grad * 2

    embedding.weight.register_hook(scale)
    embedding.weight.register_post_accumulate_grad_hook(lambda p: fired.append("post-accumulate hook"))
    model.a.bias.register_post_accumulate_grad_hook(lambda p: fired.append("bias"))
    return Case(model, (torch.randint(0, 20, (4, 6)),), effects=lambda: sorted(fired))


@equal("F5", "an optimizer in the backward pass: a post-accumulate hook that updates and drops the gradient")
def test_optimizer_in_backward() -> Case:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    @torch.no_grad()
    def update(parameter: Tensor) -> None:
        parameter -= 0.1 * parameter.grad
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    values = list(model.parameters())
    return Case(model, rows(), effects=lambda: [p.detach().clone() for p in values], holds_budget=False)


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda y: y.sum(),
    "mean": lambda y: y.mean(),
    "sum of a transposed view": lambda y: (y.transpose(0, 1) * torch.linspace(0, 1, y.shape[0])).sum(),
    "sum of a slice": lambda y: y[1:].sum() * 0.3,
}


@equal("F6", "loss outside of the model: {loss}, whose gradient is expanded or strided otherwise")
@pytest.mark.parametrize("loss", LOSSES)
def test_expanded_gradient(loss: str) -> Case:
    return Case(nn.Sequential(nn.Linear(16, 33), nn.GELU(), nn.Linear(33, 17)), rows(), loss=LOSSES[loss], holds_budget=False)


@equal("F6", "the same, of images: convolution and transposed convolution")
def test_expanded_gradient_of_images() -> Case:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.SiLU(), nn.ConvTranspose2d(8, 3, 3))
    return Case(model, images(), loss=lambda y: y.mean(), holds_budget=False)


@equal("F7", "output and intermediate results read again after the backward pass")
def test_outputs_read_after_backward() -> Case:
    def forward(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.sin(m.a(x))
        return m.b(h), h

    def step(model: nn.Module, args: Any, kwargs: Any) -> Any:
        output, hidden = plain_step(Case(model, ()), model, args, kwargs)
        return output, hidden, output * 2, hidden.sum()

    return Case(Fn(forward, **mlp()), rows(), step=step, holds_budget=False)
