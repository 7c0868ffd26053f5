"""The exceptions that Rockmate raises for its users."""

from __future__ import annotations


class RockmateError(Exception):
    """Base of all errors of this package: the message says what is wrong, where, and what to do."""


class BudgetError(RockmateError, ValueError):
    """A budget that is no budget, or that no schedule of this model can meet.

    Attributes:
        min_budget_bytes: the least activation budget that can be met, in bytes; ``None`` when the text was no budget at all.
    """

    def __init__(self, message: str, min_budget_bytes: int | None = None) -> None:
        super().__init__(message)
        self.min_budget_bytes = min_budget_bytes


class CaptureError(RockmateError):
    """The model does something that can't be planned; the message names it and where it is in the model."""


class DataDependentError(CaptureError):
    """A captured graph holds a number or a size that only the data tell: what comes after it has to be another piece.

    Attributes:
        what: the op, and where it is in the model.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"[capture] {what}; its memory can't be planned. Compute it outside of the model, or leave the op to a graph break"
        )
        self.what = what
