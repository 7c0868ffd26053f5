"""Whether a model fits, and at what price, before anything of it is trained."""

from __future__ import annotations

import copy
import html
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from rockmate.curve_chart import curve_chart
from rockmate.errors import BudgetError, RockmateError
from rockmate.module import Rockmate
from rockmate.options import Budget
from rockmate.plan import CurvePoint, Plan, format_bytes
from rockmate.planning import resolve_budget

SHARES = tuple(share / 100 for share in range(100, 0, -10))

# Values that an optimizer keeps for each trained parameter, each as large as the parameter.
OPTIMIZER_STATES = {"sgd": 0, "momentum": 1, "rmsprop": 1, "adagrad": 1, "lion": 1, "adam": 2, "adamw": 2}


@dataclass(frozen=True)
class Fit:
    """Whether a training step fits a memory, and with which plan. True where it does. All sizes in bytes.

    Attributes:
        memory_bytes: what was asked for.
        parameter_bytes: parameters and buffers.
        gradient_bytes: gradients of the parameters.
        optimizer_bytes: the optimizer's state.
        activation_bytes: what is left for activations: the budget to train with. Below 0 when the rest alone is too much.
        min_budget_bytes: the least activation budget that can be met.
        point: the fastest plan within it; ``None`` when no plan is.
    """

    memory_bytes: int
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activation_bytes: int
    min_budget_bytes: int
    point: CurvePoint | None

    def __bool__(self) -> bool:
        return self.point is not None

    @property
    def missing_bytes(self) -> int:
        """How much more memory the plan of the least peak needs; 0 when it fits."""
        return max(self.min_budget_bytes - self.activation_bytes, 0)

    def __str__(self) -> str:
        beside = (
            f"parameters and buffers {format_bytes(self.parameter_bytes)}, gradients {format_bytes(self.gradient_bytes)}, "
            f"optimizer {format_bytes(self.optimizer_bytes)}"
        )
        if self.point is None:
            return (
                f"does not fit {format_bytes(self.memory_bytes)}: {format_bytes(self.missing_bytes)} are missing ({beside}, "
                f"activations {format_bytes(self.min_budget_bytes)} at the least)"
            )
        return (
            f"fits {format_bytes(self.memory_bytes)} with {self.point.overhead:.1%} overhead: {beside}, activations "
            f"{format_bytes(self.point.peak_bytes)} of {format_bytes(self.activation_bytes)} that are left; "
            f"train with budget={self.activation_bytes}"
        )


@dataclass(frozen=True)
class Estimate:
    """What one training step of a model will hold, for every budget. All sizes in bytes, times in microseconds.

    Attributes:
        store_all_peak_bytes: the activation peak without recomputation, the 100 % of budgets given as shares.
        min_budget_bytes: the least activation budget that can be met.
        curve: all plans that are worth having, from the least peak to the fastest.
        store_all_time_us: predicted time of a step without recomputation.
        parameter_bytes: parameters and buffers, tied ones counted once. They are held beside the activations.
        gradient_bytes: gradients of the parameters, held beside the activations when the step ends.
        cost: where the times come from: ``"measured"`` or the name of a device.
        name: the name of the model.
        plan: the plan without recomputation, with graph, note and the seconds that each stage took.
    """

    store_all_peak_bytes: int
    min_budget_bytes: int
    curve: list[CurvePoint]
    store_all_time_us: float
    parameter_bytes: int
    gradient_bytes: int
    cost: str
    name: str
    plan: Plan

    def at(self, budget: Budget) -> CurvePoint | None:
        """The fastest plan whose peak is within the activation budget; ``None`` when no plan is.

        Raises:
            BudgetError: for what is no budget.
        """
        budget_bytes = resolve_budget(budget, self.store_all_peak_bytes)
        within = [point for point in self.curve if point.peak_bytes <= budget_bytes]
        return min(within, key=lambda point: point.overhead) if within else None

    def fits(self, memory: int | str, *, optimizer: str | int = "adamw") -> Fit:
        """Whether a training step fits, counting everything together: a device of 16 GiB, say.

        Parameters, buffers, all gradients and the optimizer's state are taken to be there at the activations' peak, so the
        answer is on the safe side. What the device needs beyond tensors (a CUDA context, fragmentation) is not counted: ask
        for somewhat less than it has.

        Args:
            memory: bytes, or text such as ``"16GiB"``.
            optimizer: ``"sgd"``, ``"momentum"``, ``"rmsprop"``, ``"adagrad"``, ``"lion"``, ``"adam"`` or ``"adamw"``, with
                states in the type of the parameters; or the bytes of its state.

        Raises:
            BudgetError: when ``memory`` is no amount of memory.
            ValueError: for an unknown optimizer.

        Example:
            >>> answer = estimate.fits("16GiB")
            >>> model = rockmate.Rockmate(model, budget=answer.activation_bytes) if answer else None
        """
        if not isinstance(memory, (int, str)) or isinstance(memory, bool) or (isinstance(memory, str) and "%" in memory):
            raise BudgetError(f"[estimate] {memory!r} is no memory; give bytes (int) or text such as '16GiB'")
        memory_bytes = resolve_budget(memory, 1 << 62)
        if isinstance(optimizer, str):
            if optimizer not in OPTIMIZER_STATES:
                known = ", ".join(OPTIMIZER_STATES)
                raise ValueError(f"[estimate] unknown optimizer {optimizer!r}; choose one of {known}, or give its bytes")
            optimizer_bytes = OPTIMIZER_STATES[optimizer] * self.gradient_bytes
        elif isinstance(optimizer, bool) or optimizer < 0:
            raise ValueError(f"[estimate] {optimizer!r} is no size of an optimizer's state; give 0 or more bytes")
        else:
            optimizer_bytes = optimizer
        left = memory_bytes - self.parameter_bytes - self.gradient_bytes - optimizer_bytes
        return Fit(
            memory_bytes=memory_bytes,
            parameter_bytes=self.parameter_bytes,
            gradient_bytes=self.gradient_bytes,
            optimizer_bytes=optimizer_bytes,
            activation_bytes=left,
            min_budget_bytes=self.min_budget_bytes,
            point=self.at(left) if left >= self.min_budget_bytes else None,
        )

    @property
    def least_total_bytes(self) -> int:
        """Parameters, buffers, gradients and the least activation budget together, without the optimizer's state."""
        return self.parameter_bytes + self.gradient_bytes + self.min_budget_bytes

    def rows(self) -> list[tuple[str, int, CurvePoint | None]]:
        """(budget as text, budget in bytes, plan) at 100 %, 90 %, ... 10 %, then at the least budget."""
        rows = [(f"{share:.0%}", int(share * self.store_all_peak_bytes), self.at(share)) for share in SHARES]
        return [*rows, ("least", self.min_budget_bytes, self.at(self.min_budget_bytes))]

    def _headline(self) -> str:
        times = "measured op times" if self.cost == "measured" else f"op times of the roofline model for {self.cost}"
        return (
            f"{self.name}: activation peak {format_bytes(self.store_all_peak_bytes)} without recomputation, "
            f"{format_bytes(self.min_budget_bytes)} at the least; parameters and buffers "
            f"{format_bytes(self.parameter_bytes)}, their gradients {format_bytes(self.gradient_bytes)}; {times}"
        )

    def _cells(self) -> list[tuple[str, str, str, str, str]]:
        beside = self.parameter_bytes + self.gradient_bytes
        cells = []
        for label, budget_bytes, point in self.rows():
            peak = format_bytes(point.peak_bytes) if point else "can't be met"
            overhead = f"{point.overhead:.1%}" if point else ""
            total = format_bytes(point.peak_bytes + beside) if point else ""
            cells.append((label, format_bytes(budget_bytes), peak, overhead, total))
        return cells

    def __str__(self) -> str:
        table = [_HEADINGS, *self._cells()]
        widths = [max(len(row[column]) for row in table) for column in range(len(_HEADINGS))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        return "\n".join([self._headline(), *lines])

    def _repr_html_(self) -> str:
        cell = 'style="text-align:right;padding:2px 10px;font-variant-numeric:tabular-nums"'
        head = "".join(f"<th {cell}>{heading}</th>" for heading in _HEADINGS)
        rows = ("".join(f"<td {cell}>{html.escape(text)}</td>" for text in row) for row in self._cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f"<p>{html.escape(self._headline())}</p>{curve_chart(self.curve, self.store_all_peak_bytes)}"
            f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )


_HEADINGS = ("budget", "bytes", "peak", "overhead", "plus parameters and gradients")


def estimate(
    model: nn.Module,
    sample_inputs: Sequence[Any] | Mapping[str, Any],
    *,
    cost: str = "measured",
    levels: int = 10,
    device: torch.device | str = "cpu",
    **options: Any,
) -> Estimate:
    """Capture a training step and plan it for every budget, without running the model.

    The model may hold no memory at all: built under PyTorch's ``FakeTensorMode``, or on the ``meta`` device. ``cost`` as the
    name of a device then plans for a machine that is not here; ``"measured"`` runs each distinct op alone, on made-up inputs.

    Args:
        model: the model, in the mode (``train()`` or ``eval()``) that it will be trained in. It is not changed.
        sample_inputs: positional inputs (a sequence) or keyword inputs (a mapping) of the sizes to train with.
        cost: ``"measured"``, or ``"cpu"``, ``"v100"``, ``"a100"``, ``"h100"``, ``"h200"``, or a device description's path.
        levels: save and peak levels that each block is solved for, 2 to 30.
        device: where tensors that are on the ``meta`` device are taken to be. It decides which kernels PyTorch chooses.
        **options: other fields of :class:`rockmate.options.Options`.

    Raises:
        CaptureError: when the model can't be captured in one piece, or does something that can't be planned.
        RockmateError: when nothing in the model is trained.
        ValueError: for unknown options, or tensors of several fake modes.

    Example:
        >>> with FakeTensorMode():
        ...     model = GPT2LMHeadModel(config)
        ...     ids = torch.zeros(4, 512, dtype=torch.long)
        >>> print(rockmate.estimate(model, {"input_ids": ids, "labels": ids}, cost="v100"))
    """
    inputs: Any = dict(sample_inputs) if isinstance(sample_inputs, Mapping) else tuple(sample_inputs)
    model = getattr(model, "_rockmate_state").model if isinstance(model, Rockmate) else model  # noqa: B009
    mode = _fake_mode(model, inputs)
    if mode is not None:
        model, inputs = _all_fake(model, inputs, mode, torch.device(device))
    options.pop("budget", None)
    options.setdefault("name", type(model).__name__)
    with ExitStack() as stack:
        if mode is not None:
            stack.callback(setattr, mode, "allow_non_fake_inputs", mode.allow_non_fake_inputs)
            mode.allow_non_fake_inputs = True
            stack.enter_context(mode)
        wrapper = Rockmate(model, "100%", sample_inputs=inputs, cost=cost, levels=levels, **options)
    plan = wrapper.plan
    if (in_pieces := getattr(wrapper, "_rockmate_state").in_pieces) is not None:  # noqa: B009
        raise in_pieces
    if not isinstance(plan, Plan):
        raise RockmateError("[estimate] nothing is trained: no parameter or input of the model requires a gradient")
    return Estimate(
        store_all_peak_bytes=plan.store_all_peak_bytes,
        min_budget_bytes=plan.min_budget_bytes,
        curve=plan.curve,
        store_all_time_us=plan.time_us / (1 + plan.overhead),
        parameter_bytes=_storage_bytes([*model.parameters(), *model.buffers()]),
        gradient_bytes=sum(value.bytes for value in plan.graph.values if value.kind == "parameter_gradient"),
        cost=cost,
        name=options["name"],
        plan=plan,
    )


def _tensors(model: nn.Module, inputs: Any) -> list[torch.Tensor]:
    leaves = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    return [*model.parameters(), *model.buffers(), *leaves]


def _fake_mode(model: nn.Module, inputs: Any) -> FakeTensorMode | None:
    """The mode that the model's tensors live in; a new one if some are on the ``meta`` device; ``None`` if all are real."""
    tensors = _tensors(model, inputs)
    modes = {id(tensor.fake_mode): tensor.fake_mode for tensor in tensors if isinstance(tensor, FakeTensor)}
    if len(modes) > 1:
        raise ValueError("[estimate] the model and its inputs were made under several FakeTensorModes; make them under one")
    if modes:
        return next(iter(modes.values()))
    return FakeTensorMode() if any(tensor.device.type == "meta" for tensor in tensors) else None


def _all_fake(model: nn.Module, inputs: Any, mode: FakeTensorMode, device: torch.device) -> tuple[nn.Module, Any]:
    """The model with fake tensors for those on the ``meta`` device (as a copy, if there are any), and all-fake inputs."""

    def placed(tensor: torch.Tensor) -> torch.Tensor:
        with mode:
            fake = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device, requires_grad=tensor.requires_grad
            )
        return nn.Parameter(fake, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else fake

    def as_input(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, FakeTensor):
            return leaf
        return placed(leaf) if leaf.device.type == "meta" else mode.from_tensor(leaf)

    on_meta = [
        tensor
        for tensor in [*model.parameters(), *model.buffers()]
        if tensor.device.type == "meta" and not isinstance(tensor, FakeTensor)
    ]
    if on_meta:
        model = copy.deepcopy(model, {id(tensor): placed(tensor) for tensor in on_meta})  # tied tensors stay tied
    return model, tree_map(as_input, inputs)


def _storage_bytes(tensors: Sequence[torch.Tensor]) -> int:
    storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values())
