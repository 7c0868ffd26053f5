"""Random models train as plain ones do, to the bit, within their budgets; see random_models.py.

The measured peak is the predicted one to the byte in models without buffers that are captured whole and trained through all
outputs, with gradients that nobody else holds. In the others it is at most the predicted one: an op whose gradient looks at the
data is planned for the data that takes most memory, the caller's gradients are counted though made before the step, and new
contents of buffers are counted longer than they live. Of models in pieces the peak is not compared here: ops between the pieces
hold memory of their own, and ways that are taken for the first time are not planned yet.
"""

from __future__ import annotations

import pytest
import random_models

SHORT = range(200)
LONG = range(1000, 4000)


@pytest.mark.parametrize("seed", SHORT)
def test_random_model(seed: int) -> None:
    random_models.check_seed(seed, budgets=("100%", "minimum") if seed % 3 else random_models.BUDGETS)


@pytest.mark.long
@pytest.mark.parametrize("first", range(LONG.start, LONG.stop, 100))
def test_many_random_models(first: int) -> None:
    for seed in range(first, first + 100):
        random_models.check_seed(seed)
