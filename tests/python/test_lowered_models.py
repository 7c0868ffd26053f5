"""Whole models under AOTAutograd's own partition: equal to plain PyTorch, and nothing held too long."""

from __future__ import annotations

import copy

import pytest
import torch
from functorch.compile import default_partition
from torch._dynamo.backends.common import aot_autograd

from rockmate import _runtime
from rockmate.lower import lower
from rockmate.meter import Meter, measure_peak


def compiled(model: torch.nn.Module, programs: list[_runtime.Program] | None = None):
    def compiler(gm, _inputs):
        program = lower(gm)
        if programs is not None:
            programs.append(program)
        return program

    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, partition_fn=default_partition)
    torch._dynamo.reset()
    return torch.compile(model, backend=backend, fullgraph=True)


def gpt2() -> tuple[torch.nn.Module, dict]:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=16, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"
    ids = torch.randint(0, 64, (2, 16))
    return model, {"input_ids": ids, "labels": ids}


def resnet() -> tuple[torch.nn.Module, dict]:
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[2, 2],
        layer_type="bottleneck",
        num_labels=5,
        problem_type="single_label_classification",
    )
    model = transformers.ResNetForImageClassification(config)
    return model, {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([1, 4])}


def step(model, inputs: dict, seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    loss = model(**inputs).loss
    loss.backward()
    return loss.detach()


@pytest.mark.parametrize("make", [gpt2, resnet])
def test_models_equal_plain_pytorch_to_the_bit(make):
    torch.manual_seed(0)
    plain, inputs = make()
    plain.train()
    ours = copy.deepcopy(plain)
    fast = compiled(ours)
    for seed in range(3):
        want = step(plain, inputs, seed)
        stream = torch.rand(1)
        got = step(fast, inputs, seed)
        assert torch.equal(got, want)
        assert torch.equal(torch.rand(1), stream)
        for (name, mine), theirs in zip(ours.named_parameters(), plain.parameters(), strict=True):
            assert torch.equal(mine.grad, theirs.grad), name
        for (name, mine), theirs in zip(ours.named_buffers(), plain.buffers(), strict=True):
            assert torch.equal(mine, theirs), name


@pytest.mark.parametrize("make", [gpt2, resnet])
def test_no_memory_is_left_after_a_step_and_no_more_is_held_than_plain(make):
    torch.manual_seed(0)
    plain, inputs = make()
    plain.train()
    fast = compiled(copy.deepcopy(plain))
    step(fast, inputs, 0)
    step(plain, inputs, 0)

    def measured(model) -> tuple[int, int]:
        model.zero_grad(set_to_none=True)
        with Meter() as meter:
            step(model, inputs, 0)
            grads = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
        return meter.current_bytes - grads, meter.peak_bytes

    left, peak = measured(fast)
    plain_left, plain_peak = measured(plain)
    assert left == plain_left == 0
    # Beyond plain: the new contents of mutated buffers, which AOTAutograd copies when the forward pass is over.
    assert peak <= plain_peak + sum(buffer.nbytes for buffer in plain.buffers())


def test_without_gradients():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    x = torch.randn(3, 4)
    with torch.no_grad():
        assert torch.equal(compiled(model.eval())(x), model(x))
    with torch.inference_mode():
        assert torch.equal(compiled(model)(x), model(x))


class Sines(torch.nn.Module):
    def forward(self, x):
        for _ in range(6):
            x = x.sin()
        return x.sum()


def test_saved_tensors_die_at_their_op_of_the_backward_pass():
    # Six sines of 1 KiB each save what they were given: x (the user's) and five values, all alive when backward begins.
    # Each backward step needs a cosine and a product beside the gradient it was given.
    programs: list[_runtime.Program] = []
    fast = compiled(Sines(), programs)
    x = torch.ones(256, requires_grad=True)
    fast(x).backward()
    x.grad = None
    peak = measure_peak(lambda: fast(x).backward())
    # When the first cosine is there: five saved values, the gradient is an expanded scalar, the cosine. Then the
    # product, and from then on one saved value less per step. The loss and its gradient are scalars.
    assert peak.total_bytes <= 7 * 1024 + 64
    assert peak.trace[-1] == 1024  # the gradient of x
