"""Decorators that make a test of a case, and mark it with the row of the table in docs/equivalence.md that it belongs to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from harness import Case, check_equal


def pattern(row: str, model: str, outcome: str = "equal") -> Callable[[Any], Any]:
    """Mark a test of any kind. ``outcome`` is ``"equal"``, or what is refused and why."""
    return pytest.mark.pattern(row, model, outcome)


def equal(row: str, model: str, outcome: str = "equal", **options: Any) -> Callable[[Callable[..., Case]], Any]:
    """The decorated function makes a case; the test trains it plainly and at three budgets, and wants no difference."""

    def decorate(make: Callable[..., Case]) -> Any:
        @functools.wraps(make)
        def test(*args: Any, **kwargs: Any) -> None:
            check_equal(functools.partial(make, *args, **kwargs), **options)

        test.__annotations__ = {}
        return pattern(row, model, outcome)(test)

    return decorate


def variants(names: Iterable[str], *short: str) -> list[Any]:
    """Parameters of a test: those not named in ``short`` run in the long tests only."""
    return [name if name in short else pytest.param(name, marks=pytest.mark.long) for name in names]
