"""Small JSON files that survive interruption: written whole or not at all, and never trusted blindly when read."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any


def cache_directory() -> Path:
    """Where measured costs and solved blocks are kept: ``$ROCKMATE_CACHE_DIR``, else ``~/.cache/rockmate``."""
    configured = os.environ.get("ROCKMATE_CACHE_DIR")
    if configured:
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rockmate"


def read_json(path: Path, format_name: str) -> dict[str, Any]:
    """The file's entries; empty when there is no file, or (with a warning) when it can't be read.

    A file that is damaged is set aside as ``<name>.corrupt``, so that nothing is lost and the next write starts afresh.
    """
    try:
        content = json.loads(path.read_text())
        if content["format"] != format_name or not isinstance(content["entries"], dict):
            raise ValueError(f"its format is {content['format']!r}, not {format_name!r}")
        return dict(content["entries"])
    except FileNotFoundError:
        return {}
    except OSError as error:
        warnings.warn(f"[cache] {path} can't be read ({error}); going on without it", stacklevel=2)
        return {}
    except (ValueError, KeyError, TypeError) as error:
        aside = path.with_suffix(path.suffix + ".corrupt")
        warnings.warn(f"[cache] {path} is damaged ({error}); set aside as {aside.name}, measuring anew", stacklevel=2)
        with contextlib.suppress(OSError):
            os.replace(path, aside)
        return {}


def write_json(path: Path, format_name: str, entries: dict[str, Any]) -> None:
    """Replace the file in one step. A cache that can't be written costs time later but is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    except OSError as error:
        warnings.warn(f"[cache] {path} can't be written ({error}); it will be measured again next time", stacklevel=2)
        return
    try:
        with os.fdopen(handle, "w") as file:
            json.dump({"format": format_name, "entries": entries}, file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
