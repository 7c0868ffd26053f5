"""Writes docs/model_zoo.md: every family of the zoo (tests/python/zoo.py) trained at every budget, as the tests do it.

Names of families as arguments: only these are trained again, and the rows of the others stay as they are.
"""

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

Small models of fourteen families (`tests/python/zoo.py`), in train mode with their dropout on, three SGD steps each. *Equal*:
loss, every gradient, buffers and the random stream after each step, to the bit, against plain PyTorch. *Peak*: measured by the
allocation meter; predicted and measured peaks are the same to the byte unless both are shown. *50%* is half of the peak
without recomputation, or halfway from the least budget where that is more than half.

"""


def rows_of(name: str) -> tuple[list[str], list[str]]:
    """The lines of the table, and the notes below it."""
    if name in zoo.REFUSED:
        return [f"| {name} | | | | | | | refused |"], [f"* **{name}** is refused: {zoo.REFUSED[name].reason}"]
    try:
        examined = zoo.examine(name)
    except Exception as error:
        return [f"| {name} | | | | | | | FAILED |"], [f"* **{name}** failed: {str(error).splitlines()[0]}"]
    lines = []
    for row in examined.rows:
        predicted = "" if row.measured_bytes == row.predicted_bytes else f" (predicted {row.predicted_bytes})"
        equal = f"NO: {row.differs_from_plain}" if row.differs_from_plain else "yes"
        share = row.measured_bytes / examined.plain_bytes
        lines.append(
            f"| {name} | {examined.plain_bytes} | {row.budget} | {row.budget_bytes} | {row.measured_bytes}{predicted} | "
            f"{share:.0%} | {row.recomputed} | {equal} |"
        )
    notes = []
    if name in zoo.IN_PIECES:
        notes.append(f"* **{name}** can't be captured whole and runs in pieces; their common peak is predicted roughly.")
    return lines, notes


def main() -> None:
    torch.set_num_threads(1)
    lines = ["| model | plain peak | budget | bytes | peak | of plain | recomputed ops | equal |", "|---" * 8 + "|"]
    notes: list[str] = []
    table = ROOT / "docs" / "model_zoo.md"
    old = table.read_text().splitlines() if sys.argv[1:] else []
    for name in zoo.FAMILIES:
        new_lines = [line for line in old if line.startswith(f"| {name} |")]
        new_notes = [line for line in old if line.startswith(f"* **{name}**")]
        if not old or name in sys.argv[1:]:
            new_lines, new_notes = rows_of(name)
        print(*new_lines, *new_notes, sep="\n", flush=True)
        lines += new_lines
        notes += new_notes
    versions = (
        f"Made by `python scripts/model_zoo.py` on {datetime.date.today()}, torch {torch.__version__} on the CPU with one "
        f"thread, transformers {transformers.__version__}, diffusers {diffusers.__version__}."
    )
    table.write_text(HEAD + "\n".join([*lines, "", *notes, *([""] if notes else []), versions, ""]))


if __name__ == "__main__":
    main()
