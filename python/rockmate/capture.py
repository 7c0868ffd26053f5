"""From the joint graph to the planner's TrainingGraph."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from rockmate import _planner
from rockmate.errors import CaptureError
from rockmate.fallback import Lacking
from rockmate.joint import JointGraph, describe, is_random, module_of, tensor_leaves

# What torch.get_rng_state() returns for the CPU generator. Other devices keep their state on the host.
CPU_RNG_STATE_BYTES = 5056
_NO_STORAGE = -1  # of a value that is no tensor of the joint graph; it is never freed by an action


@dataclass
class Capture:
    """A TrainingGraph and the way back from its ids to the nodes of the joint graph.

    ``joint.ops[i]`` is op ``i``; ``value_ids`` maps storages to values and ``storage_of`` is its inverse.
    """

    joint: JointGraph
    training_graph: Any  # _planner.TrainingGraph
    value_ids: dict[int, int]
    storage_of: list[int]


def import_joint_graph(
    joint: JointGraph,
    num_mutated_inputs: int,
    parameters: set[int],
    name: str,
    held: Lacking | None = None,
    hands_on: bool = False,
) -> Capture:
    """Build the TrainingGraph of a joint graph.

    Args:
        joint: the graph, sorted out by :func:`rockmate.joint.read_joint_graph`.
        num_mutated_inputs: so many of the first forward outputs are new contents of mutated inputs.
        parameters: indices into ``joint.primals`` of those that are parameters.
        name: the name of the graph, for reports.
        held: what stays to the end of the step, whoever reads it: values, and generator states of random ops.
        hands_on: whether the outputs are handed on to what runs next, and are not held throughout the step.
    """
    held = held or Lacking()
    values: list[dict[str, Any]] = []
    value_ids: dict[int, int] = {}
    storage_of: list[int] = []
    device = _device_of(joint)
    rng_state_bytes = CPU_RNG_STATE_BYTES if device.type == "cpu" else 0
    nbytes: dict[int, int] = {}
    for node in joint.storages:
        for key, tensor in zip(joint.keys_of(node), tensor_leaves(node.meta.get("val")), strict=True):
            # Gradients come dense, whatever the gaps between the elements of the output, or those that share memory.
            size = tensor.numel() * tensor.element_size() if node in joint.tangents else tensor.untyped_storage().nbytes()
            # What is kept on the host beside an accelerator costs none of its memory.
            nbytes.setdefault(key, size if tensor.device == device else 0)

    def add_value(key: int, name: str, kind: str, producer: int = -1) -> int:
        if key not in value_ids:
            value_ids[key] = len(values)
            storage_of.append(key)
            values.append({"name": name, "bytes": nbytes[key], "kind": kind, "retention": "last_use", "producer": producer})
        return value_ids[key]

    for index, node in enumerate(joint.primals):
        for key in joint.storages.get(node, ()):
            add_value(key, node.name, "parameter" if index in parameters else "input")
    for node in joint.tangents:
        if node.meta.get("missing_tangent"):
            continue
        for key in joint.storages.get(node, ()):
            tangent = values[add_value(key, node.name, "tangent")]
            if node.meta["val"].dim() == 0:
                tangent["retention"] = "step_end"  # where the backward pass begins, and held by whoever began it
    for node in joint.storages:
        if node.op == "get_attr":
            for key in joint.storages[node]:
                add_value(key, node.name, "constant")

    ops: list[dict[str, Any]] = []
    for op_id, node in enumerate(joint.ops):
        inputs = dict.fromkeys(value_ids[key] for arg in node.all_input_nodes for key in joint.storages.get(arg, ()))
        kind = "activation" if op_id < joint.num_forward_ops else "gradient"
        outputs = []
        for index, key in enumerate(joint.storages[node]):
            if key not in value_ids:
                outputs.append(add_value(key, node.name if index == 0 else f"{node.name}.{index}", kind, op_id))
        if rng_state_bytes > 0 and node.name in held.states:
            outputs.append(len(values))
            storage_of.append(_NO_STORAGE)
            values.append(
                {
                    "name": f"{node.name}.generator_state",
                    "bytes": rng_state_bytes,
                    "kind": "activation",
                    "retention": "step_end",
                    "producer": op_id,
                }
            )
        flops, moved, dtype = roofline_figures(node)
        ops.append(
            {
                "name": node.name,
                "target": str(node.target),
                "signature": signature_of(node),
                "module": module_of(node),
                "pass": "forward" if op_id < joint.num_forward_ops else "backward",
                "inputs": list(inputs),
                "outputs": outputs,
                "time_us": 0.0,
                "workspace_bytes": 0,
                "flops": flops,
                "moved_bytes": moved,
                "dtype": dtype,
                "is_random": is_random(node),
                "recomputable": node not in joint.run_once,
            }
        )
    _mark_outputs(joint, values, value_ids, num_mutated_inputs, parameters, hands_on)
    for node in joint.storages:
        if node.name in held.nodes:
            for key in joint.storages[node]:
                values[value_ids[key]]["retention"] = "step_end"
    text = json.dumps(
        {
            "format": "rockmate-graph",
            "version": 1,
            "name": name,
            "device": device.type,
            "rng_state_bytes": rng_state_bytes,
            "values": values,
            "ops": ops,
        }
    )
    return Capture(joint, _planner.TrainingGraph.from_json(text), value_ids, storage_of)


def _device_of(joint: JointGraph) -> torch.device:
    """The accelerator that the step runs on, or the CPU."""
    places: dict[torch.device, fx.Node] = {}
    for node in joint.storages:
        for tensor in tensor_leaves(node.meta.get("val")):
            if tensor.device.type != "cpu":
                places.setdefault(tensor.device, node)
    if len(places) > 1:
        (first, one), (second, other) = list(places.items())[:2]
        raise CaptureError(
            f"[capture] the model is spread over {first} ({describe(one)}) and {second} ({describe(other)}), and a budget is "
            "one device's; wrap the part on each device by itself"
        )
    return next(iter(places), torch.device("cpu"))


def _mark_outputs(
    joint: JointGraph,
    values: list[dict[str, Any]],
    value_ids: dict[int, int],
    num_mutated_inputs: int,
    parameters: set[int],
    hands_on: bool,
) -> None:
    def value_of(node: Any) -> dict[str, Any] | None:
        if not isinstance(node, fx.Node) or not joint.storages.get(node):
            return None
        value = values[value_ids[joint.storages[node][0]]]
        return value if value["kind"] in ("activation", "gradient", "tangent") else None

    written: set[int] = set()  # new contents of inputs; where the model returns them, the caller gets the input itself
    for index, node in enumerate(joint.forward_outputs):
        if (value := value_of(node)) is None:
            continue
        if index < num_mutated_inputs:
            written.add(id(value))
        if index >= num_mutated_inputs and id(value) not in written and not hands_on:
            value["retention"] = "step_end"
        elif value["retention"] == "last_use":
            value["retention"] = "forward_end"
    parameter_gradients: dict[int, bool] = {}
    of_parameters = joint.gradient_places(parameters)
    for index, node in enumerate(joint.backward_outputs):
        if (value := value_of(node)) is None:
            continue
        value["retention"] = "step_end"
        key = id(value)
        parameter_gradients[key] = parameter_gradients.get(key, True) and index in of_parameters
    for value in values:
        if value["kind"] == "gradient" and parameter_gradients.get(id(value)):
            value["kind"] = "parameter_gradient"


def signature_of(node: fx.Node) -> str:
    """Equal for calls that cost the same: target, constants, and each tensor's dtype, sizes, strides, storage and device."""

    def text_of(arg: Any) -> Any:
        if not isinstance(arg, fx.Node):
            return arg
        val = arg.meta.get("val")
        return _tensor_text(val) if isinstance(val, torch.Tensor) else tree_map(_tensor_text, val)

    args = fx.node.map_aggregate(node.args, text_of)
    kwargs = fx.node.map_aggregate(dict(node.kwargs), text_of)
    return f"{node.target}{args}{kwargs}"


def _tensor_text(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    dtype = str(value.dtype).removeprefix("torch.")
    stored = value.untyped_storage().nbytes()
    place = f"+{value.storage_offset()}of{stored}" if stored != value.nbytes or value.storage_offset() else ""
    lazy = ("conj" if value.is_conj() else "") + ("neg" if value.is_neg() else "")
    return f"{dtype}{list(value.shape)}{list(value.stride())}{place}{lazy}@{value.device}"


def roofline_figures(node: fx.Node) -> tuple[float, int, str]:
    """FLOPs, bytes read and written, and compute dtype of one call, from PyTorch's own FLOP formulas."""
    val = node.meta.get("val")
    outputs = tensor_leaves(val)
    inputs = [tensor for arg in node.all_input_nodes for tensor in tensor_leaves(arg.meta.get("val"))]
    moved = sum(tensor.numel() * tensor.element_size() for tensor in inputs + outputs)
    floating = [tensor.dtype for tensor in outputs + inputs if tensor.dtype.is_floating_point or tensor.dtype.is_complex]
    dtype = str(floating[0] if floating else torch.float32).removeprefix("torch.")
    flops = 0.0
    formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is not None:
        args = fx.node.map_arg(node.args, lambda arg: arg.meta.get("val"))
        kwargs = fx.node.map_arg(dict(node.kwargs), lambda arg: arg.meta.get("val"))
        flops = float(formula(*args, **kwargs, out_val=val))
    return flops, moved, dtype
