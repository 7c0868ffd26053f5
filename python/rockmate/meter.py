"""Measuring memory to the byte: every allocation and free that PyTorch reports."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from rockmate import _runtime

__all__ = ["Meter", "Peak", "measure_peak", "paused"]

Device = torch.device | str | None


class Meter:
    """Counts bytes allocated and freed inside a ``with`` block, relative to its start.

    It sees what PyTorch's allocators report on this thread and on the autograd engine's threads. Meters nest. A torch
    profiler and a meter refuse to run on the same thread: both listen at the same place.

    Memory from before the block counts negative when it is freed inside: on accelerators always, on the CPU only for
    tensors given as ``known`` (the CPU allocator does not know the size of what it gave out unwatched).

    Args:
        device: count this device only ("cpu", "cuda", "cuda:1"); all devices together by default.
        known: tensors alive now whose free inside the block has to be seen.
        record: keep every event, for ``trace`` and ``peak_excluding``. Without it the meter takes no memory of its own.

    Raises:
        RuntimeError: when entered while a torch profiler runs on this thread, or left while something that was
            started later still runs.
    """

    def __init__(self, device: Device = None, *, known: Iterable[torch.Tensor] = (), record: bool = True) -> None:
        self.native = _runtime.Meter(None if device is None else torch.device(device), record)
        self._known = [storage for tensor in known for storage in _storages(tensor)]
        self._record = record

    def __enter__(self) -> Meter:
        self.native.start()
        for storage in self._known:
            if storage.device.type == "cpu":
                self.native.add_known(storage.data_ptr(), storage.nbytes())
        self._known.clear()
        return self

    def __exit__(self, *exception: object) -> None:
        self.native.stop()

    @property
    def current_bytes(self) -> int:
        """Bytes held now beyond the start, or at the end of the block."""
        return self.native.current_bytes

    @property
    def peak_bytes(self) -> int:
        """The most bytes held at once beyond the start."""
        return self.native.peak_bytes

    def trace(self, excluding: Iterable[torch.Tensor | torch.UntypedStorage] = ()) -> list[int]:
        """Bytes after every event, beginning with 0 at the start.

        Args:
            excluding: tensors or storages alive now, left out as if they had never been allocated.
        """
        if not self._record:
            raise RuntimeError("[meter] it was made with record=False and has no trace")
        return self.native.trace_excluding([storage.data_ptr() for item in excluding for storage in _storages(item)])

    def peak_excluding(self, items: Iterable[torch.Tensor | torch.UntypedStorage]) -> int:
        """The peak as if the storages of these tensors, alive now, had never been allocated. In bytes."""
        return max(self.trace(items))


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """What is allocated inside is left out by every meter of this thread: work that belongs to no step (compiling)."""
    _runtime.pause_meters(True)
    try:
        yield
    finally:
        _runtime.pause_meters(False)


@dataclass(frozen=True)
class Peak:
    """What ``measure_peak`` found. Bytes beyond what was held when it began."""

    total_bytes: int
    """The most bytes held at once."""
    activation_bytes: int
    """The same without the gradients that are left at the end in ``.grad`` of the excluded parameters."""
    trace: list[int] = field(repr=False)
    """Bytes after every allocation and free, without those gradients."""


def measure_peak(
    fn: Callable[[], Any],
    *,
    exclude_grads_of: torch.nn.Module | Iterable[torch.Tensor] | None = None,
    device: Device = None,
) -> Peak:
    """Calls ``fn()`` once and tells the most memory that it held.

    Args:
        fn: one training step, or anything else. Its result is dropped after the measurement ends.
        exclude_grads_of: a module or parameters; what ends up as their ``.grad`` does not count as activations.
        device: count this device only; all devices together by default.
    """
    if exclude_grads_of is None:
        parameters: list[torch.Tensor] = []
    elif isinstance(exclude_grads_of, torch.nn.Module):
        parameters = list(exclude_grads_of.parameters())
    else:
        parameters = list(exclude_grads_of)
    # Gradients of an earlier step may be dropped inside (zero_grad).
    meter = Meter(device, known=[parameter.grad for parameter in parameters if parameter.grad is not None])
    with meter:
        result = fn()
    trace = meter.trace(parameter.grad for parameter in parameters if parameter.grad is not None)
    del result
    return Peak(meter.peak_bytes, max(trace), trace)


def _storages(item: torch.Tensor | torch.UntypedStorage) -> list[torch.UntypedStorage]:
    if isinstance(item, torch.UntypedStorage):
        return [item]
    if item.layout is torch.sparse_coo:
        return [item._indices().untyped_storage(), item._values().untyped_storage()]
    return [item.untyped_storage()]
