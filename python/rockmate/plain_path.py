"""What a model hears when it asks whether it is being compiled: no, as in plain training.

Dynamo answers ``torch.compiler.is_compiling()`` with ``True``, and a model may compute otherwise then: another mask, a scan
instead of a loop. A drop-in should compute what the plain model does, so it is captured on its plain path. That path may be one
that Dynamo can't take whole (it looks at the data), or one that is spelled out to no end (a loop over the sequence). Then the
truth is told where the model asked last before that, and a warning says where.

PyTorch's own code always hears the truth: it asks for the sake of tracing, and computes the same.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

#: A plain path longer than this, in nodes of Dynamo's graph after the first question, is given up for the compiled one.
LONGEST_PATH = 4000

# Files of transformers that ask only how to hand outputs on, and do so in ways that Dynamo can't take.
_BOOKKEEPING = tuple(
    os.path.join("transformers", "utils", name) for name in ("generic.py", "output_capturing.py", "import_utils.py")
)
_TORCH = os.path.dirname(torch.__file__) + os.sep
_QUESTIONS = (torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling)
# What models ask in the same breath. Dynamo can't trace it where there is no such device; what is traced is not recorded.
_RECORDING = (torch.cuda.is_current_stream_capturing, torch.xpu.is_current_stream_capturing)
_local = threading.local()


Place = tuple[str, int, str]  # file, line, function


@dataclass
class Answers:
    """What a model is told in one attempt to capture it whole.

    Attributes:
        compiling: the answer, unless a place is in ``truth_at``.
        truth_at: places that hear the truth, since the plain path from there can't be captured.
        last: the last place that was told it is not compiled.
        places: all places that asked.
        failures: why earlier attempts failed.
    """

    compiling: bool
    truth_at: frozenset[Place] = frozenset()
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
        return Answers(False, self.truth_at | {self.last}, failures={**self.failures, failure: None})

    def told_truth(self) -> list[Place]:
        return [place for place in self.places if self.compiling or place in self.truth_at]


@contextmanager
def answering(answers: Answers) -> Iterator[None]:
    """Models that Dynamo captures inside, in this thread, hear ``answers``."""
    _listen()
    before = _told()
    _local.answers = answers
    try:
        yield
    finally:
        _local.answers = before


def _told() -> Answers | None:
    return getattr(_local, "answers", None)


@functools.cache
def _listen() -> None:
    handlers = TorchInGraphFunctionVariable._get_handlers()
    for question in _QUESTIONS:
        handlers[question] = _handler(handlers[question])
    for question in _RECORDING:
        torch.compiler.allow_in_graph(question)
        handlers.setdefault(question, lambda _, tx: None if _told() is None else VariableTracker.build(tx, False))


def _handler(original: Callable[..., Any]) -> Callable[..., Any]:
    def handler(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
        truth = original(self, tx, *args, **kwargs)
        answers = _told()
        if answers is None or tx.f_code.co_filename.startswith(_TORCH):
            return truth
        place = _place_of(tx)
        if place[0].endswith(_BOOKKEEPING) or answers.at(place):
            return truth
        _limit_length(tx.output.root_tracer)
        return VariableTracker.build(tx, False)

    return handler


def _place_of(tx: Any) -> Place:
    """Where the question matters: past helpers that only pass the answer on, which are named ``is_...``."""
    while tx.f_code.co_name.lstrip("_").startswith("is_") and tx.parent is not None:
        tx = tx.parent
    summary = tx.frame_summary()
    return summary.filename, summary.lineno, summary.name


def _limit_length(tracer: Any) -> None:
    if "create_proxy" in vars(tracer):
        return  # limited since an earlier question
    create = tracer.create_proxy
    limit = len(tracer.graph.nodes) + LONGEST_PATH

    def limited(*args: Any, **kwargs: Any) -> Any:
        if len(tracer.graph.nodes) > limit:
            unimplemented(
                gb_type="plain path too long",
                context=f"more than {LONGEST_PATH} nodes",
                explanation="What the model computes when it is not compiled is too long to be planned op by op",
                hints=[],
            )
        return create(*args, **kwargs)

    tracer.create_proxy = limited


def places_text(places: Iterable[Place], most: int = 3) -> str:
    listed = [f"{file}:{line} in {name}()" for file, line, name in places]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
