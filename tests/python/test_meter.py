"""The allocation meter: bytes counted by hand."""

from __future__ import annotations

import threading

import pytest
import torch

from rockmate.meter import Meter, measure_peak, paused


def kib(n: int) -> torch.Tensor:
    return torch.empty(n * 1024, dtype=torch.uint8)


def test_peak_current_and_trace():
    with Meter() as meter:
        x = kib(1)
        y = kib(2)
        assert meter.current_bytes == 3072
        del x
        assert meter.current_bytes == 2048
        z = kib(1)
    del z
    assert meter.current_bytes == 3072  # what happens after the block is not seen
    assert meter.peak_bytes == 3072
    assert meter.trace() == [0, 1024, 3072, 2048, 3072]
    assert meter.trace([y]) == [0, 1024, 1024, 0, 1024]
    assert meter.peak_excluding([y]) == meter.peak_excluding([y.untyped_storage()]) == 1024
    assert meter.peak_excluding([kib(1)]) == 3072  # allocated later


def test_an_earlier_tenant_of_an_excluded_address_still_counts():
    with Meter() as meter:
        for _ in range(3):  # likely the same address each time; only the last one is alive
            x = None
            x = kib(64)
    assert meter.trace()[-1] == 65536
    trace = meter.trace([x])
    assert trace[-1] == 0 and max(trace) == 65536


def test_meters_nest():
    with Meter() as outer:
        x = kib(1)
        with Meter() as inner:
            y = kib(2)
            del x  # from before the inner one: not its business on the CPU
        z = kib(4)
    assert inner.peak_bytes == inner.current_bytes == 2048
    assert outer.trace() == [0, 1024, 3072, 2048, 6144]
    del y, z


def test_known_memory_counts_negative():
    x, y, z = kib(1), kib(2), kib(4)
    with Meter() as outer, Meter(known=[x, y]) as meter:
        del x, z
        assert meter.current_bytes == -1024
        assert outer.current_bytes == 0
    assert meter.peak_bytes == 0
    del y
    assert meter.current_bytes == -1024


def test_sizes_remembered_from_an_earlier_watch_do_not_lie():
    with Meter():
        x = kib(64)
    del x
    y = kib(32)  # may live where x lived, whose size the allocator still remembers
    with Meter() as meter:
        del y
    assert meter.trace() == [0]


def test_one_device_only():
    with Meter("cuda") as other, Meter("cpu") as cpu:
        x = kib(1)
    assert (cpu.peak_bytes, other.peak_bytes) == (1024, 0)
    del x


def test_paused():
    before = kib(1)
    with Meter() as outer, Meter() as inner:
        x = kib(1)
        with paused():
            y = kib(2)
            del x  # counted before: its free counts
        del y, before
        z = kib(4)
    assert inner.trace() == outer.trace() == [0, 1024, 0, 4096]
    del z


def test_a_profiler_and_a_meter_stay_out_of_each_others_way():
    refused = pytest.raises(RuntimeError, match="a torch profiler runs on this thread")
    with torch.profiler.profile(profile_memory=True), refused:
        Meter().__enter__()
    with Meter() as meter:
        assert not torch.autograd._profiler_enabled()
        with pytest.raises(RuntimeError, match="already enabled"):
            torch.profiler.profile(profile_memory=True).__enter__()
        x = kib(1)
    assert meter.current_bytes == 1024
    with torch.profiler.profile(profile_memory=True) as profiler:
        y = kib(2)
    assert len(profiler.events()) > 0
    del x, y


def test_the_wrong_order_is_refused():
    first, second = Meter(), Meter()
    first.__enter__()
    second.__enter__()
    with pytest.raises(RuntimeError, match="started later"):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    first.__exit__(None, None, None)
    with Meter() as meter, pytest.raises(RuntimeError, match="runs already"):
        meter.__enter__()
    with pytest.raises(RuntimeError, match="record=False"):
        Meter(record=False).trace()


def test_other_threads_are_left_alone():
    with Meter() as meter:
        thread = threading.Thread(target=lambda: kib(1))
        thread.start()
        thread.join()
    assert meter.trace() == [0]


def test_compiling_under_a_meter():
    torch._dynamo.reset()
    f = torch.compile(lambda x: (x.sin() * 2).sum(), backend="aot_eager", fullgraph=True)
    x = torch.ones(256, requires_grad=True)
    with Meter() as meter:
        f(x).backward()
    assert torch.allclose(x.grad, 2 * torch.ones(256).cos())
    assert meter.peak_bytes >= 1024


def test_measure_peak_leaves_parameter_gradients_out():
    # y = x @ w: 4 x 8 floats; backward: dw is 16 x 8 floats, 512 bytes, and stays as w.grad.
    w = torch.ones(16, 8, requires_grad=True)
    x = torch.ones(4, 16)

    def step() -> None:
        w.grad = None
        (x @ w).sum().backward()

    step()
    for _ in range(3):  # the gradient of the step before is freed inside: known to the meter
        peak = measure_peak(step, exclude_grads_of=[w])
        assert peak.trace[-1] == -512  # the old gradient is gone, the new one is left out
        assert peak.activation_bytes < peak.total_bytes + 512
    w.grad = None
    peak = measure_peak(step, exclude_grads_of=[w])
    assert peak.trace[-1] == 0
    # y 128 bytes, sum 4, its gradient 4 (backward's ones), all at once at most: the expanded gradient is a view.
    assert peak.activation_bytes <= 128 + 8 + 512
    assert peak.total_bytes >= 512


def test_backward_is_metered_where_it_runs():
    linear = torch.nn.Linear(64, 64)
    x = torch.ones(32, 64)
    peak = measure_peak(lambda: linear(x).sum().backward(), exclude_grads_of=linear)
    grads = 64 * 64 * 4 + 64 * 4
    assert peak.total_bytes >= grads
    assert peak.trace[-1] == 0
