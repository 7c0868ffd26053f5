"""Make PyTorch's tracing quicker where that changes nothing but the time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._dynamo import symbolic_convert

_lock = threading.Lock()
_depth = 0
_saved: list[Any] = []


@contextmanager
def quick_tracing() -> Iterator[None]:
    """Trace without two things that take a good part of the time; nests, and may be entered by several threads.

    Tracing makes millions of small objects that live until it ends: collecting garbage meanwhile finds none of it. And Dynamo
    parses every source file that it meets for the names of functions that only its debug log shows.
    """
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            _saved[:] = [gc.isenabled(), symbolic_convert.get_funcname]
            gc.disable()
            symbolic_convert.get_funcname = lambda filename, lineno: None  # type: ignore[assignment]
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                collecting, symbolic_convert.get_funcname = _saved
                if collecting:
                    gc.enable()
