"""The drop-in module."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import logging
import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from rockmate.backend import CaptureOnly, capture_only
from rockmate.compiled import NOT_IN_ONE_PIECE, CompiledStep
from rockmate.errors import CaptureError, RockmateError
from rockmate.options import Budget, Options
from rockmate.plan import PiecesPlan, Plan
from rockmate.planning import check_budget

log = logging.getLogger("rockmate")


class _State:
    """What the wrapper knows beyond the model: options, plans, and one compiled step per kind of input."""

    def __init__(self, model: nn.Module, options: Options) -> None:
        self.model = model
        self.options = options
        self.plans: list[Plan | PiecesPlan] = []
        self.steps: dict[Any, CompiledStep] = {}
        self.in_pieces: CaptureError | None = None  # why the sample inputs could not be planned
        self.lock = threading.RLock()


class Rockmate(nn.Module):
    """``model``, trained inside an activation budget. A drop-in: same class, attributes, parameters and ``state_dict``.

    The wrapper shares all state with ``model`` (either may be used to read or change parameters, modes, hooks), and is an
    instance of the model's class. Steps are captured and planned at the first call with each size of inputs, or at once for
    ``sample_inputs``; making a plan runs nothing of the model and draws no random number.

    Args:
        model: the model to train. It is not changed.
        budget: the activation budget: bytes (``int``), text (``"4GiB"``, ``"50%"``) or a share of the peak without
            recomputation (``0.5``).
        sample_inputs: positional inputs (a tuple) or keyword inputs (a dict) to capture and plan with at once.
        **options: fields of :class:`rockmate.options.Options`.

    Raises:
        BudgetError: when the budget is nonsense, or (as soon as the step is captured, before it runs) when no schedule
            of this model meets it; the error names the least budget that can be met.
        CaptureError: when the model does something that can't be planned.

    A model that Dynamo can't capture whole runs in pieces that share the budget (see :mod:`rockmate.pieces`). Which pieces come
    is known when they have run: they are planned in the first step, which ``sample_inputs`` can't stand for, and a budget that
    they can't keep is refused when the first forward pass has run.

    Example:
        >>> model = rockmate.Rockmate(model, budget="50%")
        >>> loss = model(input_ids=ids, labels=ids).loss
        >>> loss.backward()
        >>> print(model.plan)
    """

    def __new__(cls, model: nn.Module, *args: Any, **kwargs: Any) -> Rockmate:
        if not isinstance(model, nn.Module):
            raise TypeError(f"[rockmate] model is a {type(model).__name__}; give a torch.nn.Module")
        if isinstance(model, Rockmate):
            raise RockmateError("[rockmate] this model is wrapped already; wrap the original again for another budget")
        if "forward" in vars(model):
            raise RockmateError(
                "[rockmate] this model's forward was replaced on the instance; put it in a class, so that it can be captured"
            )
        return object.__new__(_wrapper_class(type(model)))  # type: ignore[arg-type]

    def __init__(
        self,
        model: nn.Module,
        budget: Budget = "100%",
        *,
        sample_inputs: Sequence[Any] | dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        check_budget(budget)
        options.setdefault("name", type(model).__name__)
        state = _State(model, Options.from_mapping({**options, "budget": budget}))
        object.__setattr__(self, "__dict__", vars(model))  # one set of state for both
        _set_state(self, state)
        if sample_inputs is not None:
            args, kwargs = ((), sample_inputs) if isinstance(sample_inputs, dict) else (tuple(sample_inputs), {})
            _capture(state, args, kwargs)

    @property
    def plan(self) -> Plan | PiecesPlan | None:
        """The latest plan, or ``None`` before the first step is captured (of a model in pieces: before it has run)."""
        plans = _state_of(self).plans
        return plans[-1] if plans else None

    @property
    def plans(self) -> list[Plan | PiecesPlan]:
        """All plans so far: one for each input size, and for a model in pieces, one for each new way through it."""
        return list(_state_of(self).plans)

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = _state_of(self)
        kept = {k: v for k, v in vars(state.options).items() if not callable(v)}
        return _rebuild, (state.model, kept)

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        state = _state_of(self)
        if not torch.is_grad_enabled():
            return type(state.model).forward(state.model, *args, **kwargs)
        return _step_for(state, args, kwargs)(*args, **kwargs)


def _rebuild(model: nn.Module, options: dict[str, Any]) -> Rockmate:
    return Rockmate(model, **options)


@functools.cache
def _wrapper_class(model_class: type[nn.Module]) -> type[Rockmate]:
    """A subclass of Rockmate and of the model's class. Its own state has a slot, since ``__dict__`` is the model's."""

    @functools.wraps(model_class.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return Rockmate._forward(self, *args, **kwargs)

    return type(
        f"Rockmate[{model_class.__name__}]",
        (Rockmate, model_class),
        {"__slots__": ("_rockmate_state",), "__module__": __name__, "forward": forward, "__doc__": model_class.__doc__},
    )


def _set_state(wrapper: Rockmate, state: _State) -> None:
    object.__setattr__(wrapper, "_rockmate_state", state)


def _state_of(wrapper: Rockmate) -> _State:
    return object.__getattribute__(wrapper, "_rockmate_state")  # type: ignore[no-any-return]


def _input_kind(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Steps that differ in this are compiled apart, so that no number of input sizes runs into Dynamo's recompile limit."""
    leaves = tree_leaves((args, kwargs))
    return model.training, tuple(tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else type(leaf) for leaf in leaves)


def _step_for(state: _State, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledStep:
    kind = _input_kind(state.model, args, kwargs)
    step = state.steps.get(kind)
    if step is None:
        with state.lock:
            step = state.steps.get(kind)
            if step is None:
                _check_arguments(state.model, args, kwargs)
                step = state.steps[kind] = _compiled_step(state)
    return step


def _check_arguments(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise :class:`TypeError` for arguments that ``forward`` does not take, as the plain model would."""
    try:
        inspect.signature(type(model).forward).bind(model, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"[rockmate] {type(model).__name__}.forward does not take these inputs: {error}") from None


def _compiled_step(state: _State) -> CompiledStep:
    options = state.options

    def on_plan(plan: Plan | PiecesPlan) -> None:
        state.plans.append(plan)
        if options.on_plan is not None:
            options.on_plan(plan)

    return CompiledStep(state.model, dataclasses.replace(options, on_plan=on_plan))


def _capture(state: _State, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        with torch.enable_grad(), capture_only(), contextlib.suppress(CaptureOnly):
            _step_for(state, args, kwargs)(*args, **kwargs)
    except CaptureError as error:
        if not isinstance(error.__cause__, NOT_IN_ONE_PIECE):
            raise
        state.in_pieces = error
        log.warning("%s", error)
