"""What a user can ask for, in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

Budget = int | float | str
COMPILERS = ("native", "inductor")


@dataclass(frozen=True)
class Options:
    """Options of :class:`rockmate.Rockmate` and of ``torch.compile(..., backend="rockmate", options={...})``.

    Attributes:
        budget: the activation budget: bytes (``int``), text (``"4GiB"``, ``"800MB"``, ``"50%"``) or a fraction (``0.5``).
            Shares are of the peak that the model has when nothing is recomputed. It counts every byte that the step holds
            beyond what was alive when forward began, parameter gradients left out.
        cost: where op times and workspaces come from: ``"measured"`` (each distinct op is run on the device, and cached on
            disk), or the name of a device (``"cpu"``, ``"v100"``, ``"a100"``, ``"h100"``, ``"h200"``) for the roofline model.
        compiler: who runs the plan: ``"native"`` (the C++ executor, op by op as plain PyTorch does: equal to the bit, peak as
            predicted), or ``"inductor"`` (PyTorch's fusing compiler: faster on accelerators, rounds otherwise, takes minutes to
            compile, and the peak is predicted for the unfused ops; see ``docs/inductor.md``).
        levels: how many levels of saved bytes and of peak bytes each block is solved for, 2 to 30. More find better
            plans and take longer.
        memory_steps: resolution of the memory axis of the chain, at least 500.
        time_limit_s: seconds after which planning returns the best it has found.
        polish: whether the plan for the budget is improved as a whole, op by op, until little is left to gain: 1 to 3 s for a
            model of 1000 ops. Models in pieces and what Inductor compiles go without.
        threads: threads of the solvers; 0 for all cores.
        cache: whether measured costs and solved blocks are kept on disk (see :func:`rockmate.cache.cache_directory`).
        tangents: which outputs the backward pass is planned for: ``"auto"`` (the scalar outputs when there are any, such as a
            loss that is returned beside logits, else all), or ``"all"``. The other outputs stay differentiable.
        told_compiling: what the model hears when it asks ``torch.compiler.is_compiling()``: ``False``, as in plain training, or
            ``True``, as under ``torch.compile``. ``None`` is ``False``, unless only the other can be captured in one piece: a
            warning says so then. Under ``torch.compile`` itself it is always ``True``.
        name: a name for the model, in reports.
        on_plan: called with each new :class:`rockmate.Plan`.
        on_progress: called with (stage, share done) while costs are measured and plans are made. Without it a line tells of
            that where standard error is a terminal, once it has taken two seconds.
    """

    budget: Budget = "100%"
    cost: str = "measured"
    compiler: str = "native"
    levels: int = 10
    memory_steps: int = 500
    time_limit_s: float = 300.0
    polish: bool = True
    threads: int = 0
    cache: bool = True
    tangents: str = "auto"
    told_compiling: bool | None = None
    name: str = "model"
    on_plan: Callable[[Any], None] | None = None
    on_progress: Callable[[str, float], None] | None = None

    @staticmethod
    def from_mapping(mapping: Mapping[str, Any] | None) -> Options:
        """Options from ``torch.compile``'s ``options``; unknown names are refused."""
        given = dict(mapping or {})
        known = [field.name for field in fields(Options)]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"[options] unknown option {unknown[0]!r}; the options are {', '.join(known)}")
        return Options(**given)

    def __post_init__(self) -> None:
        if not 2 <= self.levels <= 30:
            raise ValueError(f"[options] levels is {self.levels}; choose 2 to 30")
        if self.memory_steps < 500:
            raise ValueError(f"[options] memory_steps is {self.memory_steps}; choose 500 or more")
        if self.compiler not in COMPILERS:
            raise ValueError(f"[options] compiler is {self.compiler!r}; choose {' or '.join(map(repr, COMPILERS))}")
        if self.tangents not in ("auto", "all"):
            raise ValueError(f"[options] tangents is {self.tangents!r}; choose 'auto' or 'all'")
        if not (self.told_compiling is None or isinstance(self.told_compiling, bool)):
            raise ValueError(f"[options] told_compiling is {self.told_compiling!r}; choose False, True or None")
