"""What a model hears when it asks whether it is being compiled: no, as in plain training.

Dynamo answers ``torch.compiler.is_compiling()`` with ``True``, and a model may compute otherwise then: another mask, a scan
instead of a loop. A drop-in should compute what the plain model does, so it is captured on its plain path. That path may be one
that Dynamo can't take whole (it looks at the data), or one that is spelled out to no end (a loop over the sequence, in the
function that asked). Then the truth is told where the model asked last before that, and a warning says where. Pieces of a
model, which break wherever they have to, always take the plain path.

PyTorch's own code always hears the truth: it asks for the sake of tracing, and computes the same.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

#: A plain path is given up for the compiled one when the functions that asked at one place, other than the model's own forward,
#: call more ops than this.
LONGEST_PATH = 4000

# Files of transformers that ask only how to hand outputs on, and do so in ways that Dynamo can't take.
_BOOKKEEPING = tuple(
    os.path.join("transformers", "utils", name) for name in ("generic.py", "output_capturing.py", "import_utils.py")
)
_TORCH = os.path.dirname(torch.__file__) + os.sep
_QUESTIONS = (
    torch.compiler.is_compiling,
    torch.compiler.is_dynamo_compiling,
    torch._dynamo.external_utils.is_compiling,
    torch._utils.is_compiling,
)
# What models ask in the same breath. Dynamo can't trace it where there is no such device; what is traced is not recorded.
_RECORDING = (torch.cuda.is_current_stream_capturing, torch.xpu.is_current_stream_capturing)
_MARK = "_rockmate_answers"


Backend = TypeVar("Backend", bound=Callable[..., Any])
Place = tuple[str, int, str]  # file, line, function


@dataclass
class Answers:
    """What a model is told in one attempt to capture it whole.

    Attributes:
        compiling: the answer, unless a place is in ``truth_at``.
        truth_at: places that hear the truth, since the plain path from there can't be captured.
        is_limited: whether :data:`LONGEST_PATH` holds.
        last: the last place that was told it is not compiled, in the present attempt.
        places: all places that asked.
        failures: why earlier attempts failed.
    """

    compiling: bool
    truth_at: frozenset[Place] = frozenset()
    is_limited: bool = True
    last: Place | None = None
    places: dict[Place, None] = field(default_factory=dict)
    failures: dict[str, None] = field(default_factory=dict)

    def at(self, place: Place) -> bool:
        self.places[place] = None
        if self.compiling or place in self.truth_at:
            return True
        self.last = place
        return False

    def after(self, failure: str) -> Answers | None:
        """What to tell the model next, after this attempt has failed; ``None`` when it was told the truth everywhere.

        The same failure once more means that no single question leads to it.
        """
        if self.last is None:
            return None
        if failure in self.failures:
            return Answers(compiling=True, failures=self.failures)
        return Answers(False, self.truth_at | {self.last}, self.is_limited, failures={**self.failures, failure: None})

    def told_truth(self) -> list[Place]:
        return [place for place in self.places if self.compiling or place in self.truth_at]


def answered(backend: Backend, answers: Callable[[], Answers]) -> Backend:
    """The backend, so marked that models which Dynamo captures for it hear those answers."""
    _listen()
    setattr(backend, _MARK, answers)
    return backend


@functools.cache
def _listen() -> None:
    handlers = TorchInGraphFunctionVariable._get_handlers()
    for question in _QUESTIONS:
        handlers[question] = _handler(handlers[question])
    for question in _RECORDING:
        torch.compiler.allow_in_graph(question)
        handlers.setdefault(question, lambda _, tx: VariableTracker.build(tx, False) if _answers_for(tx) else None)


def _answers_for(tx: Any) -> Answers | None:
    backend = tx.output.compiler_fn
    while backend is not None:
        if hasattr(backend, _MARK):
            return getattr(backend, _MARK)()  # type: ignore[no-any-return]
        backend = getattr(backend, "_torchdynamo_orig_backend", None) or getattr(backend, "compiler_fn", None)
    return None


def _handler(original: Callable[..., Any]) -> Callable[..., Any]:
    def handler(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
        truth = original(self, tx, *args, **kwargs)
        answers = _answers_for(tx)
        if answers is None or tx.f_code.co_filename.startswith(_TORCH):
            return truth
        asking = _past_helpers(tx)
        summary = asking.frame_summary()
        place = (summary.filename, summary.lineno, summary.name)
        if place[0].endswith(_BOOKKEEPING) or answers.at(place):
            return truth
        if answers.is_limited and asking.parent is not None:
            _limit_length(tx.output, asking, place)
        return VariableTracker.build(tx, False)

    return handler


def _past_helpers(tx: Any) -> Any:
    """Where the question matters: behind helpers that only pass the answer on, which are named ``is_...``."""
    while tx.f_code.co_name.lstrip("_").startswith("is_") and tx.parent is not None:
        tx = tx.parent
    return tx


def _limit_length(output: Any, asking: Any, place: Place) -> None:
    """Give up the trace when the function that is traced in ``asking``, and others that asked there, call too many ops."""
    watched = vars(output).get("create_proxy")
    if not isinstance(watched, _CountedOps):
        watched = output.create_proxy = _CountedOps(output)
    watched.functions[id(asking)] = (asking, place)


class _CountedOps:
    """Stands for ``create_proxy`` of Dynamo's output graph, which all tracers of a graph go through."""

    def __init__(self, output: Any) -> None:
        self._output = output
        self._create = output.create_proxy
        self.functions: dict[int, tuple[Any, Place]] = {}  # those that asked, by identity
        self._counts: dict[Place, int] = {}

    def __call__(self, kind: str, *args: Any, **kwargs: Any) -> Any:
        tx = self._output.current_tx if kind.startswith("call_") else None
        while tx is not None:
            _, place = self.functions.get(id(tx), (None, None))
            if place is not None:
                self._counts[place] = self._counts.get(place, 0) + 1
                if self._counts[place] > LONGEST_PATH:
                    unimplemented(
                        gb_type="plain path too long",
                        context=f"more than {LONGEST_PATH} ops",
                        explanation="What the model computes when it is not compiled is too long to be planned op by op",
                        hints=[],
                    )
            tx = tx.parent
        return self._create(kind, *args, **kwargs)


def places_text(places: Iterable[Place], most: int = 3) -> str:
    listed = [f"{file}:{line} in {name}()" for file, line, name in places]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
