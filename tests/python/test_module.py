"""Rockmate(model) is a drop-in for model."""

from __future__ import annotations

import copy
import inspect
import pickle

import models
import pytest
import torch
from torch import nn

import rockmate


class Scaled(nn.Module):
    """A small model with everything that a wrapper may lose: buffer, method, attribute, keyword inputs, dict output."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("scale", torch.tensor(2.0))
        self.label = "mine"

    def double(self) -> str:
        return self.label * 2

    def forward(self, x: torch.Tensor, *, shift: torch.Tensor | None = None, flag: bool = True) -> dict[str, object]:
        hidden = torch.relu(self.linear(x)) * self.scale
        if shift is not None:
            hidden = hidden + shift
        return {"hidden": hidden if flag else -hidden, "n": 3, "nothing": None, "x": x}


def test_state_attributes_and_class_are_the_models() -> None:
    model = Scaled()
    keys = list(model.state_dict())
    wrapper = rockmate.Rockmate(model)
    assert isinstance(wrapper, Scaled) and isinstance(wrapper, rockmate.Rockmate)
    assert list(wrapper.state_dict()) == keys
    assert [name for name, _ in wrapper.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert wrapper.double() == "minemine"
    assert inspect.signature(wrapper.forward) == inspect.signature(model.forward)
    wrapper.eval()
    assert not model.training
    wrapper.label = "yours"
    assert model.label == "yours"
    wrapper.load_state_dict({**model.state_dict(), "scale": torch.tensor(5.0)})
    assert model.scale == 5


def test_outputs_keep_their_structure() -> None:
    model = Scaled()
    wrapper = rockmate.Rockmate(model)
    x, shift = torch.randn(4, 8), torch.randn(8)
    expected, got = model(x, shift=shift, flag=False), wrapper(x, shift=shift, flag=False)
    assert got.keys() == expected.keys() and got["n"] == 3 and got["nothing"] is None and got["x"] is x
    assert torch.equal(got["hidden"], expected["hidden"]) and got["hidden"].requires_grad


def test_hooks_run_once_each() -> None:
    model, calls = Scaled(), []
    model.register_forward_pre_hook(lambda *_: calls.append("pre"))
    model.register_forward_hook(lambda *_: calls.append("post"))
    rockmate.Rockmate(model)(torch.randn(4, 8))["hidden"].sum().backward()
    assert calls == ["pre", "post"]


def test_pickle_and_deepcopy() -> None:
    wrapper = rockmate.Rockmate(Scaled(), budget="70%")
    for twin in (pickle.loads(pickle.dumps(wrapper)), copy.deepcopy(wrapper)):
        assert isinstance(twin, rockmate.Rockmate) and isinstance(twin, Scaled)
        assert torch.equal(twin.linear.weight, wrapper.linear.weight)
        assert twin.linear.weight is not wrapper.linear.weight


def test_sample_inputs_plan_at_once_and_move_nothing() -> None:
    model, inputs = models.resnet()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stream = torch.get_rng_state()
    wrapper = rockmate.Rockmate(model, budget="60%", sample_inputs=inputs)
    assert wrapper.plan is not None and wrapper.plan.peak_bytes <= wrapper.plan.budget_bytes
    assert torch.equal(torch.get_rng_state(), stream)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    wrapper(**inputs).loss.backward()
    assert len(wrapper.plans) == 1  # the first step used what was captured


def test_no_grad_runs_the_plain_model() -> None:
    wrapper = rockmate.Rockmate(Scaled())
    with torch.no_grad():
        assert not wrapper(torch.randn(4, 8))["hidden"].requires_grad
    with torch.inference_mode():
        wrapper(torch.randn(4, 8))
    assert wrapper.plan is None


def test_new_shapes_plan_again_and_known_ones_do_not() -> None:
    wrapper = rockmate.Rockmate(Scaled())
    for rows in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 3, 2):  # more than Dynamo's recompile limit
        wrapper(torch.randn(rows, 8))["hidden"].sum().backward()
    assert len(wrapper.plans) == 11


def test_nothing_to_train_is_the_plain_behaviour() -> None:
    model = Scaled().requires_grad_(False)
    wrapper = rockmate.Rockmate(model, budget="50%")
    x = torch.randn(4, 8)
    output = wrapper(x)["hidden"]
    assert not output.requires_grad and torch.equal(output, model(x)["hidden"])
    assert wrapper.plan is None


@pytest.mark.parametrize("twice", [True, False])
def test_two_forwards_before_one_backward(twice: bool) -> None:
    model = Scaled()
    wrapper = rockmate.Rockmate(copy.deepcopy(model), budget="100%")
    a, b = torch.randn(4, 8), torch.randn(4, 8)
    for m in (model, wrapper):
        (m(a)["hidden"].sum() + m(b if twice else a)["hidden"].mean()).backward()
    for p, q in zip(model.parameters(), wrapper.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def test_retain_graph_and_second_backward() -> None:
    model, inputs = models.gpt2()
    wrapper = rockmate.Rockmate(copy.deepcopy(model), budget="60%")
    for m in (model, wrapper):
        torch.manual_seed(3)
        loss = m(**inputs).loss
        loss.backward(retain_graph=True)
        loss.backward()
    for p, q in zip(model.parameters(), wrapper.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def test_double_backward_is_refused() -> None:
    wrapper = rockmate.Rockmate(Scaled())
    x = torch.randn(4, 8, requires_grad=True)
    (grad,) = torch.autograd.grad(wrapper(x)["hidden"].sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        grad.sum().backward()


def test_arguments_that_forward_does_not_take() -> None:
    model = torch.nn.Linear(3, 3)
    with pytest.raises(TypeError, match=r"Linear.forward does not take these inputs: missing a required argument: 'input'"):
        rockmate.Rockmate(model, sample_inputs={})
    planned = rockmate.Rockmate(model)
    with pytest.raises(TypeError, match=r"Linear.forward does not take these inputs: got an unexpected keyword argument 'x'"):
        planned(torch.randn(2, 3), x=torch.randn(2, 3))
    assert planned(torch.randn(2, 3)).shape == (2, 3)
