"""One budget for a model that is captured in pieces.

Dynamo cuts a model where it can't follow: at ``.item()``, at a branch that depends on data, at a call of code that it can't
trace. Each piece is captured and planned by itself, and all of them share the budget (:mod:`rockmate.allocation`). The pieces
that come are known only when the step runs:

* In the first step of a path through the model, every piece saves as little as it can in the forward pass, the inputs and what
  can't be computed twice. When the forward pass is over, all pieces are known, and what is held between them is
  (:mod:`rockmate.between`). If that much memory does not suffice, the step ends here with a :class:`BudgetError`. Else each
  backward pass is chosen for the bytes that are left to it.
* Then the budget is allocated to all calls of all paths seen. Each call runs with its own option once a step has brought
  nothing new; until then all save as little as in the first step, so that what comes has room.

A path that is taken for the first time later (a branch that goes the other way) begins with the options of those that were
seen, and goes on like a first step. It may need more than these left, then a warning tells it. A piece that is called several
times in one step has an option for each call.
"""

from __future__ import annotations

import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from rockmate.allocation import CallNode, allocate, chosen_peak_bytes, min_budget_bytes, store_all_peak_bytes
from rockmate.between import CallRecord, held_between, storages_of
from rockmate.cast_weights import CastWeights, Weights
from rockmate.errors import BudgetError
from rockmate.options import Options
from rockmate.piece_options import PieceOption, PieceOptions
from rockmate.plan import PiecesPlan, format_bytes
from rockmate.planning import plan_of_option, resolve_budget

log = logging.getLogger("rockmate")

Compile = Callable[[Sequence[Any], "PieceVariant"], Callable[..., Any]]


class PieceVariant:
    """A piece compiled for one option, or to save what all late options save."""

    def __init__(self, piece: Piece, option: PieceOption | None) -> None:
        self.piece = piece
        self.option = option
        self.tangents = piece.tangents
        self.run: Callable[..., Any] = _not_compiled
        self.calls: list[_Call] = []  # whose backward pass has not run yet, in order

    def on_options(self, tangents: frozenset[int], options: PieceOptions) -> None:
        if self.piece.tangents is None:
            self.piece.tangents = self.tangents = tangents
        self.piece.options[tangents] = options

    def on_backward(self, arrived: frozenset[int]) -> int | None:
        """A backward pass begins: that of the latest call. Gives the bytes that it may take."""
        if self.piece.tangents != arrived:
            self.piece.tangents = arrived
            self.piece.group.outdated = True
        self.forget_dropped_calls()
        if not self.calls:
            return None  # a second backward pass through a retained graph
        call = self.calls.pop()
        return call.step.begin_backward(call)

    def add(self, call: _Call) -> None:
        if len(self.calls) >= 64:  # forward passes whose backward never came
            self.forget_dropped_calls()
        self.calls.append(call)

    def forget_dropped_calls(self) -> None:
        self.calls = [call for call in self.calls if call.function() is not None]


def _not_compiled(*_: Any) -> Any:
    raise AssertionError("[pieces] called before it was compiled")


class Piece:
    """A Dynamo graph that is a part of a model, at one set of sizes.

    Attributes:
        options: the ways to run it, for each set of gradients that came so far.
        summed_beforehand: gives the numbers of the inputs whose gradients it sums in part before it hands them on.
        cast_weights: those that it casts under autocast.
        tangents: the gradients that are expected, by number; ``None`` before the first capture.
    """

    def __init__(
        self,
        group: PieceGroup,
        compile: Compile,
        own_inputs: frozenset[int],
        summed_beforehand: Callable[[], frozenset[int]],
        cast_weights: CastWeights,
    ) -> None:
        self.group = group
        self.cast_weights = cast_weights
        self.summed_beforehand = summed_beforehand
        self.options: dict[frozenset[int], PieceOptions] = {}
        self.tangents: frozenset[int] | None = None
        self._compile = compile
        self._own_inputs = own_inputs  # parameters and buffers: there all along
        self._variants: dict[Any, PieceVariant] = {}

    def __call__(self, *args: Any) -> Any:
        return self.group.run(self, args)

    @property
    def current_options(self) -> PieceOptions | None:
        return self.options.get(self.tangents) if self.tangents is not None else None

    def variant(self, option: PieceOption | None, args: Sequence[Any]) -> PieceVariant:
        """The piece for the option (``None``: late), compiled where it was not."""
        key = (self.tangents, id(option) if option is not None else None)
        found = self._variants.get(key)
        if found is None:
            found = PieceVariant(self, option)
            found.run = self._compile(args, found)
            self._variants[self.tangents, key[1]] = found
        return found

    def keep_variants(self, options: Iterable[PieceOption]) -> None:
        """Forget what was compiled for other options, under the gradients that are expected now."""
        ids = {id(option) for option in options}
        self._variants = {
            key: variant
            for key, variant in self._variants.items()
            if key[0] != self.tangents or key[1] is None or key[1] in ids
        }

    def given_inputs(self, args: Sequence[Any]) -> list[Any]:
        return [arg for i, arg in enumerate(args) if i not in self._own_inputs and not isinstance(arg, torch.nn.Parameter)]


class _Call:
    """A call of a piece that keeps something for its backward pass."""

    def __init__(self, piece: Piece, option: PieceOption | None, step: _Step, function: Any) -> None:
        assert piece.current_options is not None
        self.piece = piece
        self.options = piece.current_options
        self.option = option  # None: late
        self.step = step
        self.function: Callable[[], Any] = weakref.ref(function)
        self.reads: list[int] = []  # identities of the inputs that get gradients
        self.sums: set[int] = set()  # those of them whose gradients it sums in part before it hands them on
        self.inputs: list[Any] = []  # storages
        self.outputs: list[Any] = []
        self.within_bytes: int | None = None  # what its backward pass may take

    @property
    def kept_bytes(self) -> int:
        return (self.option or self.options.least_late).kept_bytes


class _Step:
    """The calls of one step so far."""

    def __init__(self, group: PieceGroup, given: Any) -> None:
        self.group = group
        self.given: list[Any] = [value for value in tree_leaves(given) if isinstance(value, torch.Tensor)]
        self.calls: list[_Call] = []
        self.cast_weights: Weights = {}  # those that pieces have cast in autocast regions of the model's own
        self.node: CallNode | None = None  # of the latest call
        self.nodes: list[CallNode] = []  # of the calls, as far as they were seen before
        self.is_new = False  # whether a call came that has no option allocated
        self.is_careful = False  # whether the last step was new: save as little then
        self.is_over = False  # the forward pass
        self.backward_began = False

    def begin_backward(self, call: _Call) -> int | None:
        self.end_forward(None)
        self.backward_began = True
        self.calls = []
        return call.within_bytes

    def end_forward(self, outputs: Any) -> None:
        """The forward pass is over; ``outputs`` is what it returned, ``None`` when that is unknown."""
        if self.is_over:
            return
        self.is_over = True
        try:
            if self.calls and (self.is_new or self.is_careful):
                self.group.settle(self, None if outputs is None else tree_leaves(outputs))
            self.group.is_unsettled = self.is_new
        finally:
            self.given = []
            for call in self.calls:
                call.inputs, call.outputs = [], []

    @property
    def is_gone(self) -> bool:
        return self.backward_began or all(call.function() is None for call in self.calls)


class PieceGroup:
    """The pieces that share a budget: those of one model, or of one function given to ``torch.compile``.

    :meth:`run` is called for every piece. Where a step begins and ends is told by :meth:`begin_step` and :meth:`end_step`. When
    nobody tells, a step begins with the first call after the last one's backward pass began, and its forward pass is over when
    its backward pass begins.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.plan: PiecesPlan | None = None
        self.is_unsettled = False  # whether the last step was new
        self.outdated = False  # a piece expects other gradients than its calls were allocated for
        self._roots: dict[Piece, CallNode] = {}
        self._lock = threading.RLock()
        self._local = threading.local()

    def begin_step(self, given: Any) -> None:
        self._replace_step(_Step(self, given))

    def end_step(self, outputs: Any) -> None:
        self._local.step.end_forward(outputs)

    def abandon_step(self) -> None:
        """The forward pass failed."""
        self._replace_step(_Step(self, ()))

    def run(self, piece: Piece, args: Sequence[Any]) -> Any:
        step = self._step(args)
        with self._lock:
            if self.outdated and not step.calls:
                self._allocate_anew()
            if not step.calls:
                step.is_careful = self.is_unsettled
            node = (self._roots if step.node is None else step.node.children).get(piece) if not step.is_new else None
            known = node is not None and node.chosen is not None and node.options is piece.current_options
            variant = piece.variant(node.chosen if node is not None and known and not step.is_careful else None, args)
            if piece.current_options is None:  # nothing in it is differentiable: it keeps nothing
                return variant.run(*args)
            step.is_new = step.is_new or not known
            step.node = node
            if step.is_new:
                self._check_forward(step, piece.current_options)
        given = storages_of(piece.given_inputs(args))
        piece.cast_weights.begin_call(args, step.cast_weights)
        outputs = variant.run(*args)
        function = compiled_function(outputs)
        if function is not None:
            call = _Call(piece, variant.option, step, function)
            call.inputs = given
            if step.is_new:
                call.reads = [id(arg) for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
                call.sums = {id(args[i]) for i in piece.summed_beforehand()}
            call.outputs = storages_of(tree_leaves(outputs))
            step.calls.append(call)
            if node is not None:
                step.nodes.append(node)
            variant.add(call)
        return outputs

    def settle(self, step: _Step, outputs: list[Any] | None) -> None:
        """All calls of a step are known: see whether it keeps the budget, and allocate for the next ones if any is new."""
        with self._lock:
            if not step.is_new:
                self._limit_backward(step, step.nodes, self._budget_of(step.nodes[0]))
                return
            _tell_of_other_sums(step.calls)
            nodes = self._add_path(step, outputs)
            root = nodes[0]
            budget_bytes = self._budget_of(root)
            self._limit_backward(step, nodes, budget_bytes)
            self._allocate(root, budget_bytes)

    def _budget_of(self, root: CallNode) -> int:
        store_all, least = store_all_peak_bytes(root), min_budget_bytes(root)
        budget_bytes = resolve_budget(self.options.budget, store_all)
        if budget_bytes < least:
            raise self._too_small(budget_bytes, least, store_all)
        return budget_bytes

    def _step(self, args: Sequence[Any]) -> _Step:
        step = getattr(self._local, "step", None)
        if step is None or (step.is_gone and (step.is_over or step.calls)):
            step = self._replace_step(_Step(self, args))
        return step  # type: ignore[no-any-return]

    def _replace_step(self, step: _Step) -> _Step:
        last = getattr(self._local, "step", None)
        if last is not None:
            last.calls = []  # they know their step: no cycles
        self._local.step = step
        return step

    def _check_forward(self, step: _Step, options: PieceOptions) -> None:
        """Refuse as soon as it is certain that the forward pass alone takes more than the budget."""
        if any(call.option is not None for call in step.calls):
            return  # these could keep less the next time
        store_all = sum(call.options.store_all.kept_bytes for call in step.calls) + options.store_all.peak_bytes
        budget_bytes = resolve_budget(self.options.budget, store_all)
        if budget_bytes != resolve_budget(self.options.budget, 2 * store_all):
            return  # a share, of a peak that is known when all pieces are
        least = sum(call.kept_bytes for call in step.calls) + options.least_late.forward_peak_bytes
        if least > budget_bytes:
            raise self._too_small(budget_bytes, least, store_all, more=True)

    def _add_path(self, step: _Step, outputs: list[Any] | None) -> list[CallNode]:
        """The nodes of the step's calls, with what was held between them. Makes those that are missing."""
        nodes: list[CallNode] = []
        children: dict[Any, CallNode] = self._roots  # type: ignore[assignment]
        for call in step.calls:
            node = children.get(call.piece)
            if node is None:
                node = children[call.piece] = CallNode(call.options)
            if node.options is not call.options:
                node.options, node.chosen = call.options, None
            nodes.append(node)
            children = node.children
        alive = [(call, node, function) for call, node in zip(step.calls, nodes, strict=True) if (function := call.function())]
        records = [CallRecord(function, call.outputs, call.inputs) for call, _, function in alive]
        between = held_between(records, outputs, step.given)
        for index, (_, node, _) in enumerate(alive):
            node.eager_bytes = max(node.eager_bytes, between.eager_bytes[index])
            node.waiting_bytes = max(node.waiting_bytes, between.waiting_bytes[index])
            node.after_bytes = max(node.after_bytes, between.after_bytes[index])
        return nodes

    def _limit_backward(self, step: _Step, nodes: list[CallNode], budget_bytes: int) -> None:
        """What is left to each backward pass of this step."""
        held_bytes = worst_bytes = 0
        for call, node in zip(step.calls, nodes, strict=True):
            held_bytes += node.eager_bytes
            call.within_bytes = budget_bytes - held_bytes - node.waiting_bytes
            worst_bytes = max(worst_bytes, held_bytes + node.peak_of(call.option or call.options.least_late))
            held_bytes += call.kept_bytes
        if worst_bytes > budget_bytes:
            warnings.warn(
                f"[pieces] this step takes a way through {self.options.name} that was not seen before, and needs "
                f"{format_bytes(worst_bytes)}, more than the budget of {format_bytes(budget_bytes)}. From the next step on all "
                "ways seen keep the budget",
                RuntimeWarning,
                stacklevel=2,
            )

    def _allocate_anew(self) -> None:
        """For the gradients that the pieces expect now. Pieces that never saw them run late once more."""
        self.outdated = False
        for piece, root in self._roots.items():
            pairs: list[tuple[Piece, CallNode]] = [(piece, root)]
            complete = True
            while pairs:
                owner, node = pairs.pop()
                pairs += node.children.items()  # type: ignore[arg-type]
                if owner.current_options is None:
                    complete, node.chosen = False, None
                elif node.options is not owner.current_options:
                    node.options, node.chosen = owner.current_options, None
            if complete:
                self._allocate(root, self._budget_of(root))

    def _allocate(self, root: CallNode, budget_bytes: int) -> None:
        if not allocate(root, budget_bytes):
            raise AssertionError("[pieces] the least budget is met, and yet nothing can be allocated")
        chosen: dict[Piece, list[PieceOption]] = {}
        plans = []
        pairs: list[tuple[Any, CallNode]] = [(piece, node) for piece, node in self._roots.items() if node is root]
        while pairs:
            piece, node = pairs.pop(0)
            assert node.chosen is not None
            chosen.setdefault(piece, []).append(node.chosen)
            plans.append(plan_of_option(node.options, node.chosen, budget_bytes, self.options.compiler))
            pairs += node.children.items()
        for piece in chosen:
            everywhere = [n.chosen for tree in self._roots.values() for n in tree.walk() if n.chosen is not None]
            piece.keep_variants(everywhere)
        nodes = list(root.walk())
        time_us = sum(node.chosen.time_us for node in nodes if node.chosen is not None)
        self.plan = PiecesPlan(
            budget_bytes=budget_bytes,
            peak_bytes=chosen_peak_bytes(root),
            store_all_peak_bytes=store_all_peak_bytes(root),
            min_budget_bytes=min_budget_bytes(root),
            overhead=time_us / max(sum(node.options.store_all.time_us for node in nodes), 1e-9) - 1,
            time_us=time_us,
            between_bytes=sum(node.eager_bytes for node in nodes),
            pieces=plans,
            compiler=self.options.compiler,
        )
        log.info("%s", self.plan)
        if self.options.on_plan is not None:
            self.options.on_plan(self.plan)

    def _too_small(self, budget_bytes: int, least: int, store_all: int, more: bool = False) -> BudgetError:
        asked = f"{self.options.budget!r} ({format_bytes(budget_bytes)})"
        if more:
            return BudgetError(
                f"[budget] {asked} can't be met: {self.options.name} runs in pieces, and those that came so far hold at least "
                f"{least} bytes ({format_bytes(least)}) in the forward pass alone. Ask for more",
                least,
            )
        return BudgetError(
            f"[budget] {asked} can't be met: {self.options.name} runs in pieces, and the least activation budget that all of "
            f"them keep together is {least} bytes ({format_bytes(least)}, {least / max(store_all, 1):.1%} of "
            f"{format_bytes(store_all)} without recomputation). Ask for budget={least} or more",
            least,
        )


def _tell_of_other_sums(calls: list[_Call]) -> None:
    """Warn where a gradient is summed in another order than in plain PyTorch; see :mod:`rockmate.separate_gradients`."""
    read_later: set[int] = set()
    for call in reversed(calls):
        if not call.sums.isdisjoint(read_later):
            warnings.warn(
                "[pieces] one piece of the model reads a tensor many times, and a later piece reads it again: its gradient is "
                "summed in another order than in plain PyTorch, and may differ in its last bits. Capture the model whole to "
                "avoid that: see where it breaks with rockmate.estimate",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        read_later.update(call.reads)


def compiled_function(outputs: Any) -> Any:
    """The autograd node of the compiled call that gave these outputs; ``None`` when no gradient flows through it.

    It is asked to pass ``None`` for outputs that get no gradient, instead of filling zeros in: zeros the size of the logits
    would be allocated, and added to other gradients, for nothing.
    """
    found = None
    for output in outputs if isinstance(outputs, (list, tuple)) else (outputs,):
        function = getattr(output, "grad_fn", None)
        for _ in range(3):  # an output may be a view of what the compiled function returned
            if function is None or type(function).__name__ == "CompiledFunctionBackward":
                break
            function = function.next_functions[0][0] if function.next_functions else None
        if function is not None and function is not found and type(function).__name__ == "CompiledFunctionBackward":
            found = function
            function.set_materialize_grads(False)
    return found
