"""A model's training step, captured for one kind of input: in one piece where that can be, else in several."""

from __future__ import annotations

import contextlib
import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from traceback import FrameSummary
from types import FunctionType
from typing import Any

import torch
import torch._dynamo
from torch import nn

from rockmate.backend import capturing_only, compile_graph
from rockmate.between import parameters_of_eager_ops
from rockmate.containers import LOOPED_FORWARD, open_containers, sequential_forward
from rockmate.errors import CaptureError, DataDependentError, RockmateError
from rockmate.meter import paused
from rockmate.options import Options
from rockmate.pieces import PieceGroup
from rockmate.plain_path import Answers, Place, answered, places_text
from rockmate.tracing import quick_tracing

log = logging.getLogger("rockmate")

#: Why a model is not captured in one piece. Asked for all of it, Dynamo traces numbers and sizes that the data give.
NOT_IN_ONE_PIECE = (torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError, DataDependentError)
# A number of the module that forward changes (a counter) is captured anew at every step. Pieces are compiled with the code of
# the user's functions, where all kinds of input and all models meet. NumPy's random numbers come from NumPy, between pieces.
_ALWAYS = {
    "recompile_limit": 512,
    "accumulated_recompile_limit": 8192,
    "fail_on_recompile_limit_hit": True,
    "use_numpy_random_stream": True,
}
# Where numbers and sizes come from the data there is a break between pieces, whatever the user's settings.
_BREAK_AT_DATA = {"capture_scalar_outputs": False, "capture_dynamic_output_shape_ops": False}


class CompiledStep:
    """The forward pass of ``model`` at one kind of input.

    Dynamo is asked for the whole model first: when it can't give that, it says so before anything runs. Then it is asked for
    pieces, which run one after the other with plain Python between them and share the budget.
    """

    def __init__(self, model: nn.Module, options: Options) -> None:
        self._model = model
        self._options = options
        forward = type(model).forward
        if forward is LOOPED_FORWARD:
            forward = sequential_forward

        def step(*args: Any, **kwargs: Any) -> Any:
            return forward(model, *args, **kwargs)

        self._function = step
        self._settings: dict[str, Any] = {**_ALWAYS, **({"allow_rnn": True} if _has_recurrent_layers(model) else {})}
        self._compiled = self._compile(None)
        self._group: PieceGroup | None = None
        self._answers = Answers(compiling=options.told_compiling is True)  # what it hears when it asks whether it is compiled
        self._warned: set[Place] = set()
        self._called = False
        self._told = False
        # Settings of our own take their time: a whole model needs them at first, then rarely.
        self._captured_often = _has_recurrent_layers(model)
        _ignore_log_calls()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._group is None:
            try:
                return self._run_whole(args, kwargs)
            except NOT_IN_ONE_PIECE as error:
                why = f"[capture] the model can't be captured in one piece: {why_not(error, self._model)}"
                if capturing_only():
                    raise CaptureError(f"{why}. It is planned piece by piece when its first step runs") from error
                log.info("%s; it runs in pieces", why)
            self._group = PieceGroup(self._options)
            self._settings = {"allow_rnn": True, **_ALWAYS, **_BREAK_AT_DATA}
            self._answers = Answers(compiling=self._options.told_compiling is True, is_limited=False)
            self._compiled = self._compile(self._group)
            self._called = False
        elif capturing_only():
            raise CaptureError("[capture] the model runs in pieces; they are planned when its first step runs")
        self._group.begin_step((args, kwargs))
        try:
            outputs = self._run(args, kwargs)
        except BaseException:
            self._group.abandon_step()
            raise
        self._group.end_step(outputs)
        if not self._told:
            self._told = self._tell_of_eager_modules(outputs)
        return outputs

    def _run_whole(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """On the plain path of a model that has two, as far as that can be captured whole (see :mod:`rockmate.plain_path`)."""
        while True:
            self._answers.last = None
            try:
                return self._run(args, kwargs)
            except (*NOT_IN_ONE_PIECE, CaptureError) as error:
                if isinstance(error.__cause__, torch._dynamo.exc.FailOnRecompileLimitHit):
                    raise
                others = self._answers.after(why_not(error, self._model)) if self._options.told_compiling is None else None
                if others is None:
                    raise
                self._answers = others
                self._compiled, self._called = self._compile(None), False

    def _warn_of_compiled_path(self) -> None:
        """Once a graph was captured: for what questions the truth was needed."""
        places = [place for place in self._answers.told_truth() if place not in self._warned]
        if not places or self._options.told_compiling:
            return
        self._warned.update(places)
        warnings.warn(
            f"[capture] the model asks torch.compiler.is_compiling() at {places_text(places)}, and is told yes: what it "
            f"computes otherwise can't be captured in one piece ({'; '.join(self._answers.failures)}). Where the two differ, "
            "in rounding or more, its results are those that it has under torch.compile. told_compiling=False trains it as it "
            "is, in pieces where need be; told_compiling=True accepts this without a warning",
            RuntimeWarning,
            stacklevel=1,
        )

    def _tell_of_eager_modules(self, outputs: Any) -> bool:
        """Warn of modules that run outside of all pieces."""
        leaves = {id(leaf) for leaf in parameters_of_eager_ops(outputs)}
        eager = {name.rpartition(".")[0]: None for name, p in self._model.named_parameters() if id(p) in leaves}
        if eager:
            named = ", ".join(repr(path) for path in list(eager)[:4]) + (
                f" and {len(eager) - 4} more" if len(eager) > 4 else ""
            )
            warnings.warn(
                f"[pieces] modules of the model could not be captured and run as they are: {named}. What they "
                "save is counted where other parts are captured, what they hold besides while they run is not: the step may "
                "exceed the budget by that much",
                RuntimeWarning,
                stacklevel=3,
            )
        return bool(eager)

    def _compile(self, group: PieceGroup | None) -> Callable[..., Any]:
        code = self._function.__code__.replace()  # Dynamo keeps what it compiled with the code object: one for each kind
        function = FunctionType(code, globals(), closure=self._function.__closure__)

        def backend(gm: Any, example_inputs: Any) -> Any:
            with paused():
                compiled = compile_graph(gm, example_inputs, self._options, group)
            if group is None:
                self._warn_of_compiled_path()
            return compiled

        # Sizes that change, and numbers that the model reads off its values, are left to the pieces.
        dynamic = False if group is None else None
        backend = answered(backend, lambda: self._answers)
        return torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=group is None)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            if self._called and self._group is None and not self._captured_often:
                try:
                    return self._compiled(*args, **kwargs)
                except torch._dynamo.exc.FailOnRecompileLimitHit:  # with the user's limit, and before anything runs
                    self._captured_often = True
            with self._dynamo_settings():
                if self._called:
                    return self._compiled(*args, **kwargs)
                with quick_tracing():
                    result = self._compiled(*args, **kwargs)
            self._called = True
            return result
        except torch._dynamo.exc.BackendCompilerFailed as error:
            if isinstance(error.inner_exception, (RockmateError, ValueError)):
                raise error.inner_exception from None
            raise
        except NOT_IN_ONE_PIECE:
            raise
        except (torch._dynamo.exc.TorchDynamoException, torch._dynamo.exc.FailOnRecompileLimitHit) as error:
            raise CaptureError(
                f"[capture] PyTorch's tracer fails on the model: {why_not(error, self._model)}. Put "
                "torch.compiler.disable() around that part, so that it runs as it is, between planned pieces"
            ) from error

    @contextlib.contextmanager
    def _dynamo_settings(self) -> Iterator[None]:
        in_pieces = open_containers() if self._group is not None else contextlib.nullcontext()
        with in_pieces, torch._dynamo.config.patch(self._settings):
            yield


def _has_recurrent_layers(model: nn.Module) -> bool:
    return any(isinstance(module, nn.RNNBase) for module in model.modules())


def why_not(error: Exception, model: nn.Module) -> str:
    """What could not be captured, and where that is in the model."""
    if isinstance(error, DataDependentError):
        return error.what
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    what = lines[0] if lines else type(error).__name__
    explanation = next((line.removeprefix("Explanation:").strip() for line in lines if line.startswith("Explanation:")), "")
    frames: list[FrameSummary] = list(getattr(error, "real_stack", None) or [])
    place = ""
    if frames:
        where = next((path for frame in reversed(frames) if (path := _module_at(frame, model)) is not None), None)
        place = f", in {frames[-1].name}() at {frames[-1].filename}:{frames[-1].lineno}"
        place += f", module '{where}'" if where else ""
        place += f": {frames[-1].line}" if frames[-1].line else ""
    return what + (f" ({explanation.rstrip('.')})" if explanation else "") + place


def _module_at(frame: FrameSummary, model: nn.Module) -> str | None:
    """Path of the first module whose ``forward`` the line belongs to; empty for the model itself."""
    for path, module in model.named_modules():
        code = getattr(type(module).forward, "__code__", None)
        if code is None or code.co_filename != frame.filename or code.co_name != frame.name:
            continue
        lines = [line for _, _, line in code.co_lines() if line is not None]
        if frame.lineno is not None and lines and min(lines) <= frame.lineno <= max(lines):
            return path
    return None


@functools.cache
def _ignore_log_calls() -> None:
    """Let Dynamo pass over calls of loggers, which would otherwise cut a model's graph in two."""
    names = ("debug", "info", "warning", "warn", "warning_once", "info_once", "warning_advice", "log")
    methods = [getattr(logging.Logger, name) for name in names if hasattr(logging.Logger, name)]
    torch._dynamo.config.ignore_logging_functions.update(methods)
