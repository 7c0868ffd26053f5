"""Outputs that are inputs of the step, or views of them: where that makes a gradient another sum than in plain PyTorch.

AOTAutograd hands such an output to the caller from outside of the compiled step, so that its gradient joins those of the step's
own uses of the input behind the compiled backward pass:

    plain    (g_output + g_second_use) + g_first_use        one after the other, as autograd comes to them
    here     g_output + (g_second_use + g_first_use)

With two terms there is one sum. With three or more the last bits may differ, and the user is told.
"""

from __future__ import annotations

import warnings

from torch._functorch._aot_autograd.schemas import OutputType
from torch._guards import TracingContext

from rockmate.joint import JointGraph, describe

_OWN_USES = 2  # with the output's own gradient that makes three terms


def tell_of_other_sums(joint: JointGraph) -> None:
    """Warn of every input that is returned, differentiated, and read by two ops or more."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return
    for info in context.fw_metadata.output_info:
        if info.output_type not in (OutputType.is_input, OutputType.alias_of_input) or not info.requires_grad:
            continue
        if info.base_idx is None or info.base_idx >= len(joint.primals):
            continue
        node = joint.primals[info.base_idx]
        own = set(joint.storages.get(node, ()))
        readers = [
            op
            for op in joint.ops[: joint.num_forward_ops]
            if any(not own.isdisjoint(joint.storages.get(arg, ())) for arg in op.all_input_nodes)
        ]
        if len(readers) >= _OWN_USES:
            val = node.meta["val"]
            warnings.warn(
                f"[capture] the model returns an input ({val.dtype}, {list(val.shape)}) or a view of it, and computes with it "
                f"in {len(readers)} places, first {describe(readers[0])}: when that output is trained through, the input's "
                "gradient is summed in another order than in plain PyTorch, and may differ in its last bits. Return a copy "
                "(clone()) to avoid that",
                RuntimeWarning,
                stacklevel=2,
            )
