"""The ``rockmate`` command that belongs to the package under test."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def find_command() -> str | None:
    """Of ``$ROCKMATE_COMMAND``, beside this Python, or on the PATH."""
    if given := os.environ.get("ROCKMATE_COMMAND"):
        return given
    beside = Path(sys.executable).parent / "rockmate"
    return str(beside) if beside.exists() else shutil.which("rockmate")
