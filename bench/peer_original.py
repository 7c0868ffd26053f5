"""The original Rockmate (PyPI ``rockmate`` and ``rkgb``): does it run here?

    python bench/peer_original.py        tries it, and stores what happened in bench/results/original_rockmate.json

It is installed into an environment of its own in a temporary folder, without its dependencies: torch is the one that runs this,
the others are small. Then one training step of a small model is asked of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from report import RESULTS

PACKAGES = ["rockmate==2.0.0", "rkgb==2.0.0"]
DEPENDENCIES = ["configmypy", "pulp", "astunparse", "psutil"]
STORED = RESULTS / "original_rockmate.json"
STEP = """
import torch
from rockmate import Rockmate
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(4)))
x = torch.randn(32, 64)
Rockmate(model, x, 1 << 20)(x).sum().backward()
"""


def try_original() -> dict[str, Any]:
    """What was installed, the step at which it ended, and the last line of what it said."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for packages in (["--no-deps", *PACKAGES], DEPENDENCIES):
            done = subprocess.run([*pip, *packages], capture_output=True, text=True)
            if done.returncode:
                return {"packages": PACKAGES, "stage": "install", "error": _last_line(done.stderr)}
        # Its own packages come first, then those of the environment that runs this, for torch and numpy.
        own = subprocess.run(
            [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        path = os.pathsep.join([own, *(entry for entry in sys.path if entry.endswith("site-packages"))])
        for stage, code in (("import", "import rockmate"), ("step", STEP)):
            done = subprocess.run(
                [str(python), "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
            )
            if done.returncode:
                return {"packages": PACKAGES, "stage": stage, "error": _last_line(done.stderr)}
    return {"packages": PACKAGES, "stage": "done", "error": ""}


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def stored_outcome() -> str:
    """In a sentence, for the tables."""
    if not STORED.exists():
        return "not tried: python bench/peer_original.py"
    found = json.loads(STORED.read_text())
    packages = " and ".join(found["packages"]).replace("==", " ")
    if found["stage"] == "done":
        return f"{packages} run one step of a small model; no table of this benchmark was made with it"
    return f"{packages} fail at {found['stage']}: {found['error']}"


if __name__ == "__main__":
    outcome = try_original()
    STORED.write_text(json.dumps(outcome, indent=1) + "\n")
    print(stored_outcome())
