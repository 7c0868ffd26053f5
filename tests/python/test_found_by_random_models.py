"""What the random models found wrong once, each reduced to the least model that showed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import random_models
import torch
from torch import nn
from torch.nn import functional as F

import rockmate

ANYTHING = "torch.linspace(-1, 1, {n}).view({shape})"

FOUND: dict[str, dict[str, Any]] = {
    # The pass that turns Python numbers into tensors traced the model again, and what it writes into the buffer was lost.
    "float64 scalar that is written": {
        "init": ["self.register_buffer('s', torch.full((), 0.5))", "self.a = nn.Linear(4, 4)"],
        "body": ["v1 = self.a(v0) * self.s.tanh()", "with torch.no_grad():\n    self.s.add_(1)", "return v1.sin().sum()"],
        "inputs": ["v0 = torch.randn(2, 4, dtype=DTYPE)"],
        "dtype": "float64",
    },
    # bernoulli_ was traced as bernoulli, which draws in another order where the strides are not those of a contiguous tensor.
    "bernoulli_ of a transposed tensor": {
        "init": [],
        "body": ["v1 = v0 * torch.zeros_like(v0).bernoulli_(0.4)", "return v1.sin().sum()"],
        "inputs": ["v0 = torch.randn(3, 4).transpose(0, 1).requires_grad_()"],
    },
    "bernoulli of a transposed tensor": {
        "init": [],
        "body": ["v1 = v0 * torch.bernoulli(v0.detach(), 0.4) + v0 * v0.detach().bernoulli(p=0.3)", "return v1.sin().sum()"],
        "inputs": ["v0 = torch.randn(3, 4).transpose(0, 1).requires_grad_()"],
    },
    "dropout of channels-last images": {
        "init": ["self.a = nn.Conv2d(4, 4, 3)", "self.b = nn.AlphaDropout(0.4)"],
        "body": ["v1 = F.dropout(self.b(self.a(v0).sin()), 0.3)", "return v1.sin().sum()"],
        "inputs": ["v0 = torch.randn(2, 4, 5, 6).contiguous(memory_format=torch.channels_last)"],
    },
    # The assertion in one_hot was run on made-up inputs to tell what it costs, and failed.
    "assertion": {
        "init": ["self.a = nn.Linear(4, 4)"],
        "body": ["v1 = F.one_hot(self.a(v0).argmax(-1), 4).to(DTYPE)", "return (v1 * self.a(v0)).sum()"],
        "inputs": ["v0 = torch.randn(2, 4)"],
    },
    # The tangents of outputs that look at one storage were taken for one value.
    "outputs that share a storage with an input": {
        "init": ["self.a = nn.Linear(4, 4)"],
        "body": ["v1, v2 = v0.chunk(2, 1)", "return v1, v2, self.a(v0.sin().detach())"],
        "inputs": ["v0 = torch.randn(2, 4).requires_grad_()"],
        "given": [0, 1, 2],
        "gradients": [ANYTHING.format(n=n, shape=shape) + "," for n, shape in ((4, (2, 2)), (4, (2, 2)), (8, (2, 4)))],
    },
    # Gradients were copied to the traced strides, and the kernels then summed in another order.
    "gradient with other strides than the output": {
        "init": ["self.a = nn.BatchNorm2d(2)"],
        "body": ["return v0 - self.a(v0)"],
        "inputs": ["v0 = torch.randn(2, 8, 8, 3).transpose(0, 1)"],
        "gradients": [ANYTHING.format(n=384, shape=(8, 2, 8, 3)) + ","],
    },
    # Where one gradient of a sum never comes, the other was added to zeros, which changed its strides.
    "sum with a gradient that never comes": {
        "init": ["self.a = nn.Linear(4, 4)", "self.s = nn.Parameter(torch.tensor(1.3))"],
        "body": [
            "v1 = self.a(v0) * self.s.exp()",
            "loss = F.cross_entropy(v1, torch.arange(4)) + F.cross_entropy(v1.t(), torch.arange(4))",
            "return loss, v1, v1.t()",
        ],
        "inputs": ["v0 = torch.randn(4, 4)"],
    },
    # The formula of group normalization makes gradients contiguous, which leaves no trace where they were.
    "expanded gradient": {
        "init": ["self.a = nn.Conv2d(2, 4, 3)", "self.b = nn.GroupNorm(2, 4)"],
        "body": ["return self.b(self.a(v0))"],
        "inputs": ["v0 = torch.randn(3, 2, 9, 7)"],
        "gradients": ["torch.tensor(0.3).expand(3, 4, 7, 5),"],
    },
    # The autograd engine copies gradients that it can't keep, and the plan did not know.
    "gradient that is a view": {
        "init": [],
        "body": ["v1 = torch.fft.irfft(torch.fft.rfft(v0), n=3)", "return v1.sin().sum() * 0.1"],
        "inputs": ["v0 = torch.randn(1, 3).requires_grad_()"],
    },
    "gradients that are one tensor": {
        "init": ["self.a = nn.Parameter(torch.ones(30, 20))", "self.b = nn.Parameter(torch.ones(20, 30))"],
        "body": ["return (self.a + v0).sum() + (self.b.t() * v0).sin().sum() + self.b.sum()"],
        "inputs": ["v0 = torch.randn(30, 20).requires_grad_()"],
    },
    # Batch normalization is traced as arithmetic, which keeps its input's strides; the kernels give a memory format.
    "batch norm of permuted images": {
        "init": ["self.a = nn.BatchNorm2d(3)", "self.b = nn.BatchNorm2d(3).eval()"],
        "body": ["v1 = v0.movedim(3, 0)", "return (self.a(v1).sin().sum() + self.b(v1).sin().sum()) * 0.1"],
        "inputs": ["v0 = torch.randn(3, 2, 4, 2).requires_grad_()"],
    },
    # Plain PyTorch picks the formulas of these gradients by looking at the data, and a trace has none: it took other formulas.
    "prod without zeros": {
        "init": ["self.a = nn.Parameter(torch.randn(8, 7))"],
        "body": [
            "v1 = v0 * self.a",
            "return v1.prod(dim=1).sin().sum() + v1.prod() + torch.masked.prod(v1, 1, mask=v0 > 0).sum()",
        ],
        "inputs": ["v0 = torch.randn(8, 7).requires_grad_()"],
    },
    "prod with zeros": {
        "init": ["self.a = nn.Parameter(torch.randn(8, 7))"],
        "body": [
            "v1 = v0.tril() * self.a",
            "return v1.prod(dim=1).sin().sum() + v1.prod() + v1[0, 0] * v1.prod(0, keepdim=True, dtype=torch.float64).sum()",
        ],
        "inputs": ["v0 = torch.randn(8, 7).requires_grad_()"],
    },
    "cumprod": {
        "init": ["self.a = nn.Parameter(torch.randn(8, 7))"],
        "body": [
            "v1 = v0 * self.a",
            "v2 = v0.triu() * self.a",
            "return v1.cumprod(0).sin().sum() + v2.cumprod_(1).sin().sum() + v1.sin().cumprod_(0).sum()",
        ],
        "inputs": ["v0 = torch.randn(8, 7).requires_grad_()"],
    },
    "largest, least and middle": {
        "init": ["self.a = nn.Parameter(torch.randn(8, 7))"],
        "body": ["v1 = v0 * self.a", "return (v1 * v1.max() + v1.min() * v1 - v1.median() * v1.sin().nanmedian()).sum()"],
        "inputs": ["v0 = torch.randn(8, 7).relu().requires_grad_()"],
    },
    "masked_fill with a tensor that is trained": {
        "init": ["self.a = nn.Parameter(torch.tensor(0.7))"],
        "body": [
            "v1 = v0.sin().masked_fill(v0 > 0, self.a.sin())",
            "return (v1 * torch.linspace(-1, 1, 7)).sum() + v0.cos().masked_fill_(v0 < 0, self.a).sin().sum()",
        ],
        "inputs": ["v0 = torch.randn(8, 7).requires_grad_()"],
    },
    # The gradient of an output whose elements share memory was brought to the output's strides, and lost elements.
    "unfold that is returned": {
        "init": ["self.a = nn.Linear(10, 10)"],
        "body": ["v1 = self.a(v0)", "return v1.unfold(1, 3, 1), v1.sum(1, keepdim=True).expand(2, 4)"],
        "inputs": ["v0 = torch.randn(2, 10).requires_grad_()"],
        "given": [0, 1],
        "gradients": [ANYTHING.format(n=48, shape=(2, 8, 3)) + ",", ANYTHING.format(n=8, shape=(2, 4)) + ","],
    },
    # Outputs that look at one memory were made outside of the compiled step, and their gradients summed there, before the rest.
    "views that are returned, of a value with further uses": {
        "init": ["self.a = nn.Conv2d(1, 2, 3, padding=1)", "self.b = nn.PReLU(2)"],
        "body": [
            "v1 = self.a(v0)",
            "v2 = self.b(v1)",
            "v3 = v1.movedim(3, 0)",
            "v4 = F.pixel_unshuffle(v3[..., :2, :2], 2)",
            "return v2, v4, v3.transpose(0, 3), v1",
        ],
        "inputs": ["v0 = torch.randn(3, 1, 4, 2).requires_grad_()"],
        "given": [0, 1, 2, 3],
        "gradients": [
            ANYTHING.format(n=n, shape=shape) + ","
            for n, shape in ((48, (3, 2, 4, 2)), (24, (2, 12, 1, 1)), (48, (4, 3, 2, 2)), (48, (3, 2, 4, 2)))
        ],
    },
    # Planned again for the gradients that came, the step had them copied to other strides first.
    "gradients of some outputs, with other strides": {
        "init": ["self.a = nn.Linear(40, 30)"],
        "body": ["v1 = self.a(v0)", "return v1.t(), v1.sin()"],
        "inputs": ["v0 = torch.randn(50, 40).requires_grad_()"],
        "given": [0],
        "gradients": [ANYTHING.format(n=1500, shape=(30, 50)) + ","],
    },
    # Dynamo takes these apart when they are given a value, and the parts round otherwise.
    "addcmul and addcdiv": {
        "init": ["self.a = nn.Parameter(torch.rand(8, 7) + 1)", "self.b = nn.Parameter(torch.rand(8, 7) + 1)"],
        "body": [
            "v1 = v0.sin()",
            "v1.addcmul_(self.a, self.b, value=0.3)",
            "v2 = torch.addcdiv(v1, self.a, self.b, value=1.7) * 1",
            "v2.addcdiv_(self.a, self.b, value=-0.7)",
            "return (v2 + self.a / self.b * 0.3).sin().sum() + v1.addcmul(v2, self.a, value=0.1).sum()",
        ],
        "inputs": ["v0 = torch.randn(8, 7).requires_grad_()"],
    },
    # Measured alone, on made-up inputs, these failed: they take what other ops have made, or positive definite matrices.
    "factorizations": {
        "init": ["self.a = nn.Parameter(torch.randn(5, 5))"],
        "body": [
            "v1 = v0 * self.a + 4 * torch.eye(5)",
            "v2 = torch.linalg.cholesky(v1 @ v1.mT)",
            "v3, v4, v5 = torch.lu_unpack(*torch.linalg.lu_factor(v1))",
            "v6 = torch.linalg.slogdet(v1)[1] + torch.linalg.det(v1).sin()",
            "return v2.sin().sum() + v4.sin().sum() + (v3 @ v5).sum() + v6",
        ],
        "inputs": ["v0 = torch.randn(5, 5).requires_grad_()"],
    },
    # Where oneDNN has no kernel, the layer's own code was called through what took its place, without end.
    "LSTM of doubles": {
        "init": ["self.a = nn.LSTM(3, 2, num_layers=2, bidirectional=True)"],
        "body": ["v1, (v2, _) = self.a(v0)", "return v1.sin().sum() + v2.sum()"],
        "inputs": ["v0 = torch.randn(4, 2, 3, dtype=DTYPE)"],
        "dtype": "float64",
    },
    # A GRU changes its gates in place, columns of a matrix; traced, they were dense, and exponentials rounded otherwise.
    "GRU of few units": {
        "init": ["self.a = nn.GRU(5, 4)"],
        "body": ["v1, v2 = self.a(v0)", "return v1.sin().sum() + v2.exp().sum()"],
        "inputs": ["v0 = torch.randn(3, 7, 5, dtype=DTYPE)"],
    },
    "GRU cell of few units": {
        "init": ["self.a = nn.GRUCell(5, 4)"],
        "body": [
            "v1 = v0.new_zeros(7, 4)",
            "for t in range(3):\n    v1 = self.a(v0[t], v1)",
            "return v1.exp().sum()",
        ],
        "inputs": ["v0 = torch.randn(3, 7, 5, dtype=DTYPE)"],
    },
    # In pieces, the copy of a gradient to the strides of a transposed input was taken for the sum of two.
    "transposed input that several pieces read": {
        "init": ["self.a = nn.Linear(8, 6)", "self.b = nn.Linear(8, 3)"],
        "body": [
            "v1 = self.a(v0).sin() * v0.mean()",
            "torch._dynamo.graph_break()",
            "return (v1.sin().sum() + (v0 * 0.7).cos().sum() + self.b(v0.exp()).sum()) * 0.1",
        ],
        "inputs": ["v0 = torch.randn(4, 6, 8).transpose(0, 1).requires_grad_()"],
    },
    # Gradients were counted with the gaps between the elements of their outputs, in which they have none.
    "gradients of views with gaps": {
        "init": ["self.a = nn.Linear(9, 8)"],
        "body": ["v1, v2 = self.a(v0).sin().chunk(2, 1)", "return v1, v2, torch.polar(v0.abs() + 0.1, v0).real"],
        "inputs": ["v0 = torch.randn(50, 9).requires_grad_()"],
        "given": [0, 1, 2],
        "gradients": [ANYTHING.format(n=n, shape=shape) + "," for n, shape in ((200, (50, 4)), (200, (50, 4)), (450, (50, 9)))],
        "handed_over": True,
    },
    # A weight that is written into got room for a gradient of what is written, which never comes.
    "weight that is clamped": {
        "init": ["self.a = nn.Linear(30, 20)", "self.s = nn.Buffer(torch.linspace(-1, 1, 90).view(3, 30))"],
        "body": [
            "k = torch.cdist(v0, self.s).argmin(-1)",
            "v1 = v0 + (self.s[k] - v0).detach()",
            "self.s.index_add_(0, k, 0.1 * (v0 - self.s[k]).detach())",
            "with torch.no_grad():\n    self.a.weight.clamp_(-0.2, 0.2)",
            "return self.a(v1).sin().sum()",
        ],
        "inputs": ["v0 = torch.randn(50, 30).requires_grad_()"],
    },
    # New contents of a buffer that the model also returns were counted as if the caller held them.
    "buffer whose new contents are kept under its name": {
        "init": ["self.a = nn.utils.parametrizations.spectral_norm(nn.Linear(40, 30))", "self.s = nn.Buffer(torch.ones(70))"],
        "body": ["self.s += 0.1", "return (self.a(v0).sin().sum() * self.s).sum() * 0.01"],
        "inputs": ["v0 = torch.randn(2, 40).requires_grad_()"],
    },
    # The token that orders the inverse's check was taken for an input with a gradient, and the gradients for those of others.
    "inverse that nobody reads": {
        "init": ["self.a = nn.TransformerDecoderLayer(2, 2, 4, dropout=0.0, batch_first=True)"],
        "body": [
            "v1 = self.a(v0, v0)",
            "v2 = torch.linalg.inv(v0.mT @ v0 * 0.1 + 2 * torch.eye(2))",
            "return v1.sin().sum() * 0.1, v1, v0",
        ],
        "inputs": ["v0 = torch.randn(4, 3, 2).transpose(0, 1).requires_grad_()"],
    },
    # A piece took the weight that it writes into several times, for the terms of its gradient: its outputs got mixed up.
    "weight clamped in a piece": {
        "init": ["self.a = nn.Linear(3, 2)", "self.b = nn.BatchNorm2d(4)"],
        "body": [
            "with torch.no_grad():\n    self.a.weight.clamp_(-0.2, 0.2)",
            "v1 = self.a(v0)",
            "v2 = v1 * (0.5 + random.random())",
            "return self.b(v1).square().mean() + v1.sin().sum() + v2.square().mean()",
        ],
        "inputs": ["v0 = torch.randn(1, 4, 1, 3)"],
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    random_models.check_text(random_models.source(**FOUND[name]))


class OfPermuted(nn.Module):
    """An op on a permuted tensor, and a sum over its result, whose order depends on the strides."""

    def __init__(self, op: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.linear, self.op = nn.Linear(4, 5), op

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.linear(x).transpose(0, 1)
        result = self.op(h)
        return result, result.sin().sum() + h.square().sum()


PERMUTED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "logsigmoid": F.logsigmoid,
    "copysign": lambda h: torch.copysign(h, h.roll(1)),
    "division, rounded": lambda h: torch.div(h, h.roll(1).abs() + 0.3, rounding_mode="floor"),
    "normal": lambda h: torch.normal(h, h.detach().abs() + 0.1),
    "rrelu": lambda h: F.rrelu(h, training=True),
    "batch normalization": lambda h: torch.ops.aten._batch_norm_with_update(
        h, torch.ones(6), torch.zeros(6), torch.zeros(6), torch.ones(6), 0.1, 1e-5
    )[0],
    "backward of dropout": lambda h: torch.native_dropout(h, 0.3, True)[0],
    "householder product": lambda h: torch.linalg.householder_product(h, h[:, 0]),
    "binary cross entropy": lambda h: F.binary_cross_entropy(h.sigmoid(), torch.full(h.shape, 0.3), reduction="none"),
}


@pytest.mark.parametrize("name", PERMUTED)
def test_strides_of_results_of_permuted_tensors(name: str) -> None:
    """Seed 201, and what a search for its kind found: PyTorch's rules for the strides are not those of the kernels."""
    torch.manual_seed(0)
    model, x = OfPermuted(PERMUTED[name]), torch.randn(6, 7, 4)
    results = []
    for trained in (model, rockmate.Rockmate(model)):
        torch.manual_seed(1)
        model.zero_grad()
        output, loss = trained(x)
        loss.backward()
        results.append([output, loss, *(parameter.grad for parameter in model.parameters())])
    assert results[0][0].stride() == results[1][0].stride()
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_costs_measured_while_the_model_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients that a piece did not expect are planned for at once: ops never measured before moved the random stream."""
    monkeypatch.setenv("ROCKMATE_CACHE_DIR", str(tmp_path))
    random_models.check_seed(96, budgets=("100%",))
