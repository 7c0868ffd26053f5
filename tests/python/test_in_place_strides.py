"""What is changed in place stays where it is, and rounds as it does there.

Each looks at many inputs, since only some of them round otherwise, and none where a kernel is not vectorized.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import rockmate


class Changed(nn.Module):
    def __init__(self, change: Callable[[Tensor, nn.Linear], Tensor]) -> None:
        super().__init__()
        self.linear = nn.Linear(9, 9)
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        return self.change(x, self.linear)


def _part_of_chunk(x: Tensor, linear: nn.Linear) -> Tensor:
    return torch.unsafe_chunk(linear(x), 2, 1)[0].add_(1).sigmoid_()


def _input_with_gaps(x: Tensor, linear: nn.Linear) -> Tensor:
    x.add_(1)
    return linear(x.sigmoid_())


def _input_copied_to(x: Tensor, linear: nn.Linear) -> Tensor:
    x.copy_(x.mT.mT.exp()).sigmoid_()
    return linear(x)


def _several_at_once(x: Tensor, linear: nn.Linear) -> Tensor:
    torch._foreach_mul_([x[:3], x[3:]], 0.5)
    return linear(x.tanh_())


def _view_of_input(x: Tensor, linear: nn.Linear) -> Tensor:
    x[1:, 2:].exp_().mul_(0.1)
    return linear(x.sigmoid())


def _transposed_sum(x: Tensor, linear: nn.Linear) -> Tensor:
    return torch.zeros(9, 9).t().addmm_(x.mT @ x, linear.weight).sum(1)


def _sum_with_gaps(x: Tensor, linear: nn.Linear) -> Tensor:
    return linear(x.addmm_(x.clone(), linear.weight.detach(), beta=0.5).sin())


def _batched_sum(x: Tensor, linear: nn.Linear) -> Tensor:
    return torch.ones(2, 9, 9).mT.baddbmm_((x.mT @ x).expand(2, 9, 9), linear.weight.expand(2, 9, 9)).sum((0, 1))


CHANGES = (
    _part_of_chunk,
    _input_with_gaps,
    _input_copied_to,
    _several_at_once,
    _view_of_input,
    _transposed_sum,
    _sum_with_gaps,
    _batched_sum,
)


def _wide(x: Tensor) -> Tensor:
    return x[:, 2:11]


def _later_rows(x: Tensor) -> Tensor:
    """Dense, but not at the beginning of a vector."""
    return x.flatten()[3:48].view(5, 9)


@pytest.mark.parametrize("part", [_wide, _later_rows])
@pytest.mark.parametrize("change", CHANGES)
def test_rounding_of_what_is_changed_in_place(
    change: Callable[[Tensor, nn.Linear], Tensor], part: Callable[[Tensor], Tensor]
) -> None:
    torch.manual_seed(0)
    plain = Changed(change)
    model = rockmate.Rockmate(copy.deepcopy(plain), "100%")
    for _ in range(100):
        one = torch.randn(5, 13)
        other = one.clone()
        expected, got = plain(part(one)), model(part(other))
        assert torch.equal(got, expected) and torch.equal(one, other)
        expected.sum().backward()
        got.sum().backward()
    for (name, parameter), mine in zip(plain.named_parameters(), model.parameters(), strict=True):
        assert mine.grad is parameter.grad is None or torch.equal(mine.grad, parameter.grad), name


def test_ops_that_are_to_change_strides_do() -> None:
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(9, 5)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x).t_().unsqueeze_(0).squeeze_(0).exp_()

    plain = Turned()
    model = rockmate.Rockmate(copy.deepcopy(plain), "100%")
    x = torch.randn(4, 9)
    expected, got = plain(x), model(x)
    assert torch.equal(got, expected) and got.stride() == expected.stride()


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize("change", ["masked_fill_(x > 0, 1.0)", "index_fill_(1, torch.tensor([1, 2]), 2.0)"])
def test_writing_into_an_expanded_tensor_is_refused(change: str) -> None:
    """PyTorch warns of it; captured, the writes would be added up."""
    namespace = {"torch": torch}
    exec(f"def into_expanded(x, linear): return linear(x + torch.zeros(1, 9).expand(5, 9).{change})", namespace)
    model = rockmate.Rockmate(Changed(namespace["into_expanded"]), "100%")
    with pytest.raises(rockmate.CaptureError, match=r"writes into an expanded tensor.*clone"):
        model(torch.randn(5, 9))
