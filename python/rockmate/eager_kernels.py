"""Trace ops as the kernels that plain PyTorch runs.

While a step is traced, PyTorch's Python dispatcher replaces some ops by decompositions written in Python: ``dropout``
(which then draws random numbers for a probability of 1, too), ``matmul``, ``upsample_*``, ``hardshrink`` and others. They
compute the same up to rounding, and equal to the bit is what is wanted here: their C++ code is traced instead, which calls
the kernels that run without compilation. Recurrent layers are the matter of :mod:`rockmate.recurrent`.
"""

from __future__ import annotations

import torch
from torch._ops import OpOverload, OpOverloadPacket

from rockmate.shared_change import SharedChange, has_traced_kernels, put_kernels_back, take_traced_kernels

# What stays as it is: batch normalization is decomposed to say that it writes its statistics, empty_out makes no values, and
# one_hot and tensor_split would look at the values of their inputs while there are none.
_KEPT = ("native_batch_norm", "cudnn_batch_norm", "empty", "one_hot", "tensor_split", "lstm", "gru", "rnn_tanh", "rnn_relu")


def _decomposed_ops() -> list[OpOverload]:
    """Looked up each time: a module that is imported later may register more."""
    packets = [packet for packet in vars(torch.ops.aten).values() if isinstance(packet, OpOverloadPacket)]
    overloads = [
        getattr(packet, name)
        for packet in packets
        if packet._qualified_op_name.removeprefix("aten::") not in _KEPT
        for name in packet.overloads()
        if name in vars(packet)  # made only when somebody asks for it, as those who register a kernel do
    ]
    return [op for op in overloads if has_traced_kernels(op)]


#: Trace without Python decompositions of single ops: ``with eager_kernels(): ...``
eager_kernels = SharedChange(lambda: take_traced_kernels(_decomposed_ops()), put_kernels_back)
