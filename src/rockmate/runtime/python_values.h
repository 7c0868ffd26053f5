// Between Python objects and what programs hold. The only file that includes PyTorch's (heavy) conversion header is the source.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "rockmate/runtime/program_builder.h"

namespace rockmate {

// A slot as Python code sees it while it builds a program.
struct PySlot {
  Slot index = kNoSlot;
  bool is_number = false;  // holds a number (a dynamic size), which some ops want as a float or a tensor
};

// Tensors, numbers, None, and lists and tuples (as tuples) of them; anything else is held as the Python object. Needs the GIL.
c10::IValue to_ivalue(pybind11::handle object);
pybind11::object to_python(c10::IValue value);

// The dispatcher op of a torch.ops overload. Throws std::invalid_argument for anything else.
c10::OperatorHandle find_op(pybind11::handle overload);

// The arguments of `op` in schema order, defaults filled in; PySlot objects stand for slots, in lists too.
// Throws std::invalid_argument when an argument does not fit the schema.
std::vector<Operand> to_operands(const c10::OperatorHandle& op, const pybind11::tuple& args, const pybind11::dict& kwargs);

// A call of any Python callable. `args` and `kwargs` may hold slots anywhere in nested tuples, lists and dicts; `slots` gets
// them in the order in which the callback expects them.
Callback python_callback(pybind11::object function, pybind11::tuple args, pybind11::dict kwargs, std::vector<Operand>* slots);

}  // namespace rockmate
