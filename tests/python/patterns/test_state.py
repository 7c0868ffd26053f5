"""S: buffers, counters and hooks change once per step, as they do without us."""

from __future__ import annotations

import copy
import logging
import random
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from harness import Case, random_streams
from parts import Fn, images, mlp, rows
from registry import equal, pattern, variants
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

import rockmate


def conv_stack(norm: Any, depth: int = 3) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(depth):
        layers += [nn.Conv2d(3 if i == 0 else 8, 8, 3, padding=1, bias=False), norm(8), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


NORMS: dict[str, Any] = {
    "BatchNorm2d": nn.BatchNorm2d,
    "without affine": lambda n: nn.BatchNorm2d(n, affine=False),
    "without running statistics": lambda n: nn.BatchNorm2d(n, track_running_stats=False),
    "frozen": lambda n: nn.BatchNorm2d(n).requires_grad_(False),
    "in evaluation mode": lambda n: nn.BatchNorm2d(n).eval(),
    "SyncBatchNorm in one process": nn.SyncBatchNorm,
    "InstanceNorm2d with statistics": lambda n: nn.InstanceNorm2d(n, affine=True, track_running_stats=True),
    "GroupNorm": lambda n: nn.GroupNorm(2, n),
}


@equal("S1", "convolution, normalization, ReLU in place: {norm}")
@pytest.mark.parametrize("norm", variants(NORMS, "BatchNorm2d", "SyncBatchNorm in one process", "GroupNorm"))
def test_normalization(norm: str) -> Case:
    return Case(conv_stack(NORMS[norm]), images())


@equal(
    "S1",
    "the same in nn.Sequential, momentum=None, which reads a counter off a buffer",
    outcome="equal; what a batch normalization does after it has read its counter runs as it is, between planned pieces, and a "
    "warning tells it",
)
def test_cumulative_statistics() -> Case:
    return Case(conv_stack(lambda n: nn.BatchNorm2d(n, momentum=None)), images(), steps=5)


@equal("S1", "the same, channels last")
def test_batch_norm_channels_last() -> Case:
    return Case(conv_stack(nn.BatchNorm2d).to(memory_format=torch.channels_last), images())


@equal("S1", "the same batch normalization twice in one forward")
def test_batch_norm_twice() -> Case:
    return Case(
        Fn(
            lambda m, x: m.n(torch.sin(m.b(torch.relu(m.n(m.a(x)))))),
            a=nn.Linear(16, 32),
            b=nn.Linear(32, 32),
            n=nn.BatchNorm1d(32),
        ),
        rows(),
    )


@equal("S1", "running statistics read in forward, after batch normalization")
def test_batch_norm_statistics_read() -> Case:
    return Case(
        Fn(
            lambda m, x: m.b(torch.relu(m.n(m.a(x))) * m.n.running_mean),
            a=nn.Linear(16, 32),
            b=nn.Linear(32, 16),
            n=nn.BatchNorm1d(32),
        ),
        rows(),
    )


@equal("S1", "spectral norm and weight norm as parametrizations")
def test_parametrizations() -> Case:
    return Case(nn.Sequential(spectral_norm(nn.Linear(16, 32)), nn.Tanh(), weight_norm(nn.Linear(32, 16)), nn.Tanh()), rows())


@torch.no_grad()
def lerp_update(m: Any, h: Tensor) -> None:
    m.mean.lerp_(h.mean(0), 0.1)
    m.count.add_(1)


@torch.no_grad()
def copy_update(m: Any, h: Tensor) -> None:
    m.mean.copy_(0.9 * m.mean + 0.1 * h.mean(0))
    m.count += 1


@torch.no_grad()
def replacing_update(m: Any, h: Tensor) -> None:
    m.mean = 0.9 * m.mean + 0.1 * h.mean(0)
    m.count = m.count + 1


@torch.no_grad()
def indexed_update(m: Any, h: Tensor) -> None:
    m.mean[::2] = h.mean(0)[::2]
    m.count.fill_(7)


UPDATES = {
    "lerp_": lerp_update,
    "copy_": copy_update,
    "a new tensor in place of the buffer": replacing_update,
    "slices": indexed_update,
}


def with_update(update: Any, when: str) -> Any:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.relu(m.a(x))
        old = h - m.mean if when == "read before" else h
        update(m, h)
        return m.b(torch.sin(old - m.mean if when == "read after" else old * 2))

    return forward


@equal("S2", "moving average: {update}, buffer {when}")
@pytest.mark.parametrize("when", ["read before", "read after", "not read"])
@pytest.mark.parametrize("update", variants(UPDATES, "lerp_"))
def test_moving_average(update: str, when: str) -> Case:
    parts = mlp(mean=torch.zeros(64), count=torch.zeros((), dtype=torch.long))
    return Case(Fn(with_update(UPDATES[update], when), **parts), rows())


@equal("S2", "codebook: nearest code, straight-through, counts and sums updated with index_add_")
def test_codebook() -> Case:
    def forward(m: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        h = m.a(x)
        code = torch.cdist(h, m.codes).argmin(1)
        with torch.no_grad():
            m.counts.mul_(0.9).index_add_(0, code, torch.ones(len(x)))
            m.sums.mul_(0.9).index_add_(0, code, h)
            m.codes.copy_(m.sums / (m.counts[:, None] + 1e-3))
        chosen = m.codes[code]
        return m.b(torch.sin(h + (chosen - h).detach())), ((chosen.detach() - h) ** 2).mean()

    codes = torch.randn(8, 64)
    return Case(Fn(forward, **mlp(codes=codes, counts=torch.ones(8), sums=codes.clone())), rows())


@equal("S2", "weights clipped in forward, under no_grad")
def test_parameter_changed_in_forward() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            m.a.weight.clamp_(-0.1, 0.1)
        return m.b(torch.sin(m.a(x)))

    return Case(Fn(forward, **mlp()), rows())


@equal("S3", "an attribute that is None at first, then added to")
def test_load_that_begins_as_none() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        weights = torch.softmax(m.router(x), -1)
        load = weights.detach().sum(0)
        if m.load is None:
            m.load = load
        else:
            m.load += load
        return m.b(torch.sin(m.a(x))) * weights[:, :1]

    model = Fn(forward, **mlp(router=nn.Linear(16, 4), load=None))
    return Case(model, rows(), effects=lambda: model.load.clone(), steps=4)


@equal("S3", "a loss kept on the module, with its graph, and added by the caller")
def test_loss_kept_on_the_module() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x))
        m.auxiliary = h.square().mean()
        return m.b(h).sum()

    model = Fn(forward, **mlp(auxiliary=None))
    return Case(model, rows(), loss=lambda output: output + model.auxiliary, effects=lambda: model.auxiliary.detach())


@equal("S4", "forward counts its calls, twelve steps")
def test_counter() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        m.calls += 1
        return m.b(torch.sin(m.a(x)))

    model = Fn(forward, **mlp(calls=0))
    return Case(model, rows(), effects=lambda: model.calls, steps=12)


@equal("S4", "a counter that the result depends on, twelve steps")
@pytest.mark.long
def test_counter_that_is_read() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        m.calls += 1
        return m.b(torch.sin(m.a(x))) * (0.9**m.calls)

    model = Fn(forward, **mlp(calls=0))
    return Case(model, rows(), effects=lambda: model.calls, steps=12)


@equal("S4", "forward appends to lists: numbers, tensors, and to a dict of the module")
def test_appending() -> Case:
    log: list[Any] = []

    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x))
        log.append(len(x))
        m.seen.append(h.detach().mean())
        m.last["h"] = h.detach()[0]
        return m.b(h)

    model = Fn(forward, **mlp(seen=[], last={}))
    return Case(model, rows(), effects=lambda: (list(log), [t.clone() for t in model.seen], model.last["h"].clone()))


@equal("S4", "hooks: a forward hook that counts, one that replaces the output, a pre-hook that changes the input")
def test_hooks() -> Case:
    counts = {"before": 0, "after": 0}

    def before(module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        counts["before"] += 1
        return (args[0] * 2,)

    def after(module: nn.Module, args: tuple[Tensor], output: Tensor) -> Tensor:
        counts["after"] += 1
        return torch.sin(output)

    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    for module in (model, model[0], model[2]):
        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
    return Case(model, rows(), effects=lambda: dict(counts))


@equal("S4", "full backward hooks on the model")
def test_backward_hooks() -> Case:
    fired: list[str] = []
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    model.register_full_backward_hook(lambda m, gi, go: fired.append("model"))
    return Case(model, rows(), effects=lambda: list(fired))


@equal("S4", "full backward hooks on a layer of nn.Sequential")
def test_backward_hooks_inside() -> Case:
    fired: list[str] = []
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    model[2].register_full_backward_hook(lambda m, gi, go: fired.append("layer"))
    return Case(model, rows(), effects=lambda: list(fired))


@equal("S4", "tensor hooks inside forward that count and that scale the gradient")
def test_tensor_hooks() -> Case:
    fired: list[int] = []

    def scale(grad: Tensor) -> Tensor:
        fired.append(1)
        return grad * 2

    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x))
        h.register_hook(scale)
        return m.b(torch.cos(h))

    return Case(Fn(forward, **mlp()), rows(), effects=lambda: len(fired))


@equal("S4", "forward prints, warns and logs")
def test_printing(capsys: pytest.CaptureFixture[str]) -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x))
        print("forward")
        return m.b(h)

    printed: list[str] = []

    def effects() -> list[str]:
        printed.append(capsys.readouterr().out)
        return list(printed)

    return Case(Fn(forward, **mlp()), rows(), effects=effects)


@equal("S4", "forward warns")
def test_warning() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x))
        warnings.warn("deprecated", stacklevel=2)
        return m.b(h)

    return Case(Fn(forward, **mlp()), rows())


@equal("S4", "forward logs", outcome="equal, but calls of Python loggers are passed over inside of a captured step")
def test_logging() -> Case:
    log = logging.getLogger("of the model")

    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x))
        log.info("forward of %s", h.shape)
        return m.b(h)

    return Case(Fn(forward, **mlp()), rows())


@equal("S5", "a cache passed in and extended: {kind}")
@pytest.mark.parametrize("kind", ["list of tensors", "dict of tensors", "written in place"])
def test_cache(kind: str) -> Case:
    def forward(m: Any, x: Tensor, cache: Any) -> tuple[Tensor, Any]:
        q, k, v = m.qkv(x[None]).split(16, -1)
        if kind == "list of tensors":
            cache.append(k)
            cache.append(v)
            keys, values = torch.cat(cache[0::2], 1), torch.cat(cache[1::2], 1)
        elif kind == "dict of tensors":
            keys = cache["k"] = torch.cat([cache["k"], k], 1)
            values = cache["v"] = torch.cat([cache["v"], v], 1)
        else:
            cache["k"][:, 3:27] = k.detach()
            cache["v"][:, 3:27] = v.detach()
            keys, values = cache["k"], cache["v"]
        return m.out(torch.sin(F.scaled_dot_product_attention(q, keys, values))), cache

    def inputs(step: int) -> tuple[Any, ...]:
        k, v = torch.randn(2, 1, 3, 16)
        if kind == "list of tensors":
            return (*rows(), [k, v])
        if kind == "dict of tensors":
            return (*rows(), {"k": k, "v": v})
        return (*rows(), {"k": torch.zeros(1, 27, 16), "v": torch.zeros(1, 27, 16)})

    model = Fn(forward, qkv=nn.Linear(16, 48), out=nn.Linear(16, 16))
    return Case(model, inputs, holds_budget=kind != "list of tensors")  # its outputs are more than the model makes


@equal("S5", "GPT-2 with transformers' DynamicCache, filled by earlier calls and extended")
def test_dynamic_cache() -> Case:
    from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0)
    ids = torch.randint(0, 64, (2, 8))
    lengths: list[int] = []

    def step(model: nn.Module, args: Any, kwargs: Any) -> Any:
        cache = DynamicCache(config=config)
        output = model(input_ids=ids, past_key_values=cache, use_cache=True)
        output.logits.square().mean().backward()
        lengths.append(cache.get_seq_length())
        second = model(input_ids=ids, past_key_values=cache, use_cache=True)
        lengths.append(cache.get_seq_length())
        return [output.logits, second.logits, output.past_key_values is cache, cache.layers[1].keys]

    return Case(GPT2LMHeadModel(config).train(), (), step=step, effects=lambda: list(lengths), holds_budget=False)


@pattern("S6", "wrapping alone, and planning ahead with sample_inputs, move nothing")
def test_building_moves_nothing() -> None:
    calls: list[str] = []

    def forward(m: Any, x: Tensor) -> Tensor:
        m.calls += 1
        with torch.no_grad():
            m.mean.lerp_(x.mean(0), 0.1)
        return m.b(F.dropout(torch.relu(m.norm(m.a(x)))))

    model = Fn(forward, **mlp(norm=nn.BatchNorm1d(64), mean=torch.zeros(16), calls=0))
    model.register_forward_hook(lambda *_: calls.append("hook"))
    (x,) = rows(requires_grad=True)
    random.seed(5)
    before, streams = copy.deepcopy(model.state_dict()), random_streams()
    for budget in ("100%", "80%"):
        rockmate.Rockmate(model, budget=budget)
        wrapper = rockmate.Rockmate(model, budget=budget, sample_inputs=(x,))
        assert wrapper.plan is not None
    assert torch.equal(streams[0], random_streams()[0]) and streams[1:] == random_streams()[1:]
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert model.calls == 0 and calls == [] and model.training
    assert x.grad is None and all(p.grad is None and p.requires_grad for p in model.parameters())
