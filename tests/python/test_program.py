"""The executor on hand-written graphs."""

from __future__ import annotations

import operator
import threading
import weakref

import pytest
import torch
from torch import fx
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch._subclasses import FakeTensorMode

from rockmate import _runtime
from rockmate.lower import lower
from rockmate.meter import Meter

aten = torch.ops.aten


class GraphWriter:
    """A few lines of FX: ``g.call(op, ...)`` gives nodes whose ``val`` is what fake tensors make of them."""

    def __init__(self) -> None:
        self.graph = fx.Graph()
        self.mode = FakeTensorMode()

    def input(self, val: object) -> fx.Node:
        node = self.graph.placeholder(f"arg{len(self.graph.nodes)}")
        node.meta["val"] = self.mode.from_tensor(val) if isinstance(val, torch.Tensor) else val
        return node

    def call(self, target, *args, **kwargs) -> fx.Node:
        node = self.graph.call_function(target, args, kwargs)
        with self.mode:
            vals = fx.map_arg((args, kwargs), lambda n: n.meta["val"])
            node.meta["val"] = target(*vals[0], **vals[1])
        return node

    def lower(self, *outputs) -> _runtime.Program:
        self.graph.output(tuple(outputs))
        return lower(fx.GraphModule(torch.nn.Module(), self.graph))


def kib(n: int) -> torch.Tensor:
    return torch.ones(n * 256)


def test_frees_follow_the_last_use_inside_and_after_each_op():
    # x of 1 KiB from outside. a = -x, b = a * x, c = b.sum(): 1 KiB, 1 KiB, 4 bytes.
    #   neg: +1 inside, 1 after.  mul: 2 inside; a dies: 1 after.  sum: 1 KiB + 4 inside, 4 bytes after.
    g = GraphWriter()
    x = g.input(kib(1))
    b = g.call(aten.mul.Tensor, g.call(aten.neg.default, x), x)
    program = g.lower(g.call(aten.sum.default, b))
    held = kib(1)
    with Meter() as meter:
        (out,), marks = program.profile_run([held], meter.native)
    assert out.item() == -256
    assert marks == [(1024, 1024), (2048, 1024), (1028, 4)]


def test_inputs_are_taken_and_die_inside():
    g = GraphWriter()
    x = g.input(kib(1))
    a = g.call(aten.neg.default, x)
    program = g.lower(g.call(aten.neg.default, a))
    value = kib(1)
    gone = weakref.ref(value)
    with Meter(known=[value]) as meter:
        inputs = [value]
        del value
        (out,), marks = program.profile_run(inputs, meter.native)
    assert inputs == [] and gone() is None
    # neg: x and a inside (+1 KiB), then x goes: 0 after. Again: +1 KiB inside, 0 after.
    assert marks == [(1024, 0), (1024, 0)]
    assert torch.equal(out, kib(1))


def test_inputs_that_nothing_reads_are_dropped_before_the_first_op():
    g = GraphWriter()
    g.input(kib(4))
    y = g.input(kib(1))
    program = g.lower(g.call(aten.neg.default, y))
    inputs = [kib(4), kib(1)]
    with Meter(known=inputs) as meter:
        _, marks = program.profile_run(inputs, meter.native)
    assert marks == [(-4096 + 1024, -4096)]


def test_arguments_of_every_kind():
    half = torch.arange(6.0, dtype=torch.float16).reshape(2, 3)
    g = GraphWriter()
    x, size, one = g.input(half), g.input(3), g.input(1)
    scaled = g.call(aten.mul.Tensor, x, 2.0)  # a number where a tensor is asked for: stays float16
    joined = g.call(aten.cat.default, [x, scaled, x], 1)
    viewed = g.call(aten.view.default, joined, [size, -1])
    index = g.graph.get_attr("index")
    index.meta["val"] = g.mode.from_tensor(torch.tensor([0, 2]))
    picked = g.call(aten.index.Tensor, viewed, [None, index])
    filled = g.call(aten.full.default, [2, size], 7, dtype=torch.int64, device="cpu")
    normed = g.call(aten.layer_norm.default, g.call(aten._to_copy.default, x, dtype=torch.float32), [3])
    times = g.call(aten.mul.Scalar, x, size)
    dropped = g.call(aten.dropout.default, x, one, False)  # an int where a float is asked for
    g.graph.output((picked, filled, normed, times, dropped, None, 5, x, x))
    root = torch.nn.Module()
    root.register_buffer("index", torch.tensor([0, 2]))
    program = lower(fx.GraphModule(root, g.graph))
    got = program([half.clone(), 3, 1])
    wide = torch.cat([half, half * 2, half], 1).view(3, -1)
    want = [wide[:, [0, 2]], torch.full((2, 3), 7), torch.nn.functional.layer_norm(half.float(), [3]), half * 3, half]
    for mine, theirs in zip(got, want, strict=False):
        assert mine.dtype == theirs.dtype and torch.equal(mine, theirs)
    assert got[5:7] == [None, 5]
    assert got[7] is got[8]


def test_sizes_are_computed_in_python():
    g = GraphWriter()
    x, size = g.input(torch.ones(4, 3)), g.input(4)
    double = g.call(operator.mul, size, 3)
    total = g.call(aten.sum.default, g.call(aten.view.default, x, [double]))
    program = g.lower(total, g.call(aten.sym_size.int, x, 1), g.call(aten.mul.Tensor, x, double))
    total, columns, product = program([torch.ones(4, 3), 4])
    assert (total.item(), columns) == (12, 3)
    assert torch.equal(product, torch.full((4, 3), 12.0))


def test_outputs_of_several_results():
    g = GraphWriter()
    x = g.input(torch.ones(4, 6))
    pair = g.call(aten.var_mean.correction, x, [1])
    mean = g.call(operator.getitem, pair, 1)
    parts = g.call(aten.split.Tensor, x, 2, 1)
    first, last = g.call(operator.getitem, parts, 0), g.call(operator.getitem, parts, 2)
    again = g.call(operator.getitem, parts, 2)
    whole = g.call(aten.split.Tensor, x, 3, 1)
    joined = g.call(aten.cat.default, whole, 1)  # a whole list, read twice
    item = g.call(operator.getitem, whole, 1)
    program = g.lower(mean, first, last, again, joined, item)
    value = torch.arange(24.0).reshape(4, 6)
    got = program([value.clone()])
    want = [value.mean(1), value[:, :2], value[:, 4:], value[:, 4:], value, value[:, 3:]]
    for mine, theirs in zip(got, want, strict=True):
        assert torch.equal(mine, theirs)
    with Meter() as meter:
        program.profile_run([value], meter.native)
    assert meter.peak_bytes < 3 * value.nbytes


def test_python_calls_take_nested_arguments_and_hold_nothing():
    seen = []

    def both(pair, *, options):
        seen.extend(weakref.ref(t) for t in pair)
        return [pair[0] + options["add"], {"anything": 1}]

    g = GraphWriter()
    x = g.input(kib(1))
    call = g.graph.call_function(both, ((g.call(aten.neg.default, x), x),), {"options": {"add": x}})
    added = g.graph.call_function(operator.getitem, (call, 0))
    thing = g.graph.call_function(operator.getitem, (call, 1))
    program = g.lower(added, thing)
    held = kib(1)
    out, thing = program([held])
    assert torch.equal(out, torch.zeros(256)) and thing == {"anything": 1}
    assert seen[0]() is None and seen[1]() is held


def test_an_error_names_the_op_and_leaves_nothing_behind():
    g = GraphWriter()
    x, y = g.input(torch.ones(2, 3)), g.input(torch.ones(3, 2))
    a = g.call(aten.neg.default, x)
    product = g.call(aten.mm.default, a, y)
    product.name = "the_product"
    program = g.lower(product, a)
    with (
        Meter() as meter,
        pytest.raises(RuntimeError, match=r"(?s)cannot be multiplied.*instruction 1 of 2: aten::mm.*the_product"),
    ):
        program([torch.ones(2, 3), torch.ones(2, 3)])
    assert meter.current_bytes == 0
    with pytest.raises(IndexError):
        lower_single(aten.select.int, torch.ones(2), 0, 5)([torch.ones(2)])
    assert torch.equal(program([torch.ones(2, 3), torch.ones(3, 2)])[0], -3 * torch.ones(2, 2))


def lower_single(op, val, *rest) -> _runtime.Program:
    graph = fx.Graph()
    graph.output((graph.call_function(op, (graph.placeholder("x"), *rest)),))
    return lower(fx.GraphModule(torch.nn.Module(), graph))


def test_a_python_error_keeps_its_type():
    class Odd(Exception):
        pass

    def fail(x):
        raise Odd("no")

    program = lower_single(fail, torch.ones(1))
    for _ in range(2):
        with pytest.raises(Odd, match="no") as caught:
            program([torch.ones(1)])
        if hasattr(caught.value, "__notes__"):
            assert "instruction 0 of 1" in caught.value.__notes__[0]


def test_bad_calls_and_bad_graphs_are_refused():
    program = lower_single(aten.neg.default, torch.ones(1))
    with pytest.raises(ValueError, match="1 inputs and was given 2"):
        program([torch.ones(1), torch.ones(1)])
    with pytest.raises(TypeError, match="one list"):
        program(torch.ones(1))
    with pytest.raises(ValueError, match="argument mat2 is missing"):
        lower_single(aten.mm.default, torch.ones(1))
    with pytest.raises(ValueError, match="argument dim"):
        lower_single(aten.select.int, torch.ones(1), "zero", 0)
    graph = fx.Graph()
    graph.output(graph.call_method("neg", (graph.placeholder("x"),)))
    with pytest.raises(ValueError, match="call_method nodes cannot be run"):
        lower(fx.GraphModule(torch.nn.Module(), graph))


def test_several_threads_and_itself_inside_itself():
    g = GraphWriter()
    x = g.input(torch.ones(64))
    for _ in range(50):
        x = g.call(aten.add.Scalar, x, 1)
    program = g.lower(x)
    results = []

    def work(start: float) -> None:
        for _ in range(50):
            results.append(torch.equal(program([torch.full((64,), start)])[0], torch.full((64,), start + 50)))

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results) and len(results) == 200

    depth = []

    def again(x):
        depth.append(1)
        return nested([x])[0] if len(depth) < 3 else x

    nested = lower_single(again, torch.ones(1))
    assert nested([torch.ones(1)])[0].item() == 1 and len(depth) == 3


def random_graph() -> _runtime.Program:
    """bernoulli twice, and the first one replayed: returns (first, second, replayed)."""
    g = GraphWriter()
    x = g.input(torch.full((100,), 0.5))
    both = g.graph.call_function(run_and_save_rng_state, (aten.bernoulli.default, x))
    both.meta["val"] = (torch.empty(0), x.meta["val"])
    state = g.graph.call_function(operator.getitem, (both, 0))
    first = g.graph.call_function(operator.getitem, (both, 1))
    second = g.graph.call_function(aten.bernoulli.default, (x,))
    replayed = g.graph.call_function(run_with_rng_state, (state, aten.bernoulli.default, x))
    replayed.meta["val"] = x.meta["val"]
    return g.lower(first, second, replayed)


def test_random_ops_replay_and_the_stream_does_not_notice():
    program = random_graph()
    assert len(program) == 3  # native, not called back
    half = torch.full((100,), 0.5)
    torch.manual_seed(3)
    want = [torch.bernoulli(half), torch.bernoulli(half), torch.rand(1)]
    torch.manual_seed(3)
    first, second, replayed = program([half])
    assert torch.equal(first, want[0]) and torch.equal(second, want[1]) and torch.equal(replayed, want[0])
    assert torch.equal(torch.rand(1), want[2])


def test_bytes_of_generator_states():
    # A draw of 100 floats is 400 bytes. A state is 5056 bytes, held from the save until the replay ends, and the
    # stream's own state as much again while the replay runs.
    state = torch.get_rng_state().nbytes
    half = torch.full((100,), 0.5)
    with Meter() as meter:
        _, marks = random_graph().profile_run([half], meter.native)
    assert marks[0] == (state + 400, state + 400)
    assert marks[1] == (state + 800, state + 800)
    assert marks[2] == (2 * state + 1200, 1200)


def test_the_stream_comes_back_after_a_failed_replay():
    def fail(x):
        torch.rand(5)
        raise KeyError("inside")

    builder = _runtime.ProgramBuilder()
    state, x = builder.input(), builder.input()
    builder.python(fail, (x,), {}, [(0, -1, None)], "fail")
    builder.replay_rng(torch.device("cpu"), state)
    program = builder.finish([None])
    torch.manual_seed(5)
    want = torch.rand(1)
    torch.manual_seed(5)
    other = torch.Generator().manual_seed(9).get_state()
    with pytest.raises(KeyError):
        program([other, torch.ones(1)])
    assert torch.equal(torch.rand(1), want)


def test_strides_come_back_to_the_traced_ones_where_a_later_op_relies_on_them():
    def channels_last(x):
        return x.contiguous(memory_format=torch.channels_last) + 0

    g = GraphWriter()
    builder = _runtime.ProgramBuilder()
    x = builder.input()
    (y,) = builder.python(channels_last, (x,), {}, [(0, -1, ([1, 4, 2, 2], [16, 4, 2, 1]))], "conv")
    (free,) = builder.python(channels_last, (y,), {}, [(0, -1, None)], "conv2")
    (flat,) = builder.call(aten.view.default, (y, [16]), {}, [(0, -1, None)], "view")
    value = torch.arange(16.0).reshape(1, 4, 2, 2)
    program = builder.finish([flat, free])
    flat, free = program([value])
    assert torch.equal(flat, torch.arange(16.0)) and free.stride() == (16, 1, 8, 4)

    # A dimension of size 1, an empty tensor, other sizes than traced: nothing to bring back, nothing copied.
    for sizes, layout in [((2, 1), ([2, 1], [1, 2])), ((0, 3), ([0, 3], [7, 7])), ((3, 2), ([2, 3], [1, 2]))]:
        builder = _runtime.ProgramBuilder()
        (out,) = builder.python(operator.pos, (builder.input(),), {}, [(0, -1, layout)], "same")
        value = torch.ones(sizes)
        assert builder.finish([out])([value])[0].data_ptr() == value.data_ptr()
    del g


def test_the_tracer_asks_for_strides_only_where_they_matter():
    x = torch.ones(1, 4, 2, 2)

    def program_of(make_user) -> _runtime.Program:
        g = GraphWriter()
        node = g.call(aten.relu.default, g.input(x))
        user = make_user(g, node)
        return g.lower(g.call(aten.sum.default, user))

    # The kernel keeps the strides of its input, here not those that were traced.
    given = x.contiguous(memory_format=torch.channels_last)
    elementwise = program_of(lambda g, n: g.call(aten.neg.default, n))
    viewed = program_of(lambda g, n: g.call(aten.view.default, n, [16]))
    assert elementwise([given])[0].item() == -16
    assert viewed([given])[0].item() == 16


def test_no_autograd_no_autocast_and_mutations_count():
    g = GraphWriter()
    w, x = g.input(torch.ones(4, 4)), g.input(torch.ones(4, 4))
    product = g.call(aten.mm.default, w, x)
    written = g.call(aten.copy_.default, x, product)
    program = g.lower(product, written)
    weight = torch.ones(4, 4, requires_grad=True)
    buffer = torch.ones(4, 4)
    version = buffer._version
    with torch.autocast("cpu", torch.bfloat16), torch.enable_grad():
        product, written = program([weight, buffer])
    assert product.dtype == torch.float32 and not product.requires_grad and product.grad_fn is None
    assert torch.equal(buffer, product) and written is buffer
    assert buffer._version == version + 1


def test_complex_and_double():
    g = GraphWriter()
    x = g.input(torch.ones(8, dtype=torch.float64))
    spectrum = g.call(aten._fft_r2c.default, x, [0], 0, True)
    program = g.lower(g.call(aten.mul.Tensor, spectrum, 1j))
    value = torch.randn(8, dtype=torch.float64)
    assert torch.equal(program([value])[0], torch.fft.rfft(value) * 1j)
