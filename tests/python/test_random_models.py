"""Random models train as plain ones do, to the bit, within their budgets; see random_models.py."""

from __future__ import annotations

import pytest
import random_models

SHORT = range(120)
LONG = range(1000, 4000)


@pytest.mark.parametrize("seed", SHORT)
def test_random_model(seed: int) -> None:
    random_models.check_seed(seed, budgets=("100%", "minimum") if seed % 3 else random_models.BUDGETS)


@pytest.mark.long
@pytest.mark.parametrize("first", range(LONG.start, LONG.stop, 100))
def test_many_random_models(first: int) -> None:
    for seed in range(first, first + 100):
        random_models.check_seed(seed)
