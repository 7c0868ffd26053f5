"""torch.compile(model, backend="rockmate")."""

from __future__ import annotations

import copy

import models
import pytest
import torch

import rockmate


def test_registered_as_an_entry_point() -> None:
    assert "rockmate" in torch._dynamo.list_backends()


def test_compiled_model_is_the_plain_one() -> None:
    model, inputs = models.gpt2()
    model.loss_type = "ForCausalLM"  # else the model logs, which breaks the graph
    plain = copy.deepcopy(model)
    plans: list[rockmate.Plan] = []
    compiled = torch.compile(model, backend="rockmate", options={"budget": "50%", "on_plan": plans.append})
    for m in (plain, compiled):
        torch.manual_seed(5)
        m(**inputs).loss.backward()
    assert len(plans) == 1 and plans[0].recomputed
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def test_dynamic_shapes_are_planned_size_by_size() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(), torch.nn.Linear(16, 1))
    plain = copy.deepcopy(model)
    compiled = torch.compile(model, backend="rockmate", options={"budget": "90%"}, dynamic=True)
    for rows in (4, 7, 9, 4):
        x = torch.randn(rows, 8)
        for m in (plain, compiled):
            torch.manual_seed(rows)
            m(x).sum().backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def test_unmeetable_budget_is_an_error_that_names_the_least() -> None:
    model, inputs = models.gpt2()
    model.loss_type = "ForCausalLM"
    compiled = torch.compile(model, backend="rockmate", options={"budget": 1000})
    with pytest.raises(Exception, match="can't be met: the least activation budget"):
        compiled(**inputs)


def test_unknown_option_is_refused() -> None:
    model, inputs = models.gpt2()
    compiled = torch.compile(model, backend="rockmate", options={"budgett": 1000})
    with pytest.raises(Exception, match="unknown option 'budgett'"):
        compiled(**inputs)
