"""Ops run alone, to price them: exact about bytes, and nobody notices."""

from __future__ import annotations

import signal

import pytest
import torch

from rockmate.lower import profile_op

aten = torch.ops.aten


def kib(n: int) -> torch.Tensor:
    return torch.ones(n * 256)


def test_profile_is_exact_about_bytes():
    a, b = torch.randn(8, 16), torch.randn(16, 4)
    result = profile_op(aten.mm.default, (a, b), max_runs=3)
    assert result.output_bytes == [8 * 4 * 4] and result.output_strides == [[4, 1]]
    assert result.output_aliases_input == [False]
    assert result.peak_bytes == result.kept_bytes == 128
    assert result.num_runs <= 3 and result.time_us > 0

    view = profile_op(aten.t.default, (a,))
    assert view.output_aliases_input == [True] and view.peak_bytes == 0
    parts = profile_op(aten.split.Tensor, (a, 2))
    assert len(parts.output_bytes) == 4 and len(set(parts.output_pointers)) == 1

    before = torch.get_rng_state()
    dropout = profile_op(aten.native_dropout.default, (a, 0.5, True))
    assert torch.equal(torch.get_rng_state(), before)
    assert dropout.kept_bytes == a.nbytes + a.numel()


def test_profile_under_a_torch_profiler():
    x = kib(1)
    with torch.profiler.profile(profile_memory=True) as profiler:
        x.neg()
        result = profile_op(aten.sin.default, (x,))
        x.abs()
    assert (result.peak_bytes, result.kept_bytes) == (1024, 1024)
    names = {event.name for event in profiler.events()}
    assert {"aten::neg", "aten::abs"} <= names and "aten::sin" not in names


def test_profile_can_be_interrupted():
    def late(x):
        signal.raise_signal(signal.SIGUSR1)
        return x

    def handler(*_):
        raise InterruptedError

    previous = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(InterruptedError):
            profile_op(late, (torch.ones(1),), max_runs=10)
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_profile_tells_the_workspace():
    # Some kernels allocate inside; here an "op" made of several, through Python.
    def inside(x):
        return torch.cat([x, x]).neg()[:1].clone()

    x = kib(1)
    result = profile_op(inside, (x,))
    # cat 2 KiB, neg 2 KiB more: 4 KiB at once; both are gone when the result of 4 bytes is left.
    assert result.peak_bytes == 4096
    assert result.kept_bytes == 4
