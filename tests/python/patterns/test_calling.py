"""C: what goes in, what comes out, and which kinds of models."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from harness import Case, weighted
from parts import Fn, images, mlp, rows
from registry import equal, pattern, variants
from torch import Tensor, nn

import rockmate


@dataclasses.dataclass
class Output:
    hidden: Tensor
    extra: Any = None


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


def hidden_of(m: Any, x: Tensor) -> Tensor:
    return m.b(torch.sin(m.a(x)))


STRUCTURES: dict[str, Callable[[Any, Tensor], Any]] = {
    "a dataclass": lambda m, x: Output(hidden_of(m, x), {"n": 3}),
    "a named tuple": lambda m, x: Pair(hidden_of(m, x), x * 2),
    "a dict with None, an int, a float and a text": lambda m, x: {"h": hidden_of(m, x), "no": None, "n": 3, "f": 0.5, "t": "t"},
    "nested lists and tuples": lambda m, x: [hidden_of(m, x), (x.sum(), [x.mean()]), ()],
    "the same tensor twice": lambda m, x: (h := hidden_of(m, x), h),
    "an input as output": lambda m, x: (hidden_of(m, x), x),
    "views of one another": lambda m, x: (h := hidden_of(m, x), h.t(), h[2:], h.view(-1)),
    "a view of an input": lambda m, x: (hidden_of(m, x), x[1:], x.t()),
    "a parameter and a buffer": lambda m, x: (hidden_of(m, x), m.b.weight, m.scale),
    "sizes and data types": lambda m, x: (hidden_of(m, x), x.shape, x.dtype, x.device),
    "one of them detached, one an integer": lambda m, x: (h := hidden_of(m, x), h.detach(), h.argmax(1)),
    "an expanded tensor and one of other strides": lambda m, x: (
        h := hidden_of(m, x),
        h.sum(1, True).expand(24, 5),
        h.t().clone(),
    ),
}


@equal("C1", "output: {structure}")
@pytest.mark.parametrize("structure", STRUCTURES)
def test_output_structure(structure: str) -> Case:
    from_the_model = "input" not in structure and "parameter" not in structure  # else their gradients go past the model
    case = Case(Fn(STRUCTURES[structure], **mlp(scale=torch.ones(3))), rows(requires_grad=True))
    return dataclasses.replace(case, holds_budget=from_the_model)


@equal("C1", "forward(x, mask=None, *, flag=True, extras={{'a': t, 'n': 3}}), called in four ways")
def test_keyword_arguments() -> Case:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(16, 64), nn.Linear(64, 16)

        def forward(self, x: Tensor, mask: Tensor | None = None, *, flag: bool = True, extras: Any = None) -> Any:
            h = torch.sin(self.a(x))
            if mask is not None:
                h = h * mask
            if extras is not None:
                h = h + extras["a"] * extras["n"]
            return {"h": self.b(h) if flag else self.b(-h), "flag": flag}

    def inputs(step: int) -> Any:
        x, mask = torch.randn(24, 16), (torch.rand(24, 1) > 0.5).float()
        extras = {"a": torch.randn(64, requires_grad=True), "n": 3}
        return [
            ((x,), {}),
            ((x, mask), {"flag": False}),
            ((x,), {"mask": mask, "extras": extras}),
            ((), {"x": x, "extras": extras}),
        ][step]

    return Case(Model(), inputs, steps=4)


@equal("C2", "an argument named input, a float argument that changes, a list of tensors")
def test_argument_names() -> Case:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(16, 64), nn.Linear(64, 16)

        def forward(self, input: Tensor, scale: float, others: list[Tensor], name: str = "sin") -> Tensor:
            h = getattr(torch, name)(self.a(input)) * scale
            for other in others:
                h = h * other
            return self.b(h)

    def inputs(step: int) -> Any:
        return {"input": torch.randn(24, 16), "scale": (0.5, 1.5, 0.5, 2.5)[step], "others": [torch.randn(64), torch.randn(64)]}

    return Case(Model(), inputs, steps=4)


@equal("C2", "bare nn.Sequential, nn.Linear, and a container called with nothing")
@pytest.mark.parametrize("kind", ["nn.Sequential", "nn.Linear", "without inputs"])
def test_bare_modules(kind: str) -> Case:
    if kind == "nn.Sequential":
        return Case(nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 8)), rows())
    if kind == "nn.Linear":
        return Case(nn.Linear(16, 8), rows(requires_grad=True))
    return Case(Fn(lambda m: torch.sin(m.w) @ torch.cos(m.w), w=nn.Parameter(torch.randn(8, 8))), ())


def add_to_itself(m: Any, x: Tensor) -> Tensor:
    h = m.a(x)
    for scale in (0.3, -0.2, 0.5):
        h += torch.sigmoid(h) * scale
        h *= scale
    return m.b(torch.cos(h))


def elu_in_place(m: Any, x: Tensor) -> Tensor:
    return m.b(torch.sigmoid(F.elu_(m.a(x))))


def slices(m: Any, x: Tensor) -> Tensor:
    h = torch.sin(m.a(x))
    h = h * 2
    h[:, :4] = h[:, 4:8] * 2
    h[::2] += 1
    return m.b(torch.cos(h))


def index_put(m: Any, x: Tensor) -> Tensor:
    h = torch.sin(m.a(x)) * 1.5
    index = torch.arange(0, 24, 3)
    h = h.index_put((index,), x.new_ones(64) * 0.3) + 0
    h.index_put_((index + 1,), torch.sigmoid(h[:8]), accumulate=True)
    h.masked_fill_(h > 0.9, 0.1)
    return m.b(torch.cos(h))


def scatter_and_fill(m: Any, x: Tensor) -> Tensor:
    h = torch.zeros(24, 64)
    h.scatter_(1, torch.arange(64).flip(0).expand(24, 64), torch.sin(m.a(x)))
    h.clamp_(-0.7, 0.7).mul_(2).add_(h.detach())
    return m.b(torch.exp_(h * 0.1))


def views_of_one_base(m: Any, x: Tensor) -> Tensor:
    h = torch.sin(m.a(x)) * 1
    left, right = h[:, :32], h[:, 32:]
    left.mul_(right.detach() + 1)
    h.t()[3].zero_()
    return m.b(torch.cos(h))


IN_PLACE: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "h += f(h), three times": add_to_itself,
    "matmul, elu_, sigmoid": elu_in_place,
    "slice assignment": slices,
    "index_put_, masked_fill_": index_put,
    "scatter_, clamp_, mul_, exp_": scatter_and_fill,
    "through views of one base": views_of_one_base,
}


@equal("C3", "in place: {kind}")
@pytest.mark.parametrize("kind", IN_PLACE)
def test_in_place(kind: str) -> Case:
    return Case(Fn(IN_PLACE[kind], **mlp(d=nn.Linear(64, 64))), rows(requires_grad=True))


@equal("C3", "in place on the input itself: {how}")
@pytest.mark.parametrize("how", ["add_", "a slice", "through a view", "read again afterwards"])
def test_in_place_on_the_input(how: str) -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x * 2))
        if how == "add_":
            x.add_(1)
        elif how == "a slice":
            x[:, 2:5] = 0.5
        elif how == "through a view":
            x.t().mul_(2)
        else:
            h = h * m.a(torch.sin(x.relu_().clone()))
        return m.b(torch.cos(h)) + x

    return Case(Fn(forward, **mlp()), rows())


@equal("C3", "ReLU in place after batch normalization, residual added in place")
def test_in_place_in_a_residual_block() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.relu(m.n(m.a(x)))
        h = m.n2(m.d(h))
        h += m.a(x)
        return m.b(m.relu(h))

    parts = mlp(d=nn.Linear(64, 64), n=nn.BatchNorm1d(64), n2=nn.BatchNorm1d(64), relu=nn.ReLU(inplace=True))
    return Case(Fn(forward, **parts), rows())


@equal("C4", "another batch size, a longer sequence, a batch of one, sizes seen before")
def test_other_sizes() -> Case:
    sizes = [(4, 6), (2, 6), (4, 9), (1, 6), (1, 1), (4, 6), (4, 9), (3, 2)]

    def forward(m: Any, x: Tensor) -> Tensor:
        return m.b(F.dropout(torch.sin(m.a(x)), 0.2))

    return Case(Fn(forward, **mlp()), lambda step: (torch.randn(*sizes[step], 16),), steps=len(sizes))


@equal("C4", "images of other sizes, one channels last")
def test_other_image_sizes() -> Case:
    def inputs(step: int) -> Any:
        x = torch.randn(2 + step % 2, 3, 8 + step, 8)
        return (x.to(memory_format=torch.channels_last) if step == 2 else x,)

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    )
    return Case(model, inputs, steps=4)


def in_autocast(step_dtype: torch.dtype, *, backward_inside: bool = False) -> Callable[[nn.Module, Any, Any], Any]:
    def step(model: nn.Module, args: Any, kwargs: Any) -> Any:
        with torch.autocast("cpu", dtype=step_dtype):
            output = model(*args, **kwargs)
            if backward_inside:
                weighted(output).backward()
        if not backward_inside:
            weighted(output).backward()
        return output

    return step


@equal("C5", "autocast to {dtype} around the model, backward {where}")
@pytest.mark.parametrize("where", ["outside", "inside"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype: torch.dtype, where: str) -> Case:
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 16))
    return Case(model, rows(), step=in_autocast(dtype, backward_inside=where == "inside"))


@equal("C5", "autocast inside of the model, and switched off for a part of it")
def test_autocast_inside() -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = torch.sin(m.a(x))
            with torch.autocast("cpu", enabled=False):
                h = torch.cos(m.d(h.float()))
            return m.b(h).float()

    return Case(Fn(forward, **mlp(d=nn.Linear(64, 64))), rows())


@equal("C5", "autocast, the same linear layer {times} in one forward")
@pytest.mark.parametrize("times", ["twice", "three times, once under no_grad"])
def test_autocast_of_a_layer_used_twice(times: str) -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = torch.sin(m.a(x))
        if times != "twice":
            with torch.no_grad():
                h = h + m.d(h).mean()
        return m.b(m.d(torch.sin(m.d(h))))

    return Case(Fn(forward, **mlp(d=nn.Linear(64, 64))), rows(), step=in_autocast(torch.bfloat16))


@equal(
    "C5",
    "autocast, two calls in one region",
    "equal where autocast keeps no casts; else the gradients of weights round otherwise, and a warning tells it",
)
def test_two_calls_in_one_autocast_region() -> Case:
    def step(model: nn.Module, args: Any, kwargs: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            output = model(*args, **kwargs) + model(*args, **kwargs)
        weighted(output).backward()
        return output

    return Case(Fn(lambda m, x: m.b(torch.sin(m.a(x))), **mlp()), rows(), step=step, holds_budget=False)


BREAKS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "a branch on the data": lambda m, x: m.b(torch.sin(m.a(x))) if x.sum() > 0 else m.b(torch.cos(m.a(x))),
    "a call that is opaque to the tracer": lambda m, x: m.b(opaque(torch.sin(m.a(x)))),
}
READS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "a factor": lambda m, x: m.b(torch.sin(h := m.a(x))) * h.mean().item(),
    "a dropout rate": lambda m, x: m.b(F.dropout(h := torch.sin(m.a(x)), h.square().mean().item())),
    "a size": lambda m, x: m.b(torch.sin(m.a(x))[: int((x[:, 0] > 0).sum().item())]),
    "rows picked by a mask": lambda m, x: m.b((h := torch.sin(m.a(x)))[h.sum(1) > 0]),
    "rows picked by nonzero": lambda m, x: m.b(torch.sin(m.a(x))[torch.nonzero(x[:, 0] > 0)[:, 0]]),
}


@torch.compiler.disable
def opaque(h: Tensor) -> Tensor:
    return torch.cos(h) * 2


@equal("C6", "{what}")
@pytest.mark.parametrize("what", BREAKS)
def test_graph_breaks(what: str) -> Case:
    # What the pieces keep together is the matter of test_pieces.py; here, code between them takes memory of its own.
    return Case(Fn(BREAKS[what], **mlp()), lambda step: (torch.randn(24, 16) + (-1) ** step,), holds_budget=False)


COMPILED_OTHERWISE: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "other numbers": lambda m, h: h * 3 if torch.compiler.is_compiling() else torch.cos(h) + h,
    "a scan instead of a loop": lambda m, h: torch.cumsum(h, 0) if torch.compiler.is_compiling() else loop_of_sums(h),
}


def loop_of_sums(h: Tensor) -> Tensor:
    sums = [h[0]]
    for row in h[1:]:
        sums.append(sums[-1] + row)
    return torch.stack(sums)


@equal(
    "C6",
    "it asks whether it is compiled, and computes otherwise then: {what}",
    "equal; where the plain path can't be captured whole it trains as compiled, and a warning tells it",
)
@pytest.mark.parametrize("what", COMPILED_OTHERWISE)
def test_it_computes_otherwise_when_compiled(what: str) -> Case:
    return Case(Fn(lambda m, x: m.b(torch.sin(COMPILED_OTHERWISE[what](m, m.a(x)))), **mlp()), rows())


@equal("C6", "a number or a size that the data give: {what}")
@pytest.mark.parametrize("what", variants(READS, "a factor", "rows picked by a mask"))
def test_data_read_in_forward(what: str) -> Case:
    # Captured whole, the graph would hold a symbol: it is captured in pieces, and they keep the budget.
    return Case(Fn(READS[what], **mlp()), rows())


@pattern("C6", "the same where nothing is trained, and where PyTorch is told to capture such sizes")
def test_data_read_under_other_settings() -> None:
    model = Fn(READS["rows picked by a mask"], **mlp())
    (x,) = rows()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        for _ in range(2):
            assert torch.equal(rockmate.Rockmate(model, budget="95%")(x), model(x))
        model.requires_grad_(False)
        assert torch.equal(rockmate.Rockmate(model, budget="95%")(x), model(x))
    for what in READS:
        frozen = Fn(READS[what], **mlp()).requires_grad_(False)
        torch.manual_seed(3)
        expected = frozen(x)
        torch.manual_seed(3)
        assert torch.equal(rockmate.Rockmate(frozen)(x), expected), what


def recurrent(m: Any, x: Tensor) -> Tensor:
    return m.b(torch.sin(m.rnn(m.a(x)[None])[0][0]))


@equal("C7", "nn.LSTM of two layers with dropout, nn.GRU in both directions: {layer}")
@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
def test_recurrent(layer: str) -> Case:
    rnn = nn.LSTM(64, 64, 2, dropout=0.2) if layer == "LSTM" else nn.GRU(64, 32, bidirectional=True)
    return Case(Fn(recurrent, **mlp(rnn=rnn)), rows())


def skips(m: Any, x: Tensor) -> Tensor:
    down = torch.relu(m.first(x))
    middle = torch.relu(m.second(F.max_pool2d(down, 2)))
    deep = torch.relu(m.third(F.avg_pool2d(middle, 2)))
    up = F.interpolate(deep, scale_factor=2, mode="nearest")
    up = torch.relu(m.up(torch.cat([up, middle], 1)))
    up = F.interpolate(up, scale_factor=2, mode="bilinear", align_corners=False)
    return m.last(torch.cat([up, down], 1))


def dense(m: Any, x: Tensor) -> Tensor:
    features = [m.first(x)]
    for layer in m.layers:
        features.append(torch.relu(layer(torch.cat(features, 1))))
    return torch.cat(features, 1)


def experts(m: Any, x: Tensor) -> Tensor:
    weights, chosen = torch.topk(torch.softmax(m.router(x), -1), 2)
    every = torch.stack([expert(x) for expert in m.experts], 1)
    picked = torch.gather(every, 1, chosen[..., None].expand(-1, -1, 16))
    return (picked * weights[..., None]).sum(1)


def encoder_decoder(m: Any, x: Tensor) -> Tensor:
    memory = m.encoder(x[None])
    for layer in m.decoder:
        x = layer(torch.sin(x)[None], memory)[0]
    return x


def conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


ARCHITECTURES: dict[str, Callable[[], Case]] = {
    "nn.MultiheadAttention with weights, dropout and masks": lambda: Case(
        Fn(
            lambda m, x: m.attention(x[None], x[None], x[None], attn_mask=torch.triu(torch.ones(24, 24), 1).bool()),
            attention=nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True),
        ),
        rows(),
    ),
    "nn.TransformerEncoder, norm first": lambda: Case(
        Fn(
            lambda m, x: m.t(x[None], mask=nn.Transformer.generate_square_subsequent_mask(24), is_causal=True),
            t=nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True), 2),
        ),
        rows(),
    ),
    "nn.Transformer": lambda: Case(
        Fn(lambda m, x: m.t(x[None], torch.sin(x[None])), t=nn.Transformer(16, 2, 1, 1, 32, batch_first=True)), rows()
    ),
    "UNet with long skips, interpolated up": lambda: Case(
        Fn(skips, first=conv(3, 8), second=conv(8, 12), third=conv(12, 16), up=conv(28, 12), last=conv(20, 3)), images()
    ),
    "DenseNet concatenation": lambda: Case(
        Fn(dense, first=conv(3, 8), layers=nn.ModuleList(conv(8 + 4 * i, 4) for i in range(4))), images()
    ),
    "encoder and decoder": lambda: Case(
        Fn(
            encoder_decoder,
            encoder=nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
            decoder=nn.ModuleList(nn.TransformerDecoderLayer(16, 2, 32, batch_first=True) for _ in range(2)),
        ),
        rows(),
    ),
    "top-k experts": lambda: Case(
        Fn(
            experts,
            router=nn.Linear(16, 4),
            experts=nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(4)),
        ),
        rows(),
    ),
}


@equal("C7", "{architecture}")
@pytest.mark.parametrize("architecture", variants(ARCHITECTURES, *(name for name in ARCHITECTURES if name != "nn.Transformer")))
def test_architecture(architecture: str) -> Case:
    return ARCHITECTURES[architecture]()


RESIZED: dict[str, Any] = {
    "nearest": {"mode": "nearest"},
    "nearest-exact": {"mode": "nearest-exact"},
    "bilinear": {"mode": "bilinear"},
    "bicubic": {"mode": "bicubic", "align_corners": True},
    "bilinear, antialiased": {"mode": "bilinear", "antialias": True},
}


@equal("C7", "ops that PyTorch decomposes when it traces: interpolation, {mode}")
@pytest.mark.parametrize("mode", variants(RESIZED, "nearest", "bilinear"))
def test_interpolation(mode: str) -> Case:
    def forward(m: Any, x: Tensor) -> Tensor:
        return m.last(torch.sin(F.interpolate(m.first(x), scale_factor=1.7, **RESIZED[mode])))

    return Case(Fn(forward, first=conv(3, 8), last=conv(8, 3)), images())


@equal("C7", "ops that PyTorch decomposes when it traces: hardshrink, softshrink, multi_margin_loss, stft")
def test_other_decomposed_ops() -> Case:
    def forward(m: Any, x: Tensor) -> Any:
        h = F.softshrink(F.hardshrink(m.a(x), 0.1), 0.2)
        spectrum = torch.stft(h, 16, window=torch.hann_window(16), return_complex=True).abs()
        return F.multi_margin_loss(m.b(h), torch.arange(24) % 16), spectrum

    return Case(Fn(forward, **mlp()), rows())


@pattern("C8", "state_dict keys, names, attributes, methods and class; .to(); pickle and deepcopy keep the budget")
def test_the_wrapper_is_the_model() -> None:
    model = Fn(hidden_of, **mlp(scale=torch.ones(3)))
    model.note = "mine"
    names = [name for name, _ in model.named_parameters()]
    wrapper = rockmate.Rockmate(model, budget="95%")
    assert isinstance(wrapper, Fn) and list(wrapper.state_dict()) == list(model.state_dict())
    assert [name for name, _ in wrapper.named_parameters()] == names
    assert [name for name, _ in wrapper.named_modules()] == [name for name, _ in model.named_modules()]
    assert wrapper.note == "mine" and wrapper.a is model.a and repr(wrapper.a) == repr(model.a)
    (x,) = rows()
    weighted(wrapper(x)).backward()
    wrapper.to(torch.float64)
    assert model.a.weight.dtype == torch.float64
    weighted(wrapper(x.double())).backward()
    assert wrapper.plan.peak_bytes <= wrapper.plan.budget_bytes
    expected = model.b(torch.sin(model.a(x.double())))
    assert torch.equal(wrapper(x.double()), expected)
    twin = copy.deepcopy(wrapper)
    assert isinstance(twin, rockmate.Rockmate) and torch.equal(twin(x.double()), expected)
    twin.load_state_dict({key: torch.zeros_like(value) for key, value in wrapper.state_dict().items()})
    assert twin(x.double()).abs().sum() == 0 and torch.equal(wrapper(x.double()), expected)


@pattern("C8", "pickled and loaded again")
def test_pickle() -> None:
    wrapper = rockmate.Rockmate(nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)), budget="100%")
    (x,) = rows()
    expected = wrapper(x)
    loaded = pickle.loads(pickle.dumps(wrapper))
    assert isinstance(loaded, rockmate.Rockmate) and torch.equal(loaded(x), expected)


DTYPES: dict[str, Callable[[], Case]] = {
    "float64": lambda: Case(Fn(hidden_of, **mlp()).double(), (torch.randn(24, 16, dtype=torch.float64),)),
    "bfloat16": lambda: Case(Fn(hidden_of, **mlp()).bfloat16(), (torch.randn(24, 16).bfloat16(),)),
    "float16": lambda: Case(Fn(hidden_of, **mlp()).half(), (torch.randn(24, 16).half(),)),
    "float32 weights, computed in float64 and bfloat16": lambda: Case(
        Fn(lambda m, x: m.b(torch.sin(m.a(x).double() * 2).bfloat16().float()), **mlp()), rows()
    ),
    "complex, FFT layer": lambda: Case(
        Fn(
            lambda m, x: m.b(torch.fft.irfft(torch.fft.rfft(m.a(x)) * torch.polar(m.r, m.r), n=64)),
            **mlp(r=nn.Parameter(torch.rand(33))),
        ),
        rows(),
    ),
    "complex weights": lambda: Case(
        Fn(lambda m, x: torch.sin(m.d(m.a(x) * 1j)).abs(), **mlp(d=nn.Linear(64, 16, dtype=torch.complex64))), rows()
    ),
    "integers and booleans on the way": lambda: Case(
        Fn(lambda m, x: m.b(torch.where((h := m.a(x)) > 0, h, h * 0.1) * (h.argsort(1) % 3).to(torch.int32)), **mlp()), rows()
    ),
}


@equal("C9", "{dtype}")
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype(dtype: str) -> Case:
    return DTYPES[dtype]()
