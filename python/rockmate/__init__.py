"""Train a PyTorch model inside a memory budget.

model = rockmate.Rockmate(model, budget="50%")  # a drop-in nn.Module
model = torch.compile(model, backend="rockmate", options={"budget": "4GiB"})
"""

from rockmate.backend import rockmate_backend
from rockmate.errors import BudgetError, CaptureError, RockmateError
from rockmate.estimate import Estimate, Fit, estimate
from rockmate.meter import Meter, measure_peak
from rockmate.module import Rockmate
from rockmate.options import Options
from rockmate.plan import CurvePoint, Plan

__all__ = [
    "BudgetError",
    "CaptureError",
    "CurvePoint",
    "Estimate",
    "Fit",
    "Meter",
    "Options",
    "Plan",
    "Rockmate",
    "RockmateError",
    "estimate",
    "measure_peak",
    "rockmate_backend",
]
