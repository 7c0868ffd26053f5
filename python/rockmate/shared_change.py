"""Changes of PyTorch's global state that are made while somebody needs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from torch._C import DispatchKey
from torch._ops import OpOverload

Saved = TypeVar("Saved")


class SharedChange(Generic[Saved]):
    """A change that nests and that several threads may be inside of: the first makes it, the last undoes it.

    Args:
        make: makes the change and returns what it replaced.
        undo: puts that back.
    """

    def __init__(self, make: Callable[[], Saved], undo: Callable[[Saved], None]) -> None:
        self._make = make
        self._undo = undo
        self._lock = threading.RLock()
        self._depth = 0
        self._saved: list[Saved] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._depth == 0:
                self._saved.append(self._make())
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    self._undo(self._saved.pop())


PythonKernels = dict[OpOverload, dict[Any, Any]]
_TRACED_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def has_traced_kernels(op: OpOverload) -> bool:
    """Whether PyTorch traces the op by a decomposition written in Python, instead of the C++ code that runs it."""
    return any(key in op.py_kernels for key in _TRACED_KEYS)


def take_traced_kernels(ops: Iterable[OpOverload]) -> PythonKernels:
    """Take those decompositions away. Returns them, for :func:`put_kernels_back`."""
    taken: PythonKernels = {}
    for op in ops:
        taken[op] = {key: op.py_kernels.pop(key) for key in _TRACED_KEYS if key in op.py_kernels}
        op._dispatch_cache.clear()
    return taken


def put_kernels_back(taken: PythonKernels) -> None:
    """Instead of any that were put in their place."""
    for op, kernels in taken.items():
        for key in _TRACED_KEYS:
            op.py_kernels.pop(key, None)
        op.py_kernels.update(kernels)
        op._dispatch_cache.clear()
