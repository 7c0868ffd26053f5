"""Recurrent layers and cells, of sizes whose rows do not fill whole vectors: equal to plain PyTorch to the bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rockmate
from rockmate.recurrent import _gru, _gru_cell

DTYPES = [torch.float32, torch.float64, torch.bfloat16]


def gradients(outputs: tuple[Tensor, ...], wanted: list[Tensor]) -> list[Tensor]:
    """The outputs and the gradients of something that each of their elements is in."""
    loss = torch.stack([(y * y.cos()).sum() for y in outputs]).sum()
    return [*outputs, *torch.autograd.grad(loss, wanted)]


def all_equal(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gru_that_is_traced_is_the_one_that_runs(dtype: torch.dtype, bidirectional: bool, bias: bool) -> None:
    torch.manual_seed(0)
    for size in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65):
        for rows in (1, 2, 5, 8):
            x = torch.randn(rows, 3, 5, dtype=dtype, requires_grad=True)
            layer = nn.GRU(5, size, 2, bias, True, bidirectional=bidirectional, dtype=dtype)
            state = torch.randn(4 if bidirectional else 2, rows, size, dtype=dtype, requires_grad=True)
            wanted = [x, state, *layer.parameters()]
            traced = _gru(x, state, layer._flat_weights, bias, 2, 0.0, True, bidirectional, True)
            assert all_equal(gradients(layer(x, state), wanted), gradients(traced, wanted)), (size, rows)

            cell = nn.GRUCell(5, size, bias, dtype=dtype)
            wanted = [x, state, *cell.parameters()]
            weights: list[Any] = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
            plain, traced = (f(x[:, 0], state[0]) for f in (cell, lambda x, a, w=weights: _gru_cell(x, a, *w)))
            assert all_equal(gradients((plain,), wanted), gradients((traced,), wanted)), (size, rows)


class Layer(nn.Module):
    def __init__(self, kind: str, size: int, options: dict[str, Any]) -> None:
        super().__init__()
        self.layer = getattr(nn, kind)(5, size, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, state = self.layer(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


class Cell(nn.Module):
    def __init__(self, kind: str, size: int, options: dict[str, Any]) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(5, size, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        state: Any = x.new_zeros(x.shape[1], self.cell.hidden_size)
        if isinstance(self.cell, nn.LSTMCell):
            state = (state, state)
        for step in x:
            state = self.cell(step, state)
        return state if isinstance(state, tuple) else (state,)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"])
def test_recurrent_layers_of_few_units(kind: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    if kind.endswith("Cell"):
        model: nn.Module = Cell(kind, 3, {"dtype": dtype})
    else:
        model = Layer(kind, 3, {"dtype": dtype, "num_layers": 2, "bidirectional": True})
    x = torch.randn(2, 7, 5, dtype=dtype, requires_grad=True)
    plan = rockmate.Rockmate(model, sample_inputs=(x,)).plan
    assert isinstance(plan, rockmate.Plan)
    wrapped = rockmate.Rockmate(model, budget=plan.min_budget_bytes)
    for _ in range(20):
        x = torch.randn(2, 7, 5, dtype=dtype, requires_grad=True)
        wanted = [x, *model.parameters()]
        assert all_equal(gradients(model(x), wanted), gradients(wrapped(x), wanted))
