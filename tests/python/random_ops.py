"""The grammar of the random models: one function per op, each writing the Python lines that apply it.

A rule takes a source of choices and the values it applies to, and returns the code, or ``None`` where it does not fit them:

    linear(pick, x)  with x of shape (4, 8)  ->  Code("y = m(x)", "nn.Linear(8, 6)")

``y`` stands for the result, or ``y0, y1`` for several, and ``m`` for the module that the second part makes. Choices are made
from the values' present shapes, so that the same rule with the same choices still fits when the model around it shrinks.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Value:
    """A tensor of the model: its name in the code, and what it holds when the model runs once."""

    name: str
    tensor: Tensor

    def __str__(self) -> str:
        return self.name

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dim(self) -> int:
        return self.tensor.dim()

    @property
    def is_float(self) -> bool:
        return self.tensor.is_floating_point()


@dataclass
class Code:
    """What an op adds to the model: a line (or a few) of ``forward``, and expressions for what ``__init__`` sets up."""

    forward: str
    module: str = ""
    outputs: int = 1
    buffer: str = ""


class Pick(random.Random):
    """The choices of one op. ``modules`` are those made before, with the shape that they were made for."""

    modules: list[tuple[str, str, tuple[int, ...]]]
    shrink: int = 1  # divides sizes

    def size(self) -> int:
        return max(1, self.choice((2, 3, 4, 6, 8)) // self.shrink)

    def axis(self, x: Value) -> int:
        return self.randrange(x.dim)

    def axes(self, x: Value) -> list[int]:
        """Two different ones."""
        return self.sample(range(x.dim), 2)

    def probability(self) -> float:
        return self.choice((0.1, 0.3, 0.5))

    def flag(self) -> bool:
        return self.random() < 0.5


Rule = Callable[..., "Code | None"]
RULES: dict[str, Rule] = {}
WEIGHTS: dict[str, float] = {}


def rule(weight: float = 1.0) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        return function

    return register


def arity(name: str) -> int:
    return len(inspect.signature(RULES[name]).parameters) - 1


def floats(*values: Value, dim: int | tuple[int, ...] = (1, 2, 3, 4)) -> bool:
    dims = (dim,) if isinstance(dim, int) else dim
    return all(value.is_float and value.dim in dims for value in values)


def same_shape(x: Value, y: Value) -> bool:
    return x.shape == y.shape and x.tensor.dtype == y.tensor.dtype


def broadcastable(x: Value, y: Value) -> bool:
    try:
        torch.broadcast_shapes(x.shape, y.shape)
    except RuntimeError:
        return False
    return True


def half(x: Value, axis: int) -> int:
    return max(1, x.shape[axis] // 2)


# Layers


@rule(4)
def linear(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    return Code("y = m(x)", f"nn.Linear({x.shape[-1]}, {pick.size()}, bias={pick.flag()})")


@rule(3)
def mlp(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    act = pick.choice(
        ["nn.ReLU(inplace=True)", "nn.GELU()", "nn.SiLU()", "nn.ELU(inplace=True)", "nn.Dropout(0.2, inplace=True)"]
    )
    width = x.shape[-1]
    return Code("y = m(x)", f"nn.Sequential(nn.Linear({width}, {2 * width}), {act}, nn.Linear({2 * width}, {width}))")


@rule(3)
def convolution(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(3, 4)):
        return None
    groups = x.shape[1] if pick.random() < 0.3 else 1
    channels = x.shape[1] * pick.choice((1, 2)) if groups > 1 else pick.size()
    kind = "nn.Conv1d" if x.dim == 3 else "nn.Conv2d"
    stride = pick.choice((1, 1, 2))
    return Code(
        "y = m(x)", f"{kind}({x.shape[1]}, {channels}, 3, padding=1, stride={stride}, groups={groups}, bias={pick.flag()})"
    )


@rule()
def transposed_convolution(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(3, 4)):
        return None
    kind = "nn.ConvTranspose1d" if x.dim == 3 else "nn.ConvTranspose2d"
    return Code("y = m(x)", f"{kind}({x.shape[1]}, {pick.choice((2, 3, 4))}, 2, stride={pick.choice((1, 2))})")


@rule(4)
def batch_norm(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(2, 3, 4)) or x.tensor.numel() == x.shape[1]:
        return None
    kind = "nn.BatchNorm2d" if x.dim == 4 else "nn.BatchNorm1d"
    momentum = pick.choice((0.1, 0.5))
    return Code("y = m(x)", f"{kind}({x.shape[1]}, momentum={momentum}, affine={pick.random() < 0.8})")


@rule()
def frozen_batch_norm(pick: Pick, x: Value) -> Code | None:
    """In eval mode: reads its running statistics and leaves them alone."""
    if not floats(x, dim=4):
        return None
    return Code("y = m(x)", f"Frozen(nn.BatchNorm2d({x.shape[1]}))")


@rule(3)
def layer_norm(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(2, 3, 4)):
        return None
    return Code("y = m(x)", f"{pick.choice(['nn.LayerNorm', 'nn.LayerNorm', 'nn.RMSNorm'])}({x.shape[-1]})")


@rule(2)
def group_norm(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(3, 4)):
        return None
    groups = pick.choice([g for g in (1, 2, 3, 4) if x.shape[1] % g == 0])
    return Code("y = m(x)", f"nn.GroupNorm({groups}, {x.shape[1]})")


@rule()
def instance_norm(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(3, 4)) or x.tensor[0, 0].numel() < 2:
        return None
    kind = "nn.InstanceNorm2d" if x.dim == 4 else "nn.InstanceNorm1d"
    return Code("y = m(x)", f"{kind}({x.shape[1]}, affine=True, track_running_stats={pick.flag()})")


@rule(10)
def embedding(pick: Pick, x: Value) -> Code | None:
    if x.is_float or x.tensor.dtype is not torch.int64 or x.dim > 3:
        return None
    padding = pick.choice((None, None, 0))
    return Code(f"y = m(x.remainder({(n := pick.size())}))", f"nn.Embedding({n}, {pick.size()}, padding_idx={padding})")


@rule()
def spectral_norm(pick: Pick, x: Value) -> Code | None:
    """Its power iteration updates buffers in every forward pass."""
    if not floats(x):
        return None
    return Code("y = m(x)", f"nn.utils.parametrizations.spectral_norm(nn.Linear({x.shape[-1]}, {pick.size()}))")


@rule()
def weight_norm(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    return Code("y = m(x)", f"nn.utils.parametrizations.weight_norm(nn.Linear({x.shape[-1]}, {pick.size()}))")


@rule(2)
def multihead_attention(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=3) or x.shape[-1] % 2:
        return None
    need = pick.flag()
    return Code(
        f"y, _ = m(x, x, x, need_weights={need})",
        f"nn.MultiheadAttention({x.shape[-1]}, 2, dropout={pick.choice((0.0, 0.2))}, batch_first={pick.flag()})",
    )


@rule()
def transformer_layer(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=3) or x.shape[-1] % 2:
        return None
    width = x.shape[-1]
    options = f"dropout=0.1, batch_first=True, norm_first={pick.flag()}, activation='{pick.choice(['relu', 'gelu'])}'"
    return Code("y = m(x)", f"nn.TransformerEncoderLayer({width}, 2, {2 * width}, {options})")


@rule(6)
def decoder_layer(pick: Pick, x: Value, z: Value) -> Code | None:
    """Attends to a second value of other length."""
    if not floats(x, z, dim=3) or x.shape[-1] % 2 or x.shape[::2] != z.shape[::2] or not same_type(x, z):
        return None
    width = x.shape[-1]
    options = f"dropout={pick.choice((0.0, 0.2))}, batch_first=True, norm_first={pick.flag()}"
    return Code("y = m(x, z)", f"nn.TransformerDecoderLayer({width}, 2, {2 * width}, {options})")


@rule(3)
def recurrent(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=3) or x.shape[0] * x.shape[1] > 32:
        return None
    kind = pick.choice(["LSTM", "LSTM", "GRU", "GRU", "RNN"])
    options = f"num_layers={pick.choice((1, 1, 2))}, batch_first={pick.flag()}, bidirectional={pick.random() < 0.3}"
    options += pick.choice(["", "", ", nonlinearity='relu'"]) if kind == "RNN" else ""
    size = pick.choice((2, 3, 4))
    result = pick.choice(
        ["y, _ = m(x)", "y, a = m(x)\ny = y * a[0].mean()" if kind != "LSTM" else "y, (_, a) = m(x)\ny = y + a.sum()"]
    )
    return Code(result, f"nn.{kind}({x.shape[-1]}, {size}, {options})")


@rule()
def recurrent_cell(pick: Pick, x: Value) -> Code | None:
    """One weight used at every step of a loop, over slices of its input."""
    if not floats(x, dim=3):
        return None
    kind, size = pick.choice(["RNNCell", "LSTMCell", "GRUCell"]), pick.choice((2, 3))
    state = f"a = x.new_zeros(x.shape[0], {size})"
    if kind == "LSTMCell":
        loop = f"{state}\nb = a\nk = []\nfor t in range(x.shape[1]):\n    a, b = m(x[:, t], (a, b))\n    k.append(a)"
    else:
        loop = f"{state}\nk = []\nfor t in range(x.shape[1]):\n    a = m(x[:, t], a)\n    k.append(a)"
    return Code(f"{loop}\ny = torch.stack(k, 1)", f"nn.{kind}({x.shape[-1]}, {size})")


@rule()
def loop(pick: Pick, x: Value) -> Code | None:
    """One layer many times over."""
    if not floats(x):
        return None
    times = pick.choice((3, 6, 12))
    step = pick.choice(["m(y).tanh()", "y + m(y).sigmoid()", "F.dropout(m(y), 0.1)"])
    return Code(f"y = x\nfor _ in range({times}):\n    y = {step}", f"nn.Linear({x.shape[-1]}, {x.shape[-1]})")


@rule(3)
def experts(pick: Pick, x: Value) -> Code | None:
    """Each row goes to the experts with the highest scores."""
    if not floats(x, dim=2):
        return None
    width = x.shape[-1]
    return Code(
        "a, k = m[0](x).softmax(-1).topk(2, -1)\n"
        "y = torch.zeros_like(x)\n"
        "for t in range(3):\n"
        "    b = (a * (k == t)).sum(-1, keepdim=True)\n"
        f"    {pick.choice(['y = y + m[t + 1](x) * b', 'y.add_(m[t + 1](x) * b)'])}",
        f"nn.ModuleList([nn.Linear({width}, 3)] + [nn.Linear({width}, {width}) for _ in range(3)])",
    )


@rule(1)
def checkpointed(pick: Pick, x: Value) -> Code | None:
    """A part that the model's author checkpoints."""
    if not floats(x):
        return None
    width = x.shape[-1]
    layers = f"nn.Linear({width}, {width}), {pick.choice(['nn.GELU()', 'nn.Dropout(0.3)', 'nn.Tanh()'])}, nn.Linear({width}, 3)"
    return Code("y = torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False)", f"nn.Sequential({layers})")


@rule(4)
def reuse(pick: Pick, x: Value) -> Code | None:
    """A module from earlier in the model once more."""
    fitting = [name for name, _, shape in pick.modules if shape == x.shape] if x.is_float else []
    return Code(f"y = self.{pick.choice(fitting)}(x)") if fitting else None


@rule(2)
def tied_weight(pick: Pick, x: Value) -> Code | None:
    """The weight of an earlier linear layer as it is or transposed."""
    if not floats(x):
        return None
    options = []
    for name, kind, _ in pick.modules:
        sizes = re.match(r"nn\.Linear\((\d+), (\d+)", kind)
        if sizes and int(sizes[1]) == x.shape[-1]:
            options.append(f"y = F.linear(x, self.{name}.weight)")
        if sizes and int(sizes[2]) == x.shape[-1]:
            options.append(f"y = F.linear(x, self.{name}.weight.t())")
    return Code(pick.choice(options)) if options else None


@rule()
def derived_weight(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    text = pick.choice(["m.weight.tanh()", "(m.weight * 2).contiguous()", "m.weight - m.weight.mean(1, keepdim=True)"])
    return Code(f"y = F.linear(x, {text}, m.bias)", f"nn.Linear({x.shape[-1]}, {pick.size()})")


@rule()
def frozen_linear(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    return Code("y = m(x)", f"nn.Linear({x.shape[-1]}, {pick.size()}).requires_grad_(False)")


# Dropout and other draws


@rule(4)
def dropout(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    kinds = ["nn.Dropout(p)", "nn.Dropout(p)", "nn.AlphaDropout(p)", "nn.FeatureAlphaDropout(p)"]
    kinds += ["nn.Dropout1d(p)"] if x.dim == 3 else ["nn.Dropout2d(p)"] if x.dim == 4 else []
    return Code("y = m(x)", pick.choice(kinds).replace("p)", f"{pick.probability()})"))


@rule(3)
def noise(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    draws = [
        "torch.randn_like(x)",
        "torch.rand_like(x)",
        "torch.bernoulli(x.detach().sigmoid())",
        "torch.empty_like(x).normal_()",
        "torch.empty_like(x).uniform_(-1, 1)",
        "torch.zeros_like(x).bernoulli_(0.4)",
        "torch.empty_like(x).exponential_()",
        "torch.rand(x.shape[-1], dtype=x.dtype)",
        "torch.normal(x.detach(), 0.1)",
        "torch.randint(0, 3, x.shape)",
        "(torch.rand_like(x) < 0.7)",
        "torch.poisson(x.detach().abs().clamp(max=4.0))",
    ]
    return Code(f"y = x {pick.choice('+*')} {pick.choice(draws)}")


@rule(2)
def random_activation(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    calls = ["F.rrelu(x, training=True)", "F.gumbel_softmax(x, dim=-1)", "F.gumbel_softmax(x, dim=-1, hard=True)"]
    calls += ["F.rrelu(x * 1, training=True, inplace=True)", "F.dropout(F.dropout(x, 0.2), 0.2) + F.dropout(x, 0.2)"]
    return Code(f"y = {pick.choice(calls)}")


@rule()
def shuffle(pick: Pick, x: Value) -> Code | None:
    axis = pick.axis(x) if x.dim else 0
    return Code(f"y = x.index_select({axis}, torch.randperm({x.shape[axis]}))") if x.dim else None


@rule(4)
def sample_tokens(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=2):
        return None
    return Code("y = torch.multinomial(x.softmax(-1).detach(), 2, replacement=True)")


@rule()
def unused_draw(pick: Pick, x: Value) -> Code | None:
    return Code("torch.rand(3)\ny = x * 1.5") if floats(x) else None


# Attention


@rule(3)
def attention(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=3):
        return None
    p = pick.choice((0.0, 0.0, 0.3))
    width = 2 * pick.choice((2, 4))
    more = pick.choice([", is_causal=True", "", ", attn_mask=(torch.arange(t)[:, None] >= torch.arange(t))", ", scale=0.5"])
    return Code(
        "b, t, _ = x.shape\n"
        f"q, k, v = m(x).view(b, t, 3, 2, {width // 2}).permute(2, 0, 3, 1, 4).unbind(0)\n"
        f"y = F.scaled_dot_product_attention(q, k, v, dropout_p={p}{more}).transpose(1, 2).reshape(b, t, {width})",
        f"nn.Linear({x.shape[-1]}, {3 * width})",
    )


@rule(3)
def plain_attention(pick: Pick, x: Value, z: Value) -> Code | None:
    if not floats(x, z, dim=3) or x.shape[0] != z.shape[0] or x.shape[-1] != z.shape[-1] or not same_type(x, z):
        return None
    drop = pick.choice(["", "a = F.dropout(a, 0.2)\n"])
    return Code(f"a = torch.softmax(x @ z.transpose(1, 2) / 2, -1)\n{drop}y = torch.bmm(a, z)")


def same_type(x: Value, z: Value) -> bool:
    return x.tensor.dtype == z.tensor.dtype


# Elementwise


@rule(4)
def activation(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(0, 1, 2, 3, 4)):
        return None
    names = [
        "relu",
        "gelu",
        "silu",
        "elu",
        "softplus",
        "hardswish",
        "leaky_relu",
        "logsigmoid",
        "mish",
        "selu",
        "hardtanh",
        "softsign",
        "celu",
        "relu6",
        "tanhshrink",
    ]
    methods = [
        "tanh",
        "sigmoid",
        "sin",
        "cos",
        "abs",
        "exp2",
        "square",
        "erf",
        "atan",
        "sinh",
        "neg",
        "sign",
        "round",
        "floor",
        "relu",
        "expm1",
    ]
    return Code(pick.choice([f"y = F.{pick.choice(names)}(x)", f"y = x.clamp(-3, 3).{pick.choice(methods)}()"]))


@rule(2)
def softmax(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    return Code(f"y = x.{pick.choice(['softmax', 'log_softmax', 'logcumsumexp', 'cumsum', 'softmax'])}({pick.axis(x)})")


@rule()
def gated(pick: Pick, x: Value) -> Code | None:
    return Code("y = F.glu(x, -1)") if floats(x) and x.shape[-1] % 2 == 0 else None


@rule(2)
def prelu(pick: Pick, x: Value) -> Code | None:
    return Code("y = m(x)", f"nn.PReLU({x.shape[1]})") if floats(x, dim=(2, 3, 4)) else None


@rule(5)
def combine(pick: Pick, x: Value, z: Value) -> Code | None:
    if not floats(x, z, dim=(0, 1, 2, 3, 4)) or not broadcastable(x, z):
        return None
    texts = ["x + z", "x * z", "x - 2 * z", "x / (1 + z.abs())", "torch.maximum(x, z)", "torch.where(x > z, x, z * 2)"]
    texts += ["torch.lerp(x, z.to(x.dtype), 0.3)", "torch.addcmul(x, z.to(x.dtype), z.to(x.dtype))", "torch.hypot(x, z + 1)"]
    texts += ["torch.atan2(x, z)"] if same_type(x, z) else []
    return Code(f"y = {pick.choice(texts)}")


@rule(4)
def residual(pick: Pick, x: Value, z: Value) -> Code | None:
    """A long skip: two values of one shape."""
    if not floats(x, z) or not same_shape(x, z):
        return None
    return Code(pick.choice(["y = x + z", "y = x * z.sigmoid()", "y = z - x", "y = torch.add(x, z, alpha=0.5)"]))


@rule()
def complex_part(pick: Pick, x: Value) -> Code | None:
    if not floats(x) or x.tensor.dtype is torch.bfloat16:
        return None
    return Code(
        pick.choice([f"y = torch.fft.irfft(torch.fft.rfft(x), n={x.shape[-1]})", "y = torch.polar(x.abs() + 0.1, x).real"])
    )


# Ops whose gradients depend on the data: on zeros, on which elements are equal, on what is masked


@rule(4)
def data_dependent(pick: Pick, x: Value) -> Code | None:
    """Values with zeros and equal elements among them, or without."""
    if not floats(x, dim=(1, 2, 3)):
        return None
    axis, keep = pick.axis(x), pick.flag()
    a = pick.choice(["x", "x.relu()", "x.clamp(-0.5, 0.5)", "x.round()", "x.sin() + 2"] + (["x.tril()"] if x.dim == 2 else []))
    texts = [f"a.prod({axis}, keepdim={keep})", f"a.cumprod({axis})", f"(a * 1).cumprod_({axis})", "x * a.prod()"]
    texts += [f"x + a.{name}()" for name in ("max", "min", "median", "nanmedian", "amax")]
    # PyTorch's median over a dimension that was expanded reads memory that is not the tensor's: never the same twice.
    texts += [f"a.{name}({axis}, keepdim={keep})[0]" for name in ("min", "contiguous().nanmedian", "mode")]
    texts += [f"a.kthvalue(1, {axis})[0]", f"torch.aminmax(a, dim={axis})[1]", f"a.cummin({axis})[0]", "x - a.aminmax()[0]"]
    texts += [f"a.quantile(0.4, {axis})"] if x.tensor.dtype is not torch.bfloat16 else []
    texts += [f"F.normalize(a, dim={axis})", f"a.renorm(2, {axis}, 0.7)", f"a.norm(float('inf'), {axis})", "x * a.norm()"]
    texts += [f"a.nansum({axis})", f"x * a.std({axis}, keepdim=True, correction=0)", "x.pow(2) * a.abs().pow(1.5)"]
    return Code(f"a = {a}\ny = {pick.choice(texts)}")


@rule()
def masked_fill_trained(pick: Pick, x: Value) -> Code | None:
    """Fills in a value that is trained itself."""
    if not floats(x):
        return None
    text = pick.choice(["x.masked_fill(x > 0, a)", "(x * 1).masked_fill_(x < 0, a)", "torch.where(x > 0.2, a, x)"])
    return Code(f"a = m.weight.mean().to(x.dtype)\ny = {text}", "nn.Linear(3, 2)")


@rule(2)
def special_function(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    a = "x.clamp(-2, 2)"
    texts = [
        f"torch.{name}({a})"
        for name in ("sinc", "asinh", "rsqrt(2.5 +", "log1p(2.5 +", "frac", "trunc", "erfc", "logit(0.3 + 0.1 *")
    ]
    texts += ["torch.xlogy(x, x.abs() + 1)", f"torch.lgamma({a} + 3)", "torch.logaddexp(x, x * 0.5)", f"torch.special.i0({a})"]
    texts += [
        "x.fmod(0.7)",
        "x.remainder(0.7)",
        "x.nan_to_num(0.0)",
        "torch.copysign(x, x.flip(0))",
        "torch.deg2rad(x)",
        "x.acosh()",
    ]
    texts += [
        f"{a}.pow(3)",
        f"torch.pow(1.5, {a})",
        f"(x.abs() + 0.5) ** {a}",
        "x.sigmoid().log()",
        "x.heaviside(x[:1] * 0 + 1)",
    ]
    text = pick.choice(texts)
    return Code(f"y = {text}" + ")" * (text.count("(") - text.count(")")))


@rule(2)
def spectrum(pick: Pick, x: Value) -> Code | None:
    """Factorizations and functions of small square matrices."""
    if not floats(x, dim=(2, 3)) or x.tensor.dtype is torch.bfloat16:
        return None
    a = f"x.mT @ x * 0.1 + 2 * torch.eye({x.shape[-1]}, dtype=x.dtype)"
    texts = ["torch.linalg.cholesky(a)", "torch.linalg.inv(a)", "torch.linalg.solve(a, a.sin())", "torch.linalg.slogdet(a)[1]"]
    texts += ["torch.linalg.det(a)", "torch.linalg.eigvalsh(a)", "torch.linalg.svdvals(a)", "torch.linalg.qr(a)[1]"]
    texts += ["torch.matrix_exp(a * 0.2)", "torch.linalg.matrix_power(a, 3)", "a.logdet()", "torch.linalg.pinv(a)"]
    texts += [
        "torch.linalg.solve_triangular(a, a.sin(), upper=True)",
        "torch.cholesky_solve(a.sin(), torch.linalg.cholesky(a))",
    ]
    return Code(f"a = {a}\ny = {pick.choice(texts)}")


@rule(3)
def distance(pick: Pick, x: Value, z: Value) -> Code | None:
    if not floats(x, z, dim=(2, 3)) or x.shape[-1] != z.shape[-1] or x.dim != z.dim or not same_type(x, z):
        return None
    if x.tensor.dtype is torch.bfloat16 or x.shape[:-2] != z.shape[:-2]:
        return None
    texts = [f"torch.cdist(x, z, p={p})" for p in ("2.0", "1.0", "3.0")]
    if x.shape == z.shape:
        texts += ["F.cosine_similarity(x, z, -1)", "F.pairwise_distance(x, z)", "torch.dist(x, z)"]
    return Code(f"y = {pick.choice(texts)}")


# Matrix products and concatenation


@rule(4)
def product(pick: Pick, x: Value, z: Value) -> Code | None:
    if not floats(x, z, dim=(2, 3)) or not same_type(x, z):
        return None
    if x.shape[-1] == z.shape[-1] and (x.dim == 2 or z.dim == 2 or x.shape[0] == z.shape[0]):
        return Code(pick.choice(["y = (x @ z.mT) * 0.3", "y = torch.einsum('...ij,...kj->...ki', x, z) * 0.3"]))
    if x.shape[-2] == z.shape[-2] and (x.dim == 2 or z.dim == 2 or x.shape[0] == z.shape[0]):
        return Code("y = torch.matmul(x.mT, z) * 0.3")
    return None


@rule(4)
def concatenate(pick: Pick, x: Value, z: Value) -> Code | None:
    if x.dim == 0 or x.dim != z.dim or x.is_float != z.is_float:
        return None
    differing = [axis for axis in range(x.dim) if x.shape[axis] != z.shape[axis]]
    if len(differing) > 1:
        return None
    axis = differing[0] if differing else pick.axis(x)
    if not differing and pick.random() < 0.3:
        return Code(f"y = torch.stack([x, z], {axis})") if x.dim < 4 else None
    return Code(f"y = torch.cat([{pick.choice(['x, z', 'z, x, z', 'z, x'])}], {axis})")


# Views


@rule(4)
def transpose(pick: Pick, x: Value) -> Code | None:
    if x.dim < 2:
        return None
    a, b = pick.axes(x)
    return Code(f"y = x.transpose({a}, {b})" + pick.choice(["", "", ".contiguous()"]))


@rule(3)
def reshape(pick: Pick, x: Value) -> Code | None:
    if x.dim < 2:
        return None
    last = x.shape[-1]
    options = ["y = x.flatten(1)", "y = x.flatten(0, 1)", f"y = x.reshape({x.shape[0]}, -1)", f"y = x.reshape(-1, {last})"]
    if last % 2 == 0 and x.dim < 4:
        options += [f"y = x.unflatten(-1, (2, {last // 2}))", f"y = x.reshape(*x.shape[:-1], {last // 2}, 2)"]
    return Code(pick.choice(options))


@rule(3)
def part(pick: Pick, x: Value) -> Code | None:
    if x.dim == 0:
        return None
    axis = pick.axis(x)
    size = x.shape[axis]
    colons = ":, " * axis
    options = [f"x[{colons}{pick.randrange(size)}:]", f"x[{colons}::2]", f"x.narrow({axis}, 0, {half(x, axis)})"]
    options += [f"x[{colons}{pick.randrange(size)}]", f"x.select({axis}, -1)"] if x.dim > 1 else []
    options += ["x.diagonal(0, 0, 1)", "x.unfold(-1, 1, 1)[..., 0]"] if x.dim > 1 else []
    options += [f"x[{colons}None]"] if x.dim < 4 else []
    return Code(f"y = {pick.choice(options)}")


@rule(2)
def overlapping_view(pick: Pick, x: Value) -> Code | None:
    """Views whose elements share memory, and views of views."""
    if not floats(x, dim=(1, 2, 3)):
        return None
    axis = pick.axis(x)
    size = x.shape[axis]
    texts = [
        f"x.unfold({axis}, {max(1, size - 1)}, 1)",
        f"x.unsqueeze({axis}).expand({', '.join(['2' if i == axis else '-1' for i in range(x.dim + 1)])})",
    ]
    texts += [
        "x.expand_as(x)",
        f"x.diff(dim={axis})" if size > 1 else "x.view_as(x)",
        "x.diag_embed()" if x.dim < 3 else "x.mT",
    ]
    texts += ["x.contiguous().as_strided((2, 2), (1, 1))"] if x.tensor.numel() > 2 else []
    texts += ["x.rot90()", "x.swapaxes(0, -1)[:1]", "x.mT.reshape(-1).view(-1, 1)"] if x.dim > 1 else []
    return Code(f"y = {pick.choice(texts)}")


@rule(2)
def expand(pick: Pick, x: Value) -> Code | None:
    if x.dim >= 4 or x.tensor.numel() > 512:
        return None
    axis = pick.randrange(x.dim + 1)
    sizes = ", ".join("2" if i == axis else "-1" for i in range(x.dim + 1))
    return Code(f"y = x.unsqueeze({axis}).expand({sizes})")


@rule(3)
def pieces(pick: Pick, x: Value) -> Code | None:
    if x.dim == 0:
        return None
    axis = pick.axis(x)
    if x.shape[axis] < 2:
        return None
    at = pick.randrange(1, x.shape[axis])
    text = pick.choice([f"x.split([{at}, {x.shape[axis] - at}], {axis})", f"x.tensor_split([{at}], {axis})"])
    if x.shape[axis] % 2 == 0:
        text = pick.choice([text, f"x.chunk(2, {axis})"])
    return Code(f"y0, y1 = {text}", outputs=2)


@rule(2)
def rearrange(pick: Pick, x: Value) -> Code | None:
    if x.dim == 0:
        return None
    axis = pick.axis(x)
    return Code(
        f"y = {pick.choice([f'x.roll(1, {axis})', f'x.flip({axis})', f'x.movedim({axis}, 0)', 'x.clone()', 'x.tile(2)'])}"
    )


# In place


@rule(5)
def in_place(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(0, 1, 2, 3, 4)):
        return None
    calls = [
        "x.add_(1)",
        "x.mul_(0.5)",
        "x.relu_()",
        "x.sigmoid_()",
        "x.tanh_()",
        "x.clamp_(-1, 1)",
        "F.elu_(x)",
        "F.leaky_relu_(x)",
    ]
    calls += [
        "x.neg_()",
        "F.relu(x, inplace=True)",
        "F.silu(x, inplace=True)",
        "F.hardtanh_(x)",
        "F.dropout(x, 0.3, inplace=True)",
    ]
    calls += ["x.masked_fill_(x > 0.5, 0.5)", "x.fill_(0.5)", "x.copy_(x.detach().sin())", "x.zero_()", "x.square_()"]
    fresh = pick.choice(["", "x = x * 1\n", "x = x.sin()\n"])
    return Code(f"{fresh}y = {pick.choice(calls)}")


@rule(4)
def in_place_view(pick: Pick, x: Value) -> Code | None:
    """Writes through a view; the base is what goes on."""
    if not floats(x):
        return None
    axis = pick.axis(x)
    n = half(x, axis)
    colons = ":, " * axis
    writes = [
        f"x[{colons}:{n}] = x[{colons}-{n}:] * 2",
        f"x[{colons}:{n}] += 1",
        f"x[{colons}0] = 0",
        f"x.narrow({axis}, 0, {n}).mul_(0.5)",
        f"x.chunk(2, {axis})[0].relu_()",
        f"x[{colons}::2].sigmoid_()",
        "x.flatten().add_(1)",
        "x.view(-1)[::2].mul_(0.5)",
        "x[x > 0] = 0.25",
        "x[torch.tensor([0])] = 1.5",
        f"x.index_add_({axis}, torch.tensor([0]), x.narrow({axis}, 0, 1))",
        f"x.index_fill_({axis}, torch.tensor([0]), 0.5)",
    ]
    writes += ["x.transpose(0, 1).mul_(2)", "x.diagonal().add_(1)", "x.t().tanh_()"] if x.dim == 2 else []
    writes += ["x.transpose(1, 2)[0].sub_(1)", "torch.tril(x, out=x)"] if x.dim == 3 else []
    fresh = pick.choice(["x = x * 1\n", "x = x.sin()\n", "x = x.clone()\n", "", "x = x.contiguous()\n"])
    return Code(f"{fresh}{pick.choice(writes)}\ny = x")


@rule(4)
def in_place_other(pick: Pick, x: Value, z: Value) -> Code | None:
    """Adds or writes one value into another."""
    if not floats(x, z) or x.shape != z.shape:
        return None
    fresh = pick.choice(["x = x * 1\n", "", "x = x.sin()\n"])
    text = pick.choice(
        ["x += z", "x.mul_(z)", "x[:] = z", "x.copy_(z)", "x[0] = z[0]", "x.addcmul_(z, z)", "x -= 0.5 * z", "x.lerp_(z, 0.5)"]
    )
    return Code(f"{fresh}{text}\ny = x")


@rule()
def view_then_write(pick: Pick, x: Value) -> Code | None:
    """A view taken before its base is written to sees the write."""
    if not floats(x, dim=(2, 3, 4)):
        return None
    view = pick.choice(["x[0]", "x.transpose(0, 1)", "x.flatten()", "x[..., :1]"])
    return Code(f"x = x.tanh()\ny = {view}\nx.mul_(0.5)\ny = y + x.sum()")


# Reductions and indexing


@rule(2)
def reduce(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    axis, keep = pick.axis(x), pick.flag()
    names = ["mean", "sum", "amax", "logsumexp", "norm"] + (["var", "std"] if x.shape[axis] > 1 else [])
    name = pick.choice(names)
    where = f"dim={axis}, keepdim={keep}"
    ordered = pick.choice(["max", "min", "contiguous().median"])  # see data_dependent
    texts = [f"y = x.{name}({where})"] * 2 + [f"y = x.{ordered}({axis}).values", "y = x.mean()"]
    return Code(pick.choice(texts))


@rule()
def ordered(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    axis = pick.axis(x)
    text = pick.choice([f"x.topk({half(x, axis)}, {axis})", f"x.sort({axis})", f"x.max({axis})", f"x.cummax({axis})"])
    return Code(f"y0, y1 = {text}", outputs=2)


@rule(3)
def pick_by_index(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=(2, 3)):
        return None
    axis = pick.axis(x)
    index = f"x.detach().argsort({axis})"
    return Code(
        pick.choice(
            [
                f"y = x.gather({axis}, {index})",
                f"y = torch.zeros_like(x).scatter_add({axis}, {index}, x)",
                f"y = x.scatter({axis}, {index}, x.sin())",
                f"y = x.index_select({axis}, torch.tensor([0, 0]))",
                "y = x[torch.tensor([0, 0])]",
                "y = x.masked_fill(x > 0.3, 0.3)",
                f"y = x.take_along_dim({index}, {axis})",
            ]
        )
    )


@rule(2)
def write_by_index(pick: Pick, x: Value) -> Code | None:
    """Several elements go to one place."""
    if not floats(x, dim=(2, 3)):
        return None
    axis = pick.axis(x)
    index = f"(x.detach().argsort({axis}) // 2)"
    rows = f"torch.arange({x.shape[axis]}) // 2"
    texts = [
        f"torch.zeros_like(x).scatter_reduce({axis}, {index}, x, '{r}', include_self={pick.flag()})"
        for r in ("sum", "mean", "amax", "prod")
    ]
    texts += [f"(x * 1).index_reduce_({axis}, {rows}, x.sin(), '{r}')" for r in ("mean", "amax", "prod")]
    texts += [
        f"x.index_copy({axis}, torch.tensor([0]), x.narrow({axis}, {x.shape[axis] - 1}, 1).sin())",
        "x.masked_scatter(x > 0, x.sin())",
    ]
    texts += ["x.take(torch.tensor([0, 0, 1]))" if x.tensor.numel() > 1 else "x * 1", "x[x.detach() > 0].sum() + x"]
    texts += ["(x * 1).index_put_((torch.tensor([0, 0]),), x[:1].sin(), accumulate=True)", "x.repeat_interleave(2, 0)"]
    texts += ["torch.put(x, torch.tensor([0]), x.reshape(-1)[:1].sin())"]
    return Code(f"y = {pick.choice(texts)}")


@rule(2)
def pooling(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=4) or min(x.shape[2:]) < 2:
        return None
    calls = ["F.max_pool2d(x, 2)", "F.avg_pool2d(x, 2)", "F.adaptive_avg_pool2d(x, 1)", "F.max_pool2d(x, 3, 1, 1)"]
    calls += ["F.adaptive_max_pool2d(x, 2)", "F.interpolate(x, scale_factor=2.0)", "F.pad(x, (1, 1, 0, 1), mode='reflect')"]
    calls += ["F.interpolate(x, size=(5, 5), mode='bilinear')", "F.pixel_unshuffle(x[..., :2, :2], 2)", "F.unfold(x, 2)"]
    return Code(f"y = {pick.choice(calls)}")


@rule()
def padding(pick: Pick, x: Value) -> Code | None:
    return Code(f"y = F.pad(x, (1, 0), value={pick.choice((0, 0.5))})") if floats(x) else None


# Integers


@rule(2)
def to_integers(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    texts = [f"x.argmax({pick.axis(x)})", "(x * 3).long()", "(x > 0).long().cumsum(-1)", "x.detach().argsort(-1)"]
    return Code(f"y = {pick.choice(texts)}")


@rule(4)
def one_hot(pick: Pick, x: Value) -> Code | None:
    if x.is_float or x.tensor.dtype is not torch.int64 or x.dim > 3:
        return None
    n = pick.size()
    return Code(f"y = F.one_hot(x.remainder({n}), {n}).to(DTYPE)")


@rule(2)
def mask(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    masks = ["x.detach() > 0", "torch.ones_like(x).tril() > 0" if x.dim > 1 else "x > 0", "torch.arange(x.shape[-1]) % 2 == 0"]
    uses = ["x * a", "x.masked_fill(a, -1.0)", "torch.where(a, x, x.sin())", "x.masked_fill(~a, 0.0)"]
    return Code(f"a = {pick.choice(masks)}\ny = {pick.choice(uses)}")


@rule()
def positions(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=3):
        return None
    return Code("y = x + m(torch.arange(x.shape[1]))", f"nn.Embedding({x.shape[1]}, {x.shape[2]})")


@rule(2)
def class_loss(pick: Pick, x: Value) -> Code | None:
    if not floats(x, dim=2):
        return None
    smooth = pick.choice(["", ", label_smoothing=0.1", ", reduction='sum'"])
    return Code(f"y = F.cross_entropy(x, torch.arange(x.shape[0]) % x.shape[1]{smooth})")


@rule()
def regression_loss(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    names = ("smooth_l1_loss", "huber_loss", "l1_loss", "mse_loss", "soft_margin_loss", "kl_div", "gaussian_nll_loss")
    name = pick.choice(names)
    more = ", torch.ones_like(x)" if name == "gaussian_nll_loss" else f", reduction='{pick.choice(['mean', 'sum', 'none'])}'"
    return Code(f"y = F.{name}(x, torch.ones_like(x) * 0.3{more})")


@rule(8)
def bag(pick: Pick, x: Value) -> Code | None:
    """Rows of a table that are summed, or whose gradients are scaled by how often they are read."""
    if x.is_float or x.tensor.dtype is not torch.int64 or x.dim != 2:
        return None
    kind = pick.choice(["EmbeddingBag({}, 4, mode='sum')", "EmbeddingBag({}, 4)", "EmbeddingBag({}, 4, mode='max')"])
    kind = pick.choice([kind, "Embedding({}, 4, scale_grad_by_freq=True)", "Embedding({}, 4, max_norm=1.0)"])
    return Code(f"y = m(x.remainder({(n := pick.size())}))", f"nn.{kind.format(n)}")


# Gradients that stop, and gradients of one's own


@rule(3)
def stop_gradient(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    return Code(
        pick.choice(
            [
                "y = x.detach()",
                "y = x + (x.round() - x).detach()",
                "with torch.no_grad():\n    a = x.sin() + 1\ny = x * a",
                "with torch.no_grad():\n    a = x * 1\n    a.mul_(0.5)\ny = x + a",
                "a = x.detach().clone()\na.relu_()\ny = x - a",
                "y = x.detach() * x",
            ]
        )
    )


@rule()
def own_backward(pick: Pick, x: Value) -> Code | None:
    return Code(f"y = {pick.choice(['DoublingTanh', 'Reversed', 'Scaled'])}.apply(x)") if floats(x) else None


@rule()
def no_grad_layer(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    return Code(
        "with torch.no_grad():\n    a = m(x)\ny = x * a.mean()", f"nn.Sequential(nn.Linear({x.shape[-1]}, 4), nn.Dropout(0.2))"
    )


# State


@rule(3)
def moving_average(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    update = pick.choice(
        [
            "s.lerp_(x.detach().mean().to(s.dtype), 0.1)",
            "s.mul_(0.9).add_(x.detach().mean(), alpha=0.1)",
            "s.copy_(x.detach().mean())",
            "s += 1",
        ]
    )
    read = pick.choice(["y = x * (1 + s)", "y = x - s", "y = x * 1", "y = x * torch.tanh(s)"])
    lines = [f"with torch.no_grad():\n    {update}", read]
    return Code("\n".join(lines if pick.flag() else reversed(lines)), buffer="torch.full((), 0.5)")


@rule()
def counter(pick: Pick, x: Value) -> Code | None:
    return Code("s.add_(1)\ny = x / s", buffer="torch.zeros((), dtype=torch.long)") if floats(x) else None


@rule(3)
def codebook(pick: Pick, x: Value) -> Code | None:
    """The nearest of a few vectors, which then move towards what they were nearest to."""
    if not floats(x, dim=(2, 3)):
        return None
    width = x.shape[-1]
    return (
        Code(
            f"a = x.detach().reshape(-1, {width}).to(s.dtype)\n"
            "k = torch.cdist(a, s).argmin(-1)\n"
            f"y = x + (s[k].view(x.shape) - x).detach()\n"
            "s.index_add_(0, k, 0.1 * (a - s[k]))",
            buffer=f"torch.linspace(-1, 1, 3 * {width}).view(3, {width})",
        )
        if x.tensor.dtype is not torch.bfloat16
        else None
    )


@rule()
def clamped_weight(pick: Pick, x: Value) -> Code | None:
    """Writes into a parameter before using it."""
    if not floats(x):
        return None
    return Code("with torch.no_grad():\n    m.weight.clamp_(-0.2, 0.2)\ny = m(x)", f"nn.Linear({x.shape[-1]}, {pick.size()})")


# Types


@rule(2)
def convert(pick: Pick, x: Value) -> Code | None:
    if not floats(x):
        return None
    there = pick.choice(["torch.float32", "torch.float64", "torch.bfloat16"])
    return Code(
        pick.choice([f"y = x.to({there}).to(DTYPE)", f"y = x.to({there}).sin().to(DTYPE)", "y = (x.float() * 2).type_as(x)"])
    )


@rule(2)
def autocast_layer(pick: Pick, x: Value) -> Code | None:
    """Under autocast; its weight may be used outside as well."""
    if not floats(x) or x.tensor.dtype is torch.float64:
        return None
    inside = pick.choice(["a = m(x)", "a = m(m(x))", "a = m(x).softmax(-1)", "a = F.layer_norm(m(x), x.shape[-1:])"])
    after = pick.choice(["y = a.to(DTYPE)", "y = a.to(DTYPE) + m(x)", "y = a"])
    width = x.shape[-1]
    return Code(f"with torch.autocast('cpu', torch.bfloat16):\n    {inside}\n{after}", f"nn.Linear({width}, {width})")


# State that is no tensor


@rule()
def python_random(pick: Pick, x: Value) -> Code | None:
    """Draws from Python's generator: a scale, or whether a layer is used."""
    return Code("y = x * (0.5 + random.random())") if floats(x) else None


# Inputs


def float_input(pick: Pick) -> Code:
    shape = [max(1, pick.choice((1, 2, 3, 4, 6, 8)) // pick.shrink) for _ in range(pick.choice((2, 3, 3, 4, 4)))]
    text = f"torch.randn({', '.join(map(str, shape))}, dtype=DTYPE)"
    layout = pick.random()
    if layout < 0.1:
        text += ".transpose(0, 1)"
    elif layout < 0.2 and len(shape) == 4:
        text += ".contiguous(memory_format=torch.channels_last)"
    elif layout < 0.25 and len(shape) < 4:
        text += f".unsqueeze(0).expand({', '.join(['2'] + ['-1'] * len(shape))})"
    return Code(text + (".requires_grad_()" if pick.random() < 0.3 else ""))


def integer_input(pick: Pick) -> Code:
    return Code(f"torch.randint(0, 8, ({pick.choice((1, 2, 3))}, {pick.choice((2, 3, 4, 6))}))")


INPUTS: dict[str, Callable[[Pick], Code]] = {"float_input": float_input, "integer_input": integer_input}


def same_input(pick: Pick, x: Value) -> Code:
    """A tensor that is passed once more, as it is or as a view."""
    texts = ["x", "x.detach()", "x.view_as(x)"] + (
        ["x.transpose(0, 1)", "x[:1]", "x[..., 1:]"] if x.dim > 1 and x.shape[-1] > 1 else []
    )
    return Code(pick.choice(texts))


#: Inputs that are made of earlier ones.
SHARED_INPUTS: dict[str, Callable[[Pick, Value], Code]] = {"same_input": same_input}
