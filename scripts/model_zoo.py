"""Writes docs/model_zoo.md: every family of the zoo (tests/python/zoo.py) trained at every budget, as the tests do it."""

import datetime
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import diffusers  # noqa: E402
import transformers  # noqa: E402
import zoo  # noqa: E402

HEAD = """\
# Model zoo

Small models of fourteen families (`tests/python/zoo.py`), in train mode with their dropout on, three SGD steps each. *Equal*: loss,
every gradient, buffers and the random stream after each step, to the bit, against plain PyTorch; where a model computes
otherwise when it is compiled, against the same capture trained without recomputation, with the reason below the table. *Peak*:
measured by the allocation meter; predicted and measured peaks are the same to the byte unless both are shown.

"""


def main() -> None:
    torch.set_num_threads(1)
    lines = ["| model | plain peak | budget | bytes | peak | of plain | recomputed ops | equal |", "|---" * 8 + "|"]
    notes = []
    for name in zoo.FAMILIES:
        print(name, flush=True)
        if name in zoo.REFUSED:
            lines.append(f"| {name} | | | | | | | refused |")
            notes.append(f"* **{name}** is refused: {zoo.REFUSED[name].reason}")
            continue
        examined = zoo.examine(name)
        otherwise = zoo.COMPILED_OTHERWISE.get(name)
        for row in examined.rows:
            peak = f"{row.measured_bytes}" + (
                "" if row.measured_bytes == row.predicted_bytes else f" (predicted {row.predicted_bytes})"
            )
            if row.differs_from_plain == "":
                equal = "yes"
            elif otherwise and row.differs_from_stored == "":
                equal = "to its capture"
            else:
                equal = f"NO: {row.differs_from_plain}"
            lines.append(
                f"| {name} | {examined.plain_bytes} | {row.budget} | {row.budget_bytes} | {peak} | "
                f"{row.measured_bytes / examined.plain_bytes:.0%} | {row.recomputed} | {equal} |"
            )
        if otherwise:
            notes.append(f"* **{name}** is held against its own capture: {otherwise}")
    versions = (
        f"Made by `python scripts/model_zoo.py` on {datetime.date.today()}, torch {torch.__version__} on the CPU with one thread, "
        f"transformers {transformers.__version__}, diffusers {diffusers.__version__}."
    )
    (ROOT / "docs" / "model_zoo.md").write_text(HEAD + "\n".join([*lines, "", *notes, *([""] if notes else []), versions, ""]))


if __name__ == "__main__":
    main()
