"""Real models of fourteen families train as plain ones do; see zoo.py, and docs/model_zoo.md for the table."""

from __future__ import annotations

import pytest
import zoo


def check(name: str, budgets: tuple[str, ...]) -> None:
    if name in zoo.REFUSED:
        with pytest.raises(zoo.REFUSED[name].error, match=zoo.REFUSED[name].message):
            zoo.examine(name, budgets)
        return
    for row in zoo.examine(name, budgets).rows:
        if name not in zoo.IN_PIECES:
            assert row.measured_bytes <= row.predicted_bytes <= row.budget_bytes
            if name not in zoo.PEAK_BELOW_PREDICTION:
                assert row.measured_bytes == row.predicted_bytes
        assert row.differs_from_plain == ""
        assert row.recomputed == 0 if row.budget == "100%" else row.recomputed > 0


@pytest.mark.parametrize("name", zoo.FAMILIES)
def test_family(name: str) -> None:
    check(name, ("100%", "minimum"))


@pytest.mark.long
@pytest.mark.parametrize("name", zoo.FAMILIES)
def test_family_at_every_budget(name: str) -> None:
    check(name, zoo.BUDGETS)
