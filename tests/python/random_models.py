"""Random models: described, written as Python, trained plainly and through Rockmate, compared to the bit, and shrunk.

A *description* is a list of ops of the grammar (``random_ops.py``), each with the values that it applies to and a seed for its
own choices. It holds no shapes: writing the model runs each line as it is written, and every op makes its choices to fit what
it gets. So a description from which ops were taken away, or with smaller inputs, usually is a model again, which is what
shrinking needs. ``python tests/python/random_models.py 1234`` prints, tries and shrinks the model of seed 1234.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from random_ops import INPUTS, RULES, SHARED_INPUTS, WEIGHTS, Pick, Value, arity
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import rockmate
from rockmate import measure_peak
from rockmate.capture import CPU_RNG_STATE_BYTES
from rockmate.plan import PiecesPlan

Ref = tuple[int, int]  # (which op, which of its outputs)
DTYPES = ("float32", "float32", "float32", "float64", "bfloat16")
BUDGETS = ("100%", "50%", "minimum")
STEPS = 3


@dataclass(frozen=True)
class Op:
    kind: str
    inputs: tuple[Ref, ...]
    seed: int


@dataclass(frozen=True)
class Description:
    ops: tuple[Op, ...]
    dtype: str
    ending: int  # seed for what is returned and what is differentiated
    shrink: int = 1  # divides the sizes of inputs and layers


class Unfit(Exception):
    """The description is no model: an op does not fit its inputs, or plain PyTorch refuses to train it."""


class Failure(Exception):
    """Rockmate's training differs from the plain one. ``kind`` tells in what, ``budget`` at which."""

    def __init__(self, kind: str, budget: str, text: str) -> None:
        super().__init__(f"{budget}: {text}")
        self.kind = kind
        self.budget = budget


PREAMBLE = '''\
import random

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn


class Frozen(nn.Module):
    """Keeps a module in eval mode."""

    def __init__(self, module):
        super().__init__()
        self.module = module.eval()

    def forward(self, x):
        return self.module(x)

    def train(self, mode=True):
        return self


class DoublingTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return 2 * grad * (1 - y * y) + 0 * x


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return -0.5 * grad


class Scaled(torch.autograd.Function):
    """Holds a tensor on ctx, and reads what it saved twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.scale = x.abs().mean() + 1
        ctx.save_for_backward(x)
        return x.sin() * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].cos() * ctx.scale + 0.1 * ctx.saved_tensors[0]
'''


def source(
    init: list[str],
    body: list[str],
    inputs: list[str],
    dtype: str = "float32",
    given: list[int] | None = None,
    gradients: list[str] | None = None,
    handed_over: bool = False,
) -> str:
    """The text of a model and of what it is trained with.

    Args:
        init: lines of ``__init__``.
        body: lines of ``forward``.
        inputs: lines such as ``"v0 = torch.randn(2, 3)"``.
        dtype: what the model is converted to.
        given: which of the returned tensors are differentiated; the first by default, a loss.
        gradients: what is passed to their backward pass; nothing for a loss.
        handed_over: whether the gradients are made by what follows on the model, which keeps none of them, or by the caller of
            the backward pass, who holds them until it ends.
    """
    names = [text.split(" = ")[0] for text in inputs]
    return "\n".join(
        [
            PREAMBLE,
            "",
            f"DTYPE = torch.{dtype}",
            f"GIVEN = {given or [0]}  # which of the returned tensors are differentiated",
            *(
                [f"HANDED_OVER = {handed_over}  # whether the gradients come from what follows on the model"]
                if gradients
                else []
            ),
            "",
            "",
            "class Model(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            *(f"        {line}" for line in init),
            "        self.to(DTYPE)",
            "",
            f"    def forward(self, {', '.join(names)}):",
            *(textwrap.indent(line, "        ") for line in body),
            "",
            "",
            "def make_inputs():",
            *(f"    {line}" for line in inputs),
            f"    return {{{', '.join(f'{name!r}: {name}' for name in names)}}}",
            "",
            "",
            "def make_gradients():",
            "    return [",
            *(f"        {line}" for line in gradients or ()),
            "    ]",
            "",
        ]
    )


class Writer:
    """Writes a description as Python, running each line as it goes."""

    def __init__(self, dtype: str, shrink: int = 1) -> None:
        self.namespace: dict[str, Any] = {}
        exec(compile(PREAMBLE, "<random model>", "exec"), self.namespace)
        self.namespace |= {"DTYPE": getattr(torch, dtype), "self": nn.Module()}
        self.dtype = dtype
        self.shrink = shrink
        self.values: dict[Ref, str] = {}
        self.modules: list[tuple[str, str, tuple[int, ...]]] = []
        self.inputs: list[str] = []
        self.init: list[str] = []
        self.forward: list[str] = []

    def value(self, ref: Ref) -> Value:
        return Value(self.values[ref], self.namespace[self.values[ref]])

    def add(self, index: int, op: Op) -> None:
        """Append one op. Raises Unfit."""
        pick = Pick(op.seed)
        pick.modules = self.modules
        pick.shrink = self.shrink
        if op.kind in INPUTS:
            self._add_input(index, INPUTS[op.kind](pick).forward)
            return
        if any(ref not in self.values for ref in op.inputs):
            raise Unfit("an input is missing")
        arguments = [self.value(ref) for ref in op.inputs]
        if op.kind in SHARED_INPUTS:
            text = SHARED_INPUTS[op.kind](pick, arguments[0]).forward
            self._add_input(index, re.sub(r"(?<![\w.])x\b", arguments[0].name, text))
            return
        code = RULES[op.kind](pick, *arguments)
        if code is None:
            raise Unfit(f"{op.kind} does not fit")
        names = {"m": f"self.m{index}", "s": f"self.s{index}", "y": f"v{index}", "y0": f"v{index}_0", "y1": f"v{index}_1"}
        names |= {letter: value.name for letter, value in zip("xz", arguments, strict=False)}
        line = re.sub(r"(?<![\w.])(x|z|y|y0|y1|m|s)\b(?!=)", lambda match: names.get(match[0], match[0]), code.forward)
        init = []
        if code.module:
            init.append(f"self.m{index} = {code.module}")
            self.modules.append((f"m{index}", code.module, arguments[0].shape))
        if code.buffer:
            init.append(f"self.register_buffer('s{index}', {code.buffer})")
        for text in init:
            self._run(text)
        self.namespace["self"].to(self.namespace["DTYPE"])
        self._run(line)
        outputs = [names["y"]] if code.outputs == 1 else [names[f"y{i}"] for i in range(code.outputs)]
        if not all(isinstance(self.namespace[name], Tensor) for name in outputs):
            raise Unfit("a module gives more than one tensor")
        self.init += init
        self.forward.append(line)
        for i, name in enumerate(outputs):
            if self.namespace[name].numel() > 4096 or self.namespace[name].numel() == 0:
                raise Unfit("too big, or empty")
            self.values[index, i] = name

    def _add_input(self, index: int, text: str) -> None:
        self._run(f"v{index} = {text}")
        if self.namespace[f"v{index}"].numel() == 0:
            raise Unfit("empty")
        self.inputs.append(f"v{index} = {text}")
        self.values[index, 0] = f"v{index}"

    def _run(self, text: str) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(text, self.namespace)
        except Exception as error:  # whatever plain PyTorch says: then it is no model
            raise Unfit(f"{text}: {error}") from None

    def finish(self, ending: int) -> str:
        """The whole text, with the values that are returned and differentiated."""
        pick = random.Random(ending)
        used = set(
            re.findall(r"\bv\d+(?:_\d)?\b", "\n".join(re.sub(r"^\s*v[\d_]+(, v[\d_]+)? =", "", line) for line in self.forward))
        )
        tensors = {name: self.namespace[name] for name in dict.fromkeys(self.values.values())}
        given_values = {text.split(" = ")[0] for text in self.inputs}
        # A view of an input is made outside of what is compiled, and then the terms of the input's gradient are summed in
        # another order where there are three or more.
        own = {tensors[name].untyped_storage().data_ptr() for name in given_values if name in tensors}
        trainable = [
            name
            for name, tensor in tensors.items()
            if tensor.requires_grad and tensor.is_floating_point() and tensor.untyped_storage().data_ptr() not in own
        ]
        ends = [name for name in trainable if name not in used] or trainable[-1:]
        if not ends:
            raise Unfit("nothing to train")
        extra = pick.sample(list(tensors), min(len(tensors), pick.choice((0, 0, 1, 2))))
        if pick.random() < 0.65:
            terms = [
                pick.choice(["{}.tanh().mean()", "{}.float().square().mean()", "{}.sin().sum() * 0.1"]).format(n) for n in ends
            ]
            lines = [f"loss = {' + '.join(terms)}"]
            result = pick.choice(["loss", "(loss, {})", '{{"loss": loss, "more": ({})}}', "(loss, [{}])"]).format(
                "".join(f"{name}, " for name in extra) or "None"
            )
            given, gradients, handed_over = [0], [], False
        else:
            lines = []
            names = ends + [name for name in extra if name not in ends or pick.random() < 0.3]
            result = pick.choice(["({})", "[{}]", '{{"a": ({})}}']).format("".join(f"{name}, " for name in names))
            wanted = [i for i, name in enumerate(names) if name in trainable]
            given = wanted if pick.random() < 0.6 else sorted(pick.sample(wanted, pick.randint(1, len(wanted))))
            shapes = [(tuple(tensors[names[i]].shape), tensors[names[i]].dtype) for i in given]
            gradients = [f"torch.linspace(-1, 1, {math.prod(shape)}, dtype={dtype}).view({shape})," for shape, dtype in shapes]
            # What is returned twice gets two gradients, whose sum is no business of the plan.
            handed_over = pick.random() < 0.7 and len({names[i] for i in given}) == len(given)
        body = [*self.forward, *lines, f"return {result}"]
        return source(self.init, body, self.inputs, self.dtype, given, gradients, handed_over)


def write(description: Description) -> str:
    """The description as Python source. Raises Unfit."""
    writer = Writer(description.dtype, description.shrink)
    torch.manual_seed(0)
    for index, op in enumerate(description.ops):
        writer.add(index, op)
    return writer.finish(description.ending)


def describe(seed: int) -> Description:
    """The description of a seed; always a model that plain PyTorch can write and run, though maybe not train."""
    choices = random.Random(seed)
    for _ in range(50):
        try:
            description = _describe(choices)
            write(description)
            return description
        except Unfit:
            continue
    raise AssertionError(f"no model in 50 attempts from seed {seed}")


def _describe(choices: random.Random) -> Description:
    writer = Writer(choices.choice(DTYPES))
    torch.manual_seed(0)
    kinds = list(RULES)
    weights = [WEIGHTS[kind] for kind in kinds]
    ops: list[Op] = []

    def extend(op: Op) -> bool:
        before = (dict(writer.values), dict(writer.namespace), len(writer.modules), len(writer.init), len(writer.forward))
        try:
            writer.add(len(ops), op)
        except Unfit:
            writer.values, writer.namespace = before[:2]
            del writer.modules[before[2] :], writer.init[before[3] :], writer.forward[before[4] :]
            return False
        ops.append(op)
        return True

    for kind in ["float_input"] + [choices.choice(list(INPUTS)) for _ in range(choices.randrange(3))]:
        extend(Op(kind, (), choices.getrandbits(32)))
    if choices.random() < 0.15:
        extend(Op("same_input", (choices.choice(list(writer.values)),), choices.getrandbits(32)))
    length = choices.randint(3, 24)
    for _ in range(20 * length):
        if len(ops) >= length:
            break
        (kind,) = choices.choices(kinds, weights)
        refs = list(writer.values)
        # Late values rather than early ones, and those that gradients reach rather than others.
        likely = [(0.9 ** (len(refs) - i)) * (4 if writer.value(ref).tensor.requires_grad else 1) for i, ref in enumerate(refs)]
        inputs = tuple(choices.choices(refs, likely, k=arity(kind)))
        extend(Op(kind, inputs, choices.getrandbits(32)))
    return Description(tuple(ops), writer.dtype, choices.getrandbits(32))


# Training


@dataclass
class Training:
    """What happened, step by step, in one flat list of named results per step."""

    steps: list[dict[str, Any]]
    peaks: list[int]
    plans: list[Any]
    # Whether the gradients are those that the plan counts on, of all outputs that have one, and held by nobody else.
    as_planned: bool = False
    buffer_bytes: int = 0

    @property
    def plan(self) -> Any:
        return self.plans[-1]


def _load(text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(text, "<random model>", "exec"), namespace)
    return namespace


class Onward(torch.autograd.Function):
    """What follows on the model: its backward pass makes the gradients of the model's outputs and hands them over.

    It takes no memory but for those gradients. Scalar ones it keeps, as the caller of a loss's backward pass does.
    """

    @staticmethod
    def forward(ctx: Any, end: Tensor, gradients: list[Tensor], *outputs: Tensor) -> Tensor:
        ctx.gradients = gradients
        return end

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> Any:  # type: ignore[override]
        made = [gradient.clone() for gradient in ctx.gradients]
        ctx.kept = [gradient for gradient in made if gradient.dim() == 0]
        return None, None, *made


def _state(tensor: Tensor) -> tuple[Any, ...]:
    """What can be seen of a tensor. The stride of a dimension of size 1 means nothing."""
    strides = tuple(stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1)
    return tensor.dtype, tuple(tensor.shape), strides, tensor.requires_grad, tensor.detach().clone()


def train(text: str, wrap: Callable[[nn.Module, dict[str, Any]], nn.Module] | None = None) -> Training:
    """Three steps of plain SGD on the model in ``text``, wrapped or as it is."""
    namespace = _load(text)
    torch.manual_seed(0)
    model = namespace["Model"]().train()
    first_inputs = namespace["make_inputs"]()
    torch.manual_seed(1)
    if wrap is not None:
        model = wrap(model, first_inputs)
    training = Training([], [], [])
    for step in range(STEPS):
        random.seed(step)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(10 + step)
            inputs = namespace["make_inputs"]()
        outputs: list[Tensor] = []
        gradients = namespace["make_gradients"]()
        end, one = torch.zeros(()), torch.ones(())  # made before the measurement begins

        def run(
            inputs: Any = inputs, outputs: Any = outputs, gradients: Any = gradients, end: Any = end, one: Any = one
        ) -> Any:
            result = model(**inputs)
            outputs += [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
            differentiated = [outputs[i] for i in namespace["GIVEN"]]
            if namespace.get("HANDED_OVER"):
                end = Onward.apply(end, gradients, *differentiated)
                end.backward(one)
            else:
                torch.autograd.backward(differentiated, gradients or None)
            return result, end

        peak = measure_peak(run, exclude_grads_of=model)
        differentiable = [i for i, tensor in enumerate(outputs) if tensor.requires_grad]
        training.as_planned = namespace["GIVEN"] == differentiable and (not gradients or namespace.get("HANDED_OVER", False))
        # The gradient of an input that is a view is added to that of its base: nobody holds it, as the plan counts.
        training.as_planned &= all(value.is_leaf for value in inputs.values())
        training.peaks.append(peak.activation_bytes)
        results: dict[str, Any] = {f"output {i}": _state(tensor) for i, tensor in enumerate(outputs)}
        results |= {f"gradient of {n}": p.grad if p.grad is None else _state(p.grad) for n, p in model.named_parameters()}
        results |= {f"parameter {name}": _state(p) for name, p in model.named_parameters()}
        results |= {f"buffer {name}": _state(buffer) for name, buffer in model.named_buffers()}
        for name, value in inputs.items():
            results[f"input {name}"] = _state(value)
            results[f"gradient of {name}"] = None if not value.is_leaf or value.grad is None else _state(value.grad)
        results["random stream"] = torch.get_rng_state()
        results["random stream of Python"] = torch.tensor(random.getstate()[1])
        training.steps.append(results)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter -= 0.05 * parameter.grad
                parameter.grad = None
    if wrap is not None:
        training.plans = model.plans
        training.buffer_bytes = sum(buffer.nbytes for buffer in model.buffers())
    return training


# Comparing


def check(description: Description, budgets: tuple[str, ...] = BUDGETS) -> str:
    """Train the model plainly and under each budget. Returns its text.

    Raises:
        Unfit: it is no model.
        Failure: the trainings differ, or a peak is over its budget or not as predicted.
    """
    text = write(description)
    check_text(text, budgets)
    return text


def check_text(text: str, budgets: tuple[str, ...] = BUDGETS) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plain = train(text)
        except Exception as error:  # such as a value that backward needs and that was written over
            raise Unfit(f"plain PyTorch: {error}") from None
        if not _trains_through_all_outputs(text):
            raise Unfit("plain PyTorch: some outputs can't be differentiated, and a captured model is traced with all of them")
        stored = _train_within(text, "100%", "100%")
        if not stored.plans:  # nothing to train: the plain model ran
            _compare(plain, stored, "100%", text)
            return
        low = max(plan.min_budget_bytes for plan in stored.plans)
        high = max(plan.store_all_peak_bytes for plan in stored.plans)
        # Half of the peak, or halfway to the minimum for models so small that one op takes most of the peak.
        amounts = {"minimum": low, "50%": high // 2 if high // 2 >= low else (low + high) // 2}
        for budget in budgets:
            ours = stored if budget == "100%" else _train_within(text, budget, amounts[budget])
            _compare(plain, ours, budget, text)
        if not isinstance(stored.plan, PiecesPlan) and stored.plan.recomputed:
            raise Failure("recomputed", "100%", f"recomputes {stored.plan.recomputed}")


def _trains_through_all_outputs(text: str) -> bool:
    namespace = _load(text)
    outputs = [
        leaf for leaf in tree_leaves(namespace["Model"]().train()(**namespace["make_inputs"]())) if isinstance(leaf, Tensor)
    ]
    differentiated = [tensor for tensor in outputs if tensor.requires_grad]
    try:
        torch.autograd.backward(differentiated, [torch.ones_like(tensor) for tensor in differentiated])
    except RuntimeError:
        return False
    return True


def _train_within(text: str, budget: str, amount: Any) -> Training:
    torch._dynamo.reset()
    try:
        return train(text, lambda model, inputs: rockmate.Rockmate(model, amount, sample_inputs=inputs))
    except Exception as error:
        first = str(error).strip().splitlines()[:6]
        raise Failure(type(error).__name__, budget, f"{type(error).__name__}: " + "\n".join(first)) from error


def _first_difference(plain: Training, other: Training) -> tuple[str, str] | None:
    """Its kind and what it is; ``None`` where all results are equal."""
    for step, (expected, got) in enumerate(zip(plain.steps, other.steps, strict=True)):
        if expected.keys() != got.keys():
            return "results", f"step {step}: {sorted(expected.keys() ^ got.keys())} on one side only"
        for name in expected:
            if difference := _difference(expected[name], got[name], name):
                return name.split()[0], f"step {step}: {name}: {difference}"
    return None


def _compare(plain: Training, ours: Training, budget: str, text: str) -> None:
    if found := _first_difference(plain, ours):
        if any(_first_difference(plain, train(text)) for _ in range(3)):
            raise Unfit("plain PyTorch: the results are not the same twice")
        kind, what = found
        raise Failure(kind, budget, what)
    if not ours.plans:  # nothing to train: the plain model ran
        return
    # From the second step on: in the first, PyTorch keeps a few bytes when an op runs for the first time, and the plan is not
    # yet for the gradients that come.
    plan, peak = ours.plan, max(ours.peaks[1:])
    if isinstance(plan, PiecesPlan):
        return
    if ours.as_planned and not any("_gradients" in op.target for op in plan.graph.ops):
        # New contents of buffers are counted to the end of the step in some models, and are gone before.
        if not plan.peak_bytes - ours.buffer_bytes <= peak <= plan.peak_bytes:
            raise Failure("peak", budget, f"the peaks are {ours.peaks} bytes, {plan.peak_bytes} were predicted")
        return
    allowed = plan.peak_bytes + _states_for_other_gradients(plan)
    if peak > allowed:
        raise Failure(
            "peak", budget, f"the peaks are {ours.peaks} bytes, over the predicted {plan.peak_bytes} (allowed: {allowed})"
        )


def _states_for_other_gradients(plan: Any) -> int:
    """Generator states that the step keeps for gradients which it was not planned for: of each random op at the most one.

    They are not in the plan. A model that returns its loss alone has none.
    """
    graph = plan.graph
    returned = sum(value.retention == "step_end" and value.kind == "activation" for value in graph.values)
    return CPU_RNG_STATE_BYTES * sum(op.is_random for op in graph.ops) if returned > 1 else 0


def _difference(expected: Any, got: Any, name: str) -> str:
    if expected is None or got is None:
        return "" if expected is got else f"{expected} became {got}"
    if isinstance(expected, Tensor):
        return "" if torch.equal(expected, got) else "differs"
    for what, a, b in zip(("dtype", "shape", "stride", "requires_grad"), expected, got, strict=False):
        if a != b and not (what == "stride" and name.startswith("gradient")):
            return f"{what} {a} became {b}"
    a, b = expected[-1], got[-1]
    if torch.equal(a.nan_to_num(7.0) if a.is_floating_point() else a, b.nan_to_num(7.0) if b.is_floating_point() else b):
        return ""
    return f"values differ by up to {(a.double() - b.double()).abs().max().item():.3g}"


# Shrinking


def shrink(
    description: Description, kind: str, budgets: tuple[str, ...] = BUDGETS, attempts: int = 300
) -> tuple[Description, str]:
    """A smaller description that fails in the same way, and the text of its failure."""

    def failure_of(candidate: Description) -> str | None:
        try:
            check(candidate, budgets)
        except Unfit:
            return None
        except Failure as failure:
            return str(failure) if failure.kind == kind else None
        return None

    found = failure_of(description)
    if found is None:
        raise AssertionError(f"the model does not fail with {kind!r} when tried again")
    progress = True
    while progress and attempts > 0:
        progress = False
        for candidate in _smaller(description):
            attempts -= 1
            if attempts <= 0:
                break
            if (message := failure_of(candidate)) is not None:
                description, found, progress = candidate, message, True
                break
    return description, found


def _smaller(description: Description) -> Iterator[Description]:
    """Candidates, the boldest first: fewer ops, an op passed over, smaller sizes, a plainer type, another ending."""
    count = len(description.ops)
    size = count // 2
    while size >= 1:
        for start in range(count - size, -1, -size):
            yield _without(description, set(range(start, start + size)))
        size //= 2
    for index in range(count - 1, -1, -1):
        for ref in dict.fromkeys(description.ops[index].inputs):
            yield _without(description, {index}, ref)
    if description.shrink < 4:
        yield replace(description, shrink=2 * description.shrink)
    if description.dtype != "float32":
        yield replace(description, dtype="float32")
    yield from (replace(description, ending=ending) for ending in range(min(4, description.ending)))


def _without(description: Description, gone: set[int], instead: Ref | None = None) -> Description:
    """Leave ops out. What used them uses ``instead``, or goes with them."""
    gone = set(gone)
    if instead is None:
        for index, op in enumerate(description.ops):
            if any(ref[0] in gone for ref in op.inputs):
                gone.add(index)
    number = {old: new for new, old in enumerate(i for i in range(len(description.ops)) if i not in gone)}

    def renumbered(ref: Ref) -> Ref:
        if ref[0] in gone:
            assert instead is not None
            ref = instead
        return number[ref[0]], ref[1]

    ops = [replace(op, inputs=tuple(map(renumbered, op.inputs))) for i, op in enumerate(description.ops) if i not in gone]
    return replace(description, ops=tuple(ops))


def check_seed(seed: int, budgets: tuple[str, ...] = BUDGETS, shrink_failures: bool = True) -> None:
    """Raises AssertionError with the smallest failing model found."""
    description = describe(seed)
    try:
        check(description, budgets)
    except Unfit:
        return
    except Failure as failure:
        message, text = str(failure), write(description)
        if shrink_failures:
            description, message = shrink(description, failure.kind, (failure.budget,))
            text = write(description)
        again = f"python tests/python/random_models.py {seed}"
        raise AssertionError(f"seed {seed}: {message}\n\n{text}\nTry it again with: {again}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description="Try the random models of some seeds, and shrink those that fail.")
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("last", type=int, nargs="?", help="the last seed; the first alone by default")
    parser.add_argument("--no-shrink", action="store_true", help="show failing models as they are")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    for seed in range(arguments.first, (arguments.last or arguments.first) + 1):
        try:
            check_seed(seed, shrink_failures=not arguments.no_shrink)
        except AssertionError as error:
            failed += 1
            print(error, flush=True)
    print(f"{failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
