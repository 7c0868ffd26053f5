// rockmate._runtime: the executor, the profiler and the allocation meter, for Python.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "rockmate/runtime/bare_loop.h"
#include "rockmate/runtime/profile.h"
#include "rockmate/runtime/python_values.h"
#include "rockmate/runtime/tied_views.h"

namespace rockmate {
namespace {

namespace py = pybind11;
using torch::wrap_pybind_function;

// Takes the values out of the list and leaves it empty, so that nobody but the program holds them.
std::vector<c10::IValue> take(py::list& list) {
  std::vector<c10::IValue> values;
  values.reserve(list.size() + 1);
  for (const py::handle item : list) values.push_back(to_ivalue(item));
  if (PyList_SetSlice(list.ptr(), 0, PyList_GET_SIZE(list.ptr()), nullptr) != 0) throw py::error_already_set();
  return values;
}

py::list to_list(std::vector<c10::IValue> values) {
  py::list list(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) list[i] = to_python(std::move(values[i]));
  return list;
}

void add_note(py::error_already_set& error, const Program& program, std::size_t index) {
  const py::object value = error.value();
  if (!py::hasattr(value, "add_note") || index >= program.instructions().size()) return;
  value.attr("add_note")("[program] instruction " + std::to_string(index) + " of " +
                         std::to_string(program.instructions().size()) + ": " + program.instructions()[index].name);
}

std::vector<c10::IValue> run_without_gil(const Program& program, py::list& inputs, Observer& observer) {
  if (inputs.size() != program.num_inputs()) {
    throw py::value_error("[program] it takes " + std::to_string(program.num_inputs()) + " inputs and was given " +
                          std::to_string(inputs.size()));
  }
  std::vector<c10::IValue> values = take(inputs);
  try {
    const py::gil_scoped_release no_gil;
    return program.run(values, &observer);
  } catch (py::error_already_set& error) {
    add_note(error, program, observer.instruction);
    throw;
  } catch (python_error& error) {  // from an op whose kernel is written in Python
    error.restore();
    py::error_already_set restored;
    add_note(restored, program, observer.instruction);
    throw restored;
  }
}

py::list run(const Program& program, py::list inputs) {
  Observer observer;
  return to_list(run_without_gil(program, inputs, observer));
}

// pybind's own message would print every tensor.
py::list call(const Program& program, const py::args& args) {
  if (args.size() != 1 || !PyList_Check(PyTuple_GET_ITEM(args.ptr(), 0))) {
    throw py::type_error("[program] call it with one list, which it empties");
  }
  return run(program, args[0]);
}

py::tuple profile_run(const Program& program, py::list inputs, Meter& meter) {
  if (!meter.running()) throw py::value_error("[program] the meter is not running; use it inside its 'with' block");
  Observer observer;
  observer.meter = &meter;
  py::list outputs = to_list(run_without_gil(program, inputs, observer));
  py::list marks;
  for (const Mark& mark : observer.marks) marks.append(py::make_tuple(mark.bytes_inside, mark.bytes_after));
  return py::make_tuple(outputs, marks);
}

Profile profile_program(const Program& program, const py::list& inputs, double min_time_us, int max_runs) {
  if (inputs.size() != program.num_inputs()) throw py::value_error("[profile] wrong number of inputs for this program");
  std::vector<c10::IValue> values;
  for (const py::handle input : inputs) values.push_back(to_ivalue(input));
  const py::gil_scoped_release no_gil;
  return profile(program, values, {min_time_us, max_runs}, [] {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  });
}

// (result, element, layout): element -1 for the whole result; layout None or (sizes, strides).
using PyOutput = std::tuple<int, int, std::optional<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>>;

std::vector<Output> make_outputs(ProgramBuilder& builder, const std::vector<PyOutput>& described) {
  std::vector<Output> outputs;
  for (const auto& [result, element, layout] : described) {
    Output output;
    output.result = result;
    output.element = element;
    output.slot = builder.new_slot();
    if (layout) output.restride = builder.add_layout({layout->first, layout->second});
    outputs.push_back(output);
  }
  return outputs;
}

std::vector<PySlot> slots_of(const std::vector<Output>& outputs) {
  std::vector<PySlot> slots;
  for (const Output& output : outputs) slots.push_back({output.slot, false});
  return slots;
}

std::vector<PySlot> add_call(ProgramBuilder& builder, const py::object& overload, const py::tuple& args, const py::dict& kwargs,
                             const std::vector<PyOutput>& described, const std::string& name) {
  const c10::OperatorHandle op = find_op(overload);
  const auto num_returns = static_cast<int>(op.schema().returns().size());
  for (const PyOutput& output : described) {
    if (std::get<0>(output) >= num_returns) {
      throw std::invalid_argument("[program] " + name + " has no result " + std::to_string(std::get<0>(output)));
    }
  }
  const std::vector<Operand> operands = to_operands(op, args, kwargs);
  std::vector<Output> outputs = make_outputs(builder, described);
  const std::vector<PySlot> slots = slots_of(outputs);
  builder.call(op, operands, std::move(outputs), toString(op.operator_name()) + " (" + name + ")");
  return slots;
}

std::vector<PySlot> add_python(ProgramBuilder& builder, py::object function, py::tuple args, py::dict kwargs,
                               const std::vector<PyOutput>& described, const std::string& name) {
  std::vector<Operand> operands;
  Callback callback = python_callback(std::move(function), std::move(args), std::move(kwargs), &operands);
  std::vector<Output> outputs = make_outputs(builder, described);
  const std::vector<PySlot> slots = slots_of(outputs);
  builder.call(std::move(callback), operands, std::move(outputs), "python (" + name + ")");
  return slots;
}

std::unique_ptr<Program> finish(ProgramBuilder& builder, const py::sequence& outputs) {
  std::vector<Operand> operands;
  for (const py::handle output : outputs) {
    operands.push_back(py::isinstance<PySlot>(output) ? Operand::of(output.cast<const PySlot&>().index)
                                                      : Operand::of_constant(to_ivalue(output)));
  }
  return std::move(builder).finish(operands);
}

void bind_program(py::module_& m) {
  py::class_<PySlot>(m, "Slot", "A value of a program that is being built.")
      .def_readonly("index", &PySlot::index)
      .def_readwrite("is_number", &PySlot::is_number, "Holds a number; set it before the slot is used as an argument.")
      .def("__repr__", [](const PySlot& slot) { return "Slot(" + std::to_string(slot.index) + ")"; });

  py::class_<Program> program(m, "Program",
                              "Dispatcher ops in a row, run without Python and without autograd. Calling it with a list of "
                              "inputs takes them out of the list and returns the list of outputs.",
                              py::dynamic_attr());
  program.def("__call__", wrap_pybind_function(&call))
      .def_property_readonly(
          "program", [](py::object self) { return self; }, "Itself.")
      .def("run", wrap_pybind_function(&run), py::arg("inputs"),
           "Takes the inputs out of the list (it is empty afterwards), drops each at its last use, returns the outputs.")
      .def("profile_run", wrap_pybind_function(&profile_run), py::arg("inputs"), py::arg("meter"),
           "Like run; returns (outputs, marks) with one (bytes inside, bytes after) per instruction, relative to the start of "
           "the running meter.")
      .def_property_readonly("num_inputs", &Program::num_inputs)
      .def_property_readonly("num_outputs", &Program::num_outputs)
      .def_property_readonly(
          "names",
          [](const Program& self) {
            std::vector<std::string> names;
            for (const Instruction& instruction : self.instructions()) names.push_back(instruction.name);
            return names;
          },
          "Names of the instructions, in order.")
      .def("__len__", [](const Program& self) { return self.instructions().size(); });
  py::class_<ProgramBuilder>(m, "ProgramBuilder",
                             "Builds a Program call by call. Outputs are (result, element, layout) triples: which return of "
                             "the op (-1 for all as a tuple), which element of it (-1 for the whole), and (sizes, strides) to "
                             "hold it to, or None. ValueError for what does not fit the op's schema.")
      .def(py::init<>())
      .def("input",
           [](ProgramBuilder& self) {
             return PySlot{self.add_input(), false};
           })
      .def("call", &add_call, py::arg("op"), py::arg("args"), py::arg("kwargs"), py::arg("outputs"), py::arg("name"),
           "Appends a call of a torch.ops overload; Slot objects in args, kwargs and lists in them stand for values.")
      .def("python", &add_python, py::arg("function"), py::arg("args"), py::arg("kwargs"), py::arg("outputs"), py::arg("name"),
           "Appends a call of a Python callable. Its return value is result 0.")
      .def(
          "save_rng",
          [](ProgramBuilder& self, c10::Device device) {
            const Slot slot = self.new_slot();
            self.save_rng(device, slot);
            return PySlot{slot, false};
          },
          py::arg("device"), "The last call first reads the device's generator state into the returned slot.")
      .def(
          "replay_rng",
          [](ProgramBuilder& self, c10::Device device, const PySlot& state) { self.replay_rng(device, state.index); },
          py::arg("device"), py::arg("state"), "The last call draws from that state and leaves the stream as it found it.")
      .def("finish", &finish, py::arg("outputs"), "The program; outputs are slots or constants. The builder is used up.");
}

void bind_meter(py::module_& m) {
  py::class_<Meter, std::shared_ptr<Meter>>(m, "Meter", "Allocation meter; see rockmate.meter.Meter.")
      .def(py::init([](std::optional<c10::Device> device, bool record) { return std::make_shared<Meter>(device, record); }),
           py::arg("device") = py::none(), py::arg("record") = true)
      .def("start", [](Meter& self) { self.start(); })
      .def("stop", &Meter::stop)
      .def("add_known", &Meter::add_known, py::arg("pointer"), py::arg("bytes"))
      .def_property_readonly("running", &Meter::running)
      .def_property_readonly("current_bytes", &Meter::current_bytes)
      .def_property_readonly("peak_bytes", &Meter::peak_bytes)
      .def("events",
           [](const Meter& self) {
             py::list events;
             for (const AllocationEvent& event : self.events()) events.append(py::make_tuple(event.pointer, event.bytes));
             return events;
           })
      .def("trace_excluding", &Meter::trace_excluding, py::arg("pointers"));
  m.def(
      "pause_meters",
      [](bool paused) {
        for (Meter* meter = Meter::innermost(); meter; meter = meter->outer()) meter->set_paused(paused);
      },
      py::arg("paused"), "Pauses or resumes every meter of this thread.");
}

void bind_profile(py::module_& m) {
  const auto each = [](auto member) {
    return [member](const Profile& profile) {
      py::list values;
      for (const OutputProfile& output : profile.outputs) values.append(output.*member);
      return values;
    };
  };
  py::class_<Profile>(m, "Profile", "What one program costs; the output_ lists have one entry per tensor returned.")
      .def_readonly("time_us", &Profile::time_us, "Median over the timed runs.")
      .def_readonly("peak_bytes", &Profile::peak_bytes, "Most bytes inside, outputs included, beyond those held before.")
      .def_readonly("kept_bytes", &Profile::kept_bytes, "Bytes more after than before, outputs alive.")
      .def_readonly("num_runs", &Profile::num_runs)
      .def_property_readonly("output_pointers", each(&OutputProfile::storage), "Equal for outputs that share their storage.")
      .def_property_readonly("output_bytes", each(&OutputProfile::storage_bytes), "Bytes of the storage of each.")
      .def_property_readonly("output_strides", each(&OutputProfile::strides))
      .def_property_readonly("output_aliases_input", each(&OutputProfile::aliases_input), "Shares an input's storage.")
      .def_property_readonly(
          "events",
          [](const Profile& profile) {
            std::vector<std::pair<std::int64_t, int>> events;
            for (const ProfileEvent& event : profile.events) events.emplace_back(event.bytes, event.output);
            return events;
          },
          "(signed bytes, output that the allocation becomes or -1) of each allocation and free of a run, in order.");
  m.def("profile", wrap_pybind_function(&profile_program), py::arg("program"), py::arg("inputs"),
        py::arg("min_time_us") = ProfileOptions{}.min_time_us, py::arg("max_runs") = ProfileOptions{}.max_runs,
        "Runs the program on the inputs, which stay, several times, and tells its median time and its exact bytes.");
  m.def("add_chain_unboxed", &add_chain_unboxed, py::call_guard<py::gil_scoped_release>());
  m.def("add_chain_boxed", &add_chain_boxed, py::call_guard<py::gil_scoped_release>());
}

}  // namespace
}  // namespace rockmate

PYBIND11_MODULE(_runtime, m) {
  m.doc() = "Rockmate's executor, op profiler and allocation meter. Import torch first.";
  rockmate::bind_program(m);
  rockmate::bind_meter(m);
  rockmate::bind_profile(m);
  m.def("count_writes_together", &rockmate::count_writes_together, py::arg("tensor"), py::arg("other"),
        "Lets two tensors that share memory have one version counter, that of the other.");
  m.def("tied_view", &rockmate::tied_view, py::arg("base"), py::arg("output"), py::arg("base_holds_all"),
        "The output as a view of the base, whose memory it shares, with the gradient that it has already.");
}
