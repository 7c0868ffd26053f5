#include "rockmate/runtime/python_values.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <stdexcept>

namespace rockmate {
namespace {

namespace py = pybind11;

// Any Python object as a value of a program. PyTorch's own holder cannot be linked from outside.
class HeldObject final : public c10::ivalue::PyObjectHolder {
 public:
  explicit HeldObject(py::object object) : object_(std::move(object)) {}
  ~HeldObject() override {
    const py::gil_scoped_acquire gil;
    object_.release().dec_ref();
  }
  PyObject* getPyObject() override { return object_.ptr(); }
  c10::InferredType tryToInferType() override { return c10::InferredType("a Python object"); }
  c10::IValue toIValue(const c10::TypePtr& type, std::optional<int32_t> n) override {
    const py::gil_scoped_acquire gil;
    return torch::jit::toIValue(object_, type, n);
  }
  std::string toStr() override {
    const py::gil_scoped_acquire gil;
    return py::str(object_);
  }
  std::vector<at::Tensor> extractTensors() override { return {}; }

 private:
  py::object object_;
};

c10::TypePtr without_optional(c10::TypePtr type) {
  if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

Arg::Coerce coercion_to(const c10::TypePtr& type) {
  const c10::TypeKind kind = without_optional(type)->kind();
  if (kind == c10::TypeKind::TensorType) return Arg::Coerce::kToTensor;
  if (kind == c10::TypeKind::FloatType || kind == c10::TypeKind::SymFloatType) return Arg::Coerce::kToFloat;
  return Arg::Coerce::kNone;
}

bool is_sequence(py::handle object) { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

bool holds_slot(py::handle object) {
  if (py::isinstance<PySlot>(object)) return true;
  if (!is_sequence(object)) return false;
  for (const py::handle element : object) {
    if (holds_slot(element)) return true;
  }
  return false;
}

Operand operand_of(const PySlot& slot, const c10::TypePtr& type) {
  Operand operand = Operand::of(slot.index);
  if (slot.is_number) operand.coerce = coercion_to(type);
  return operand;
}

Operand operand_of(py::handle object, const c10::TypePtr& type) {
  if (py::isinstance<PySlot>(object)) return operand_of(object.cast<const PySlot&>(), type);
  if (!holds_slot(object)) return Operand::of_constant(torch::jit::toIValue(object, type));
  const auto list = without_optional(type)->cast<c10::ListType>();
  if (!list) throw std::invalid_argument("a list where the op takes " + type->str());
  Operand operand;
  operand.kind = Operand::Kind::kList;
  operand.element_type = list->getElementType();
  for (const py::handle element : object) operand.elements.push_back(operand_of(element, operand.element_type));
  // What a slot holds at run time is an int, never a symbol.
  if (operand.element_type->kind() == c10::TypeKind::SymIntType) operand.element_type = c10::IntType::get();
  return operand;
}

// The template of a Python call: a copy of the arguments in which slots are counted off.
struct PythonCall {
  py::object function;
  py::tuple args;
  py::dict kwargs;

  py::object filled(py::handle object, Stack& stack, std::size_t& next) const {
    if (py::isinstance<PySlot>(object)) return to_python(std::move(stack[next++]));
    if (PyList_Check(object.ptr())) {
      py::list list;
      for (const py::handle element : object) list.append(filled(element, stack, next));
      return list;
    }
    if (PyTuple_CheckExact(object.ptr())) {
      const auto size = static_cast<std::size_t>(PyTuple_GET_SIZE(object.ptr()));
      py::tuple tuple(size);
      for (std::size_t i = 0; i < size; ++i) tuple[i] = filled(PyTuple_GET_ITEM(object.ptr(), i), stack, next);
      return tuple;
    }
    if (PyDict_Check(object.ptr())) {
      py::dict dict;
      for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(object)) dict[key] = filled(value, stack, next);
      return dict;
    }
    return py::reinterpret_borrow<py::object>(object);
  }
};

void collect_slots(py::handle object, std::vector<Operand>& slots) {
  if (py::isinstance<PySlot>(object)) {
    slots.push_back(Operand::of(object.cast<const PySlot&>().index));
  } else if (is_sequence(object)) {
    for (const py::handle element : object) collect_slots(element, slots);
  } else if (PyDict_Check(object.ptr())) {
    for (const auto& item : py::reinterpret_borrow<py::dict>(object)) collect_slots(item.second, slots);
  }
}

}  // namespace

c10::IValue to_ivalue(py::handle object) {
  PyObject* const raw = object.ptr();
  if (THPVariable_Check(raw)) return THPVariable_Unpack(raw);
  if (raw == Py_None) return {};
  if (PyBool_Check(raw)) return raw == Py_True;
  if (PyLong_CheckExact(raw)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(raw, &overflow);
    if (!overflow) return static_cast<std::int64_t>(value);
  }
  if (PyFloat_CheckExact(raw)) return PyFloat_AS_DOUBLE(raw);
  if (PyList_CheckExact(raw) || PyTuple_CheckExact(raw)) {
    std::vector<c10::IValue> elements;
    for (const py::handle element : object) elements.push_back(to_ivalue(element));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  return c10::intrusive_ptr<c10::ivalue::PyObjectHolder>(
      c10::make_intrusive<HeldObject>(py::reinterpret_borrow<py::object>(object)));
}

py::object to_python(c10::IValue value) {
  if (value.isTensor()) return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(value).toTensor()));
  return torch::jit::toPyObject(std::move(value));
}

c10::OperatorHandle find_op(py::handle overload) {
  if (!py::hasattr(overload, "_schema")) {
    throw std::invalid_argument("[program] " + std::string(py::str(overload)) + " is no operator overload; call it as Python");
  }
  const py::object schema = overload.attr("_schema");
  const auto name = schema.attr("name").cast<std::string>();
  const auto overload_name = schema.attr("overload_name").cast<std::string>();
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload_name.c_str());
}

std::vector<Operand> to_operands(const c10::OperatorHandle& op, const py::tuple& args, const py::dict& kwargs) {
  const torch::jit::ToIValueAllowNumbersAsTensors numbers_as_tensors(true);
  const c10::FunctionSchema& schema = op.schema();
  const std::vector<c10::Argument>& arguments = schema.arguments();
  auto fail = [&](const std::string& what) -> std::invalid_argument {
    return std::invalid_argument("[program] " + toString(op.operator_name()) + ": " + what + "; its schema is " +
                                 c10::toString(schema));
  };
  if (args.size() > arguments.size()) throw fail("too many arguments");
  std::vector<Operand> operands;
  std::size_t num_named = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    py::object object;
    if (i < args.size() && !argument.kwarg_only()) {
      object = args[i];
    } else if (kwargs.contains(argument.name())) {
      object = kwargs[argument.name().c_str()];
      ++num_named;
    } else if (argument.default_value()) {
      operands.push_back(Operand::of_constant(*argument.default_value()));
      continue;
    } else {
      throw fail("argument " + argument.name() + " is missing");
    }
    try {
      operands.push_back(holds_slot(object) ? operand_of(object, argument.real_type())
                                            : Operand::of_constant(torch::jit::argumentToIValue(schema, i, object)));
    } catch (const std::exception& error) {
      throw fail("argument " + argument.name() + ": " + error.what());
    }
  }
  if (num_named != kwargs.size()) throw fail("an argument is given twice or unknown to it");
  return operands;
}

Callback python_callback(py::object function, py::tuple args, py::dict kwargs, std::vector<Operand>* slots) {
  collect_slots(args, *slots);
  collect_slots(kwargs, *slots);
  // Copied and dropped by C++ code that does not hold the GIL.
  std::shared_ptr<PythonCall> call(new PythonCall{std::move(function), std::move(args), std::move(kwargs)},
                                   [](PythonCall* dying) {
                                     const py::gil_scoped_acquire gil;
                                     delete dying;
                                   });
  return [call = std::move(call)](Stack& stack) {
    const py::gil_scoped_acquire gil;
    std::size_t next = 0;
    py::object args = call->filled(call->args, stack, next);
    py::object kwargs = call->filled(call->kwargs, stack, next);
    stack.clear();
    const py::object result = call->function(*args, **kwargs);
    args.release().dec_ref();
    kwargs.release().dec_ref();
    stack.emplace_back(to_ivalue(result));
  };
}

}  // namespace rockmate
