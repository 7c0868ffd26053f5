"""The kinds of models that re-materialization tools get wrong: id, and what others do with it, from their public reports."""

from __future__ import annotations

SECTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "R": (
        "Randomness",
        {
            "R1": "PyTorch's memory budget below 1.0 recomputes with new random numbers: gradients silently wrong (2.13, CPU)",
            "R2": "Rockmate 2.0 repeats the masks of the first step in every step",
            "R3": "Rockmate 2.0 merges the two into one draw",
            "R4": "the random stream is further along than after a plain step",
            "R5": "gradients silently wrong",
        },
    ),
    "S": (
        "Buffers, state, side effects",
        {
            "S1": "running statistics updated twice, or `num_batches_tracked` never",
            "S2": "update lost, or done twice",
            "S3": "counted twice",
            "S4": "run twice",
            "S5": "appended twice",
            "S6": "running statistics or random stream moved",
        },
    ),
    "F": (
        "Frozen, partial and odd gradients",
        {
            "F1": "no gradient, silently",
            "F2": "an error, or a wrong `requires_grad`",
            "F3": "an error",
            "F4": "wrong, or refused",
            "F5": "hooks fire twice",
            "F6": "an error about the storage of the gradient",
            "F7": "the output is empty",
        },
    ),
    "A": (
        "The autograd surface",
        {
            "A1": "rejected",
            "A2": "silently wrong",
            "A3": "calls share state: gradients wrong",
            "A4": "the custom backward pass is ignored",
            "A5": "more memory than plain",
            "A6": "an error",
            "A7": "recomputed for nothing, or without a budget",
            "A8": "threads share a record",
        },
    ),
    "C": (
        "Calling convention and kinds of models",
        {
            "C1": "a flat tuple, or an error",
            "C2": "an assertion fails",
            "C3": "an error, or values that depend on what is saved",
            "C4": "the shape of the sample is baked in",
            "C5": "cast otherwise when recomputed",
            "C6": "all of the model runs eagerly, the budget is ignored",
            "C7": "not supported",
            "C8": "prefixed or dropped",
            "C9": "not supported",
        },
    ),
    "M": (
        "Memory and planning",
        {
            "M1": "PyTorch's memory budget on an 8-layer GPT at 1.0 / 0.75 / 0.5 / 0.25 / 0.1 / 0.0: peak over plain "
            "1.17 / 0.75 / 0.66 / 0.91 / 0.83 / 1.26",
            "M2": 'over the limit, "infeasible" though plain fits, or a hint only',
            "M3": "saves nothing, or takes more than plain",
            "M4": "a copy of every weight is saved",
            "M5": "memory grows",
            "M6": "minutes, gigabytes",
        },
    ),
}
