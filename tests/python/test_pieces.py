"""Models that Dynamo can't capture whole: their pieces keep one budget together, and compute what the plain model does."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo
import torch.nn.functional as F
from compare import Run, assert_same
from torch import Tensor, nn

import rockmate
from rockmate import measure_peak

WIDTH = 32
ROWS = 256


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


class BrokenBlock(Block):
    """The graph breaks inside of the residual branch."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.down(F.gelu(self.up(self.norm(x))))
        torch._dynamo.graph_break()
        return x + self.dropout(F.gelu(h))


class Model(nn.Module):
    """Blocks and a loss; ``body(self, x)`` calls the blocks."""

    def __init__(self, body: Callable[[Any, Tensor], Tensor], blocks: int = 4, block: type[nn.Module] = Block) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(blocks))
        self.head = nn.Linear(WIDTH, 1)
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self, x)).square().mean()


def with_breaks(m: Any, x: Tensor, count: int) -> Tensor:
    per_piece = len(m.blocks) // (count + 1)
    for i, block in enumerate(m.blocks):
        if i and i % per_piece == 0:
            torch._dynamo.graph_break()
        x = block(x)
    return x


def item_and_branches(m: Any, x: Tensor) -> Tensor:
    x = m.blocks[0](x)
    scale = x.abs().mean().item()
    x = m.blocks[1](x)
    x = m.blocks[2](x) * 2 if x.sum() > 0 else m.blocks[2](x) + torch.sin(x)
    return m.blocks[3](x) * (1 / scale)


@torch.compiler.disable
def opaque(x: Tensor) -> Tensor:
    return torch.exp(torch.sin(x) * 0.1) * x


def eager_parts(m: Any, x: Tensor) -> Tensor:
    h = opaque(m.blocks[0](x))
    return m.blocks[2](opaque(m.blocks[1](h)))


def same_block_again(m: Any, x: Tensor) -> Tensor:
    for _ in range(4):
        x = m.blocks[0](x)
        torch._dynamo.graph_break()
    return x


def untraceable_frame(m: Any, x: Tensor) -> Tensor:
    """A break in a ``try`` in a loop: the function runs as it is, the blocks in it are pieces."""
    for block in m.blocks:
        try:
            x = block(x)
            torch._dynamo.graph_break()
        finally:
            pass
    return x


def long_skips(m: Any, x: Tensor) -> Tensor:
    """Gradients wait while pieces run backward, and those of a and b have terms in several pieces."""
    a = m.blocks[0](x)
    torch._dynamo.graph_break()
    b = m.blocks[1](a)
    torch._dynamo.graph_break()
    c = m.blocks[2](b) * a
    torch._dynamo.graph_break()
    return m.blocks[3](m.blocks[3](c + b)) + a


def layer_drop(m: Any, x: Tensor) -> Tensor:
    for block in m.blocks:
        if random.random() < 0.7:
            x = block(x)
    return x


MODELS: dict[str, Callable[[], nn.Module]] = {
    "one break": lambda: Model(functools.partial(with_breaks, count=1)),
    "two breaks": lambda: Model(functools.partial(with_breaks, count=2), blocks=3),
    "five breaks": lambda: Model(functools.partial(with_breaks, count=5), blocks=6),
    "breaks in blocks": lambda: Model(functools.partial(with_breaks, count=0), blocks=2, block=BrokenBlock),
    "item and branches": lambda: Model(item_and_branches),
    "eager parts": lambda: Model(eager_parts, blocks=3),
    "same block again": lambda: Model(same_block_again, blocks=1),
    "untraceable frame": lambda: Model(untraceable_frame),
    "long skips": lambda: Model(long_skips),
    "layer drop": lambda: Model(layer_drop),
}
STEPS = 4  # the first ones save as little as they can


def rockmate_model(model: nn.Module, budget: Any, plans: list[Any]) -> nn.Module:
    return rockmate.Rockmate(model, budget=budget, on_plan=plans.append)


def compiled_model(model: nn.Module, budget: Any, plans: list[Any]) -> nn.Module:
    return torch.compile(model, backend="rockmate", options={"budget": budget, "on_plan": plans.append})


def plainly(model: nn.Module, budget: Any, plans: list[Any]) -> nn.Module:
    return model


Wrap = Callable[[nn.Module, Any, list[Any]], nn.Module]


def train(name: str, wrap: Wrap, budget: Any = None, steps: int = STEPS) -> tuple[Run, list[int], list[Any]]:
    """What every step left behind, the peaks of those for which no warning came, and the plans made."""
    torch.manual_seed(0)
    model, x = MODELS[name]().train(), torch.randn(ROWS, WIDTH)
    torch.manual_seed(1)
    random.seed(2)
    plans: list[Any] = []
    wrapper = wrap(model, budget, plans)
    run, peaks = Run(model=wrapper), []
    for _ in range(steps):
        losses: list[Tensor] = []

        def step(losses: list[Tensor] = losses) -> None:
            losses.append(wrapper(x))
            losses[0].backward()

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            peak = measure_peak(step, exclude_grads_of=model).activation_bytes
        if not any("not seen before" in str(warning.message) for warning in caught):
            peaks.append(peak)
        run.states.append(
            {
                "loss": losses[0].detach().clone(),
                **{f"grad {key}": None if p.grad is None else p.grad.clone() for key, p in model.named_parameters()},
                "random stream": torch.get_rng_state(),
                "Python's random stream": torch.tensor(hash(random.getstate())),
            }
        )
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter -= 0.01 * parameter.grad
                parameter.grad = None
    return run, peaks, plans


@functools.cache
def plain(name: str) -> tuple[Run, list[int]]:
    run, peaks, _ = train(name, plainly)
    return run, peaks


LONG = ("two breaks", "long skips", "untraceable frame")  # like others, or tried by others at one budget


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in MODELS])
def test_pieces_keep_the_budget_together(name: str) -> None:
    check_budgets(name, rockmate_model)


SHORT = ("item and branches", "eager parts")


@pytest.mark.parametrize("name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in MODELS])
def test_compiled_pieces_keep_the_budget_together(name: str) -> None:
    check_budgets(name, compiled_model)


@pytest.mark.parametrize("name", ["long skips", "untraceable frame"])
def test_at_half(name: str) -> None:
    run, peaks, plans = train(name, rockmate_model, "50%", steps=3)
    assert_same(Run(plain(name)[0].states[:3]), run)
    assert max(peaks) <= plans[-1].budget_bytes and plans[-1].recomputed


def check_budgets(name: str, wrap: Wrap) -> None:
    expected, _ = plain(name)
    run, peaks, plans = train(name, wrap, "100%")
    assert_same(expected, run)
    assert len(plans[-1].pieces) > 1 and plans[-1].recomputed == []
    assert max(peaks) <= plans[-1].store_all_peak_bytes
    least = plans[-1].min_budget_bytes
    for budget in ((plans[-1].store_all_peak_bytes + least) // 2, least):
        torch._dynamo.reset()
        run, peaks, plans = train(name, wrap, budget)
        assert_same(expected, run)
        assert max(peaks) <= budget, (peaks, budget)
        assert peaks[-1] <= plans[-1].peak_bytes <= budget
    assert plans[-1].recomputed


def test_shares_are_of_the_peak_of_all_pieces() -> None:
    run, peaks, plans = train("two breaks", rockmate_model, "50%")
    assert_same(plain("two breaks")[0], run)
    plan = run.model.plan
    assert plan is plans[-1] and plan.budget_bytes == plan.store_all_peak_bytes // 2
    assert max(peaks) <= plan.budget_bytes and plan.recomputed and plan.overhead > 0
    assert plain("two breaks")[1][-1] <= plan.store_all_peak_bytes


def test_too_small_is_refused_before_the_backward_pass() -> None:
    _, _, plans = train("two breaks", rockmate_model, "100%", steps=1)
    least = plans[-1].min_budget_bytes
    model = MODELS["two breaks"]()
    wrapper = rockmate.Rockmate(model, budget=least - 1)
    for _ in range(2):  # and again
        with pytest.raises(rockmate.BudgetError, match="runs in pieces, and the least activation budget") as caught:
            wrapper(torch.randn(ROWS, WIDTH))
        assert caught.value.min_budget_bytes == least and str(least) in str(caught.value)
    assert all(parameter.grad is None for parameter in model.parameters())
    compiled = torch.compile(model, backend="rockmate", options={"budget": least - 1})
    loss = compiled(torch.randn(ROWS, WIDTH))
    with pytest.raises(rockmate.BudgetError, match="runs in pieces"):
        loss.backward()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_far_too_small_is_refused_within_the_forward_pass() -> None:
    with pytest.raises(rockmate.BudgetError, match="in the forward pass alone"):
        rockmate.Rockmate(MODELS["two breaks"](), budget=1000)(torch.randn(ROWS, WIDTH))


def test_a_branch_taken_late_is_told_and_then_kept() -> None:
    def body(m: Any, x: Tensor) -> Tensor:
        x = m.blocks[0](x)
        if m.wide:
            torch._dynamo.graph_break()
            return m.blocks[3](m.blocks[2](m.blocks[1](x)).repeat(4, 1))
        torch._dynamo.graph_break()
        return m.blocks[1](x)

    torch.manual_seed(0)
    model, x = Model(body), torch.randn(ROWS, WIDTH)
    model.wide = False
    plans: list[Any] = []
    wrapper = rockmate.Rockmate(model, budget=ROWS * WIDTH * 4 * 64, on_plan=plans.append)

    def peak() -> int:
        found = measure_peak(lambda: wrapper(x).backward(), exclude_grads_of=model).activation_bytes
        model.zero_grad()
        return found

    peaks = [peak() for _ in range(3)]
    model.wide = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        peaks.append(peak())
    over = peaks[-1] > plans[-1].budget_bytes
    assert over <= any("not seen before" in str(warning.message) for warning in caught)
    later = [peak() for _ in range(3)]
    assert max(peaks[:3] + later) <= plans[-1].budget_bytes
    model.wide = False
    assert peak() <= plans[-1].budget_bytes


def test_gradients_that_were_not_expected() -> None:
    """The first piece hands on a scalar that is differentiated; it is taken for one to look at until its gradient comes."""

    def body(m: Any, x: Tensor) -> Tensor:
        x = m.blocks[0](x)
        norm = x.square().mean()
        torch._dynamo.graph_break()
        return m.blocks[1](x) * norm

    torch.manual_seed(0)
    model, x = Model(body, blocks=2), torch.randn(ROWS, WIDTH)
    gradients, peaks, plans = [], [], []
    for wrapper in (model, rockmate.Rockmate(model, budget="100%", on_plan=plans.append)):
        for step in range(4):
            torch.manual_seed(step)
            peaks.append(measure_peak(lambda w=wrapper: w(x).backward(), exclude_grads_of=model).activation_bytes)
            gradients.append([p.grad.clone() for p in model.parameters()])
            model.zero_grad()
    for a, b in zip(gradients[:4], gradients[4:], strict=True):
        assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))
    assert max(peaks[4:]) <= plans[-1].store_all_peak_bytes


def test_forward_without_backward_and_two_forwards() -> None:
    torch.manual_seed(0)
    model, x = MODELS["one break"](), torch.randn(ROWS, WIDTH)
    wrapper = rockmate.Rockmate(model, budget="100%")
    results = []
    for m in (model, wrapper):
        torch.manual_seed(1)
        for _ in range(3):
            m(x)
        (m(x) + 2 * m(x)).backward()
        results.append([p.grad.clone() for p in model.parameters()])
        model.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_errors_of_the_model_come_through() -> None:
    def body(m: Any, x: Tensor) -> Tensor:
        x = m.blocks[0](x)
        if float(x.sum()) != 0 and m.fails:
            raise KeyError("mine")
        return m.blocks[1](x)

    model, x = Model(body, blocks=2), torch.randn(ROWS, WIDTH)
    model.fails = True
    wrapper = rockmate.Rockmate(model, budget="100%")
    with pytest.raises(KeyError, match="mine"):
        wrapper(x)
    model.fails = False
    wrapper(x).backward()
    assert wrapper.plan is not None


@pytest.mark.parametrize("layer", ["LSTM", "bidirectional LSTM", "LSTM without bias", "GRU", "RNN"])
def test_recurrent_layers_are_captured_whole(layer: str) -> None:
    layers: dict[str, Callable[[], nn.Module]] = {
        "LSTM": lambda: nn.LSTM(8, 16),
        "bidirectional LSTM": lambda: nn.LSTM(8, 8, num_layers=2, bidirectional=True, dropout=0.3, batch_first=True),
        "LSTM without bias": lambda: nn.LSTM(8, 16, bias=False),
        "GRU": lambda: nn.GRU(8, 16, num_layers=2, dropout=0.2),
        "RNN": lambda: nn.RNN(8, 16, nonlinearity="relu"),
    }

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layers[layer]()
            self.head = nn.Linear(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            output, state = self.layer(x)
            state = state[0] if isinstance(state, tuple) else state
            return self.head(torch.sin(output)).sum() + state.square().sum()

    torch.manual_seed(0)
    model, x = Recurrent(), torch.randn(6, 4, 8, requires_grad=True)
    first = rockmate.Rockmate(model, sample_inputs=(x,)).plan
    assert isinstance(first, rockmate.Plan)
    results: list[Any] = []
    for wrapper in (model, rockmate.Rockmate(model), rockmate.Rockmate(model, budget=first.min_budget_bytes)):
        torch.manual_seed(1)
        for _ in range(2):
            wrapper(x).backward()
        results.append([p.grad.clone() for p in (*model.parameters(), x)])
        model.zero_grad()
        x.grad = None
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], result, strict=True))


def test_modules_that_are_not_captured_are_told() -> None:
    """``nn.BatchNorm1d(momentum=None)`` reads its number of batches, and goes on as it is; what is around it is captured."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 2))
    x = torch.randn(8, 4)
    wrapped = rockmate.Rockmate(model)
    with pytest.warns(RuntimeWarning, match=r"could not be captured and run as they are: '1'\. "):
        wrapped(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapped(x).sum().backward()


@pytest.mark.parametrize(("uses", "told"), [(8, False), (9, True)])
def test_a_weight_that_is_read_often_in_one_piece_and_again_in_the_next(uses: int, told: bool) -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(uses):
                x = (x @ self.weight).sin()
            torch._dynamo.graph_break()
            return ((x @ self.weight).sin() @ self.weight).sin().sum()

    torch.manual_seed(0)
    model, x = Loop(), torch.randn(5, 6)
    model(x).backward()
    assert model.weight.grad is not None
    expected, model.weight.grad = model.weight.grad, None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        rockmate.Rockmate(model)(x).backward()
    assert any("summed in another order" in str(warning.message) for warning in seen) == told
    assert told or torch.equal(expected, model.weight.grad)


class Alias(nn.Module):
    """A tensor is read five times in one piece, behind a call that returns the tensor itself; then in two later pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        torch._dynamo.graph_break()
        same = h.to(torch.float32)
        normed = same * torch.rsqrt(same.square().mean(-1, keepdim=True) + 1e-6) * same.sigmoid() + same.exp() * 1e-3
        torch._dynamo.graph_break()
        h = h + normed.sin()
        torch._dynamo.graph_break()
        return (h * normed).square().mean()


class Residual(nn.Module):
    """The gradient of a sum that is read often is that of a term as it is; the term is read again in a later piece."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.shift = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        torch._dynamo.graph_break()
        shifted = h + self.shift
        read = shifted.sin() * 0.7 + shifted.cos() * 1.3 + shifted.tanh()
        torch._dynamo.graph_break()
        return (h.sigmoid() * 0.1 + read).square().mean()


@pytest.mark.parametrize("kind", [Alias, Residual])
def test_terms_that_dynamos_graph_does_not_show(kind: type[nn.Module]) -> None:
    """The terms of a gradient are counted when the piece is traced, and not only guessed from the calls in Dynamo's graph."""
    torch.manual_seed(0)
    model, x = kind(), torch.randn(64, WIDTH)
    gradients = []
    for trained in (model, rockmate.Rockmate(model)):
        for _ in range(2):
            trained(x).backward()
            gradients.append([parameter.grad for parameter in model.parameters()])
            model.zero_grad()
    for others in gradients[1:]:
        assert all(torch.equal(a, b) for a, b in zip(gradients[0], others, strict=True))
