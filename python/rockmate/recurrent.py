"""Trace LSTM, GRU and RNN layers as the kernels that plain PyTorch runs.

Under tracing, PyTorch swaps these layers for Python decompositions made for inference: on the CPU, that of an LSTM calls
oneDNN's kernel without the workspace that its backward pass reads, and others may round differently from the layers themselves.
Here the layers are traced through their own C++ code instead; for the one that hides behind a check of real memory, oneDNN's
LSTM, the few lines around its kernel are written out. That kernel makes its workspace only where gradients are enabled, which
they are not inside of a compiled step: it is called as an op of our own that enables them.

A GRU on the CPU is written out, too. Its code changes gates in place that are columns of a matrix; traced, each result would be
a dense tensor, and an exponential of another layout rounds otherwise: vectorized where the former is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey

from rockmate.shared_change import PythonKernels, SharedChange, put_kernels_back, take_traced_kernels

_aten = torch.ops.aten
_LAYERS = (
    _aten.lstm.data,
    _aten.gru.data,
    _aten.rnn_tanh.input,
    _aten.rnn_tanh.data,
    _aten.rnn_relu.input,
    _aten.rnn_relu.data,
)
_ONEDNN_LSTM = 2  # ideep::rnn_kind::LSTM

_library = torch.library.Library("rockmate", "FRAGMENT")
_library.define(
    "onednn_lstm_layer(Tensor input, Tensor w0, Tensor w1, Tensor w2, Tensor w3, Tensor hx, Tensor cx, bool reverse, "
    "int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) "
    "-> (Tensor, Tensor, Tensor, Tensor)"
)


def _kernel_arguments(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Our op's arguments as oneDNN's kernel takes them."""
    return (*arguments[:8], [], _ONEDNN_LSTM, *arguments[8:])


@torch.library.impl(_library, "onednn_lstm_layer", "CPU")
def _run_layer(*arguments: Any) -> tuple[Tensor, ...]:
    with torch._C._AutoDispatchBelowAutograd(), torch.enable_grad():
        return _aten.mkldnn_rnn_layer.default(*_kernel_arguments(arguments))  # type: ignore[no-any-return]


@torch.library.impl(_library, "onednn_lstm_layer", "Meta")
def _trace_layer(*arguments: Any) -> tuple[Tensor, ...]:
    """The workspace is traced as empty, its size is oneDNN's to choose: what it takes is found when costs are measured."""
    return _aten.mkldnn_rnn_layer.default(*_kernel_arguments(arguments))  # type: ignore[no-any-return]


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:7], *output)
    ctx.constants = inputs[7:]


def _layer_backward(ctx: Any, grad_output: Any, grad_hidden: Any, grad_cell: Any, _: Any) -> tuple[Any, ...]:
    if grad_output is None and grad_hidden is None and grad_cell is None:
        return (None,) * 14
    *inputs, output, hidden, cell, workspace = ctx.saved_tensors
    gradients = torch.ops.rockmate.onednn_lstm_layer_backward.default(
        *inputs, output, hidden, cell, grad_output, grad_hidden, grad_cell, *ctx.constants, workspace
    )
    return (*gradients, *(None,) * 7)


_library.define(
    "onednn_lstm_layer_backward(Tensor input, Tensor w0, Tensor w1, Tensor w2, Tensor w3, Tensor hx, Tensor cx, Tensor output, "
    "Tensor hy, Tensor cy, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int hidden_size, "
    "int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train, Tensor workspace) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)


@torch.library.impl(_library, "onednn_lstm_layer_backward", "CPU")
def _run_layer_backward(*arguments: Any) -> tuple[Tensor, ...]:
    """The kernel returns one tensor as the gradient of both biases; autograd would copy it for one of them."""
    tensors, constants, workspace = arguments[:13], arguments[13:20], arguments[20]
    reverse, hidden_size, num_layers, has_biases, bidirectional, batch_first, train = constants
    with torch._C._AutoDispatchBelowAutograd():
        gradients = _aten.mkldnn_rnn_layer_backward.default(
            *tensors,
            reverse,
            _ONEDNN_LSTM,
            hidden_size,
            num_layers,
            has_biases,
            train,
            bidirectional,
            [],
            batch_first,
            workspace,
        )
        return (*gradients[:4], gradients[4].clone(), *gradients[5:])


@torch.library.impl(_library, "onednn_lstm_layer_backward", "Meta")
def _trace_layer_backward(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in arguments[:7])


torch.library.register_autograd("rockmate::onednn_lstm_layer", _layer_backward, setup_context=_save_for_backward, lib=_library)


def _install() -> PythonKernels:
    written_out: dict[Any, Callable[..., Any]] = {
        _aten.lstm.input: _lstm,
        _aten.gru.input: _gru,
        _aten.gru_cell.default: _gru_cell,
    }
    taken = take_traced_kernels((*_LAYERS, *written_out))
    for op, kernel in written_out.items():
        op.py_kernels[DispatchKey.CompositeImplicitAutograd] = kernel
    return taken


#: Trace recurrent layers as plain PyTorch runs them: ``with recurrent_layers(): ...``
recurrent_layers = SharedChange(_install, put_kernels_back)


def _lstm(
    input: Tensor,
    hx: list[Tensor],
    params: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    arguments = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    if not _runs_in_onednn(input, hx, params):
        return _aten.lstm.input._op_dk(DispatchKey.CompositeImplicitAutograd, *arguments)  # type: ignore[no-any-return]
    return _onednn_lstm(*arguments)


def _runs_in_onednn(input: Tensor, hx: list[Tensor], params: list[Tensor]) -> bool:
    """Mirrors ``use_mkldnn`` and ``lstm`` in ATen's ``native/RNN.cpp``."""
    has_projections = hx[0].size(2) != hx[1].size(2)
    return (
        torch._C._has_mkldnn
        and torch._C._get_mkldnn_enabled()
        and all(tensor.device.type == "cpu" for tensor in (input, *hx, *params))
        and _has_onednn_kernel(input.dtype)
        and input.numel() != 0
        and not has_projections
    )


def _has_onednn_kernel(dtype: torch.dtype) -> bool:
    """Some types only on processors that have instructions for them."""
    if dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    if dtype is torch.float16:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    return dtype is torch.float32


def _onednn_lstm(
    input: Tensor,
    hx: list[Tensor],
    params: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Mirrors ``mkldnn_rnn`` in ATen's ``native/mkldnn/RNN.cpp``: one call of the kernel for each layer and direction."""
    layer_input = (input.transpose(0, 1) if batch_first else input).contiguous()
    hidden, cell = hx[0].contiguous(), hx[1].contiguous()
    last_hidden: list[Tensor] = []
    last_cell: list[Tensor] = []

    def run_layer(layer_input: Tensor, index: int, weights: list[Tensor], is_reverse: bool) -> Tensor:
        if not has_biases:
            weights = [*weights, torch.zeros_like(weights[0]), torch.zeros_like(weights[1])]  # not looked at
        output, hidden_state, cell_state, *_ = torch.ops.rockmate.onednn_lstm_layer.default(
            layer_input,
            *weights,
            hidden[index],
            cell[index],
            is_reverse,
            hidden.size(2),
            num_layers,
            has_biases,
            bidirectional,
            batch_first,
            train,
        )
        last_hidden.append(hidden_state)
        last_cell.append(cell_state)
        return output  # type: ignore[no-any-return]

    output = _through_layers(run_layer, layer_input, params, has_biases, num_layers, dropout if train else 0, bidirectional)
    return output.transpose(0, 1) if batch_first else output, torch.stack(last_hidden), torch.stack(last_cell)


def _through_layers(
    run_layer: Callable[[Tensor, int, list[Tensor], bool], Tensor],
    layer_input: Tensor,
    params: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> Tensor:
    """The output of the last layer. Each layer and direction is run with its input, number, weights and whether in reverse."""
    directions = 2 if bidirectional else 1
    per_layer = 4 if has_biases else 2
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            outputs.append(run_layer(layer_input, index, params[index * per_layer : (index + 1) * per_layer], direction > 0))
        layer_input = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if dropout != 0 and layer < num_layers - 1:
            layer_input = torch.dropout(layer_input, dropout, True)
    return layer_input


def _gru(
    input: Tensor,
    hx: Tensor,
    params: list[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """Mirrors ``gru`` and the layers that it goes through in ATen's ``native/RNN.cpp``."""
    if input.device.type != "cpu":
        arguments = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        return _aten.gru.input._op_dk(DispatchKey.CompositeImplicitAutograd, *arguments)  # type: ignore[no-any-return]
    hidden = hx.unbind(0)
    last: list[Tensor] = []

    def run_layer(layer_input: Tensor, index: int, weights: list[Tensor], is_reverse: bool) -> Tensor:
        w_ih, w_hh, *biases = weights
        b_ih, b_hh = biases or (None, None)
        steps = torch.nn.functional.linear(layer_input, w_ih, b_ih).unbind(0)
        state, states = hidden[index], []
        for step in reversed(steps) if is_reverse else steps:
            state = _next_state(step, state, w_hh, b_hh)
            states.append(state)
        last.append(state)
        return torch.stack(states[::-1] if is_reverse else states, 0)

    layer_input = input.transpose(0, 1) if batch_first else input
    output = _through_layers(run_layer, layer_input, params, has_biases, num_layers, dropout if train else 0, bidirectional)
    return output.transpose(0, 1) if batch_first else output, torch.stack(last, 0)


def _gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    if input.device.type != "cpu":
        arguments = (input, hx, w_ih, w_hh, b_ih, b_hh)
        return _aten.gru_cell.default._op_dk(DispatchKey.CompositeImplicitAutograd, *arguments)  # type: ignore[no-any-return]
    return _next_state(torch.nn.functional.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


def _next_state(from_input: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Mirrors ``GRUCell`` there, but adds to both gates at once: the sigmoid of each still reads columns of a matrix."""
    from_state = torch.nn.functional.linear(state, weight, bias)
    size = from_state.shape[1] // 3
    to_gates, to_new = torch.unsafe_split_with_sizes(from_input, (2 * size, size), 1)
    gates, new = torch.unsafe_split_with_sizes(from_state, (2 * size, size), 1)
    reset, update = torch.unsafe_chunk(gates + to_gates, 2, 1)
    reset, update = reset.sigmoid(), update.sigmoid()
    candidate = (to_new + new.mul_(reset)).tanh()  # the copy that is kept of ``new`` is less than the matrix that it is part of
    return (state - candidate) * update + candidate
