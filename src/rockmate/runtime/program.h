// A program: one graph of dispatcher ops as a flat list of prepared calls, run without Python and without an autograd graph.
//
// Values live in slots. The program of  y = relu(x @ w); return sum(y)  with inputs x, w reads
//
//   slot 0 x, slot 1 w
//   0  aten::mm    (slot 0, slot 1)   -> slot 2    x and w die here: they are moved into the call
//   1  aten::relu  (slot 2)           -> slot 3    slot 2 dies here
//   2  aten::sum   (slot 3, None)     -> slot 4    slot 3 dies here
//   returns slot 4
//
// What an instruction means:
//   * its arguments are held while it runs, those that die there too, and are dropped the moment it ends, before anything of
//     the next instruction begins; outputs that nobody reads are dropped at once. So the bytes inside an instruction are
//     those alive before it plus its outputs plus its workspace, as the schedule counts them.
//   * constants were converted when the program was built; a call copies them onto the stack and moves or copies the slots.
//   * a program has no state between runs: several threads may run it at once, and it may run again after an exception.
//
// A program is built by ProgramBuilder (program_builder.h).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>
#include <ATen/core/stack.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rockmate/runtime/meter.h"
#include "rockmate/runtime/restride.h"

namespace rockmate {

using Slot = std::int32_t;
using Stack = torch::jit::Stack;

inline constexpr Slot kNoSlot = -1;

// One argument of an instruction.
struct Arg {
  enum class Kind : std::uint8_t {
    kConstant,  // index into constants
    kSlot,      // read again later, or twice here: copied
    kLastUse,   // the slot dies here: moved
    kList,      // index into lists; built anew for each call because it holds slots
  };
  // A slot may hold a number (a dynamic size) where the op asks for something else.
  enum class Coerce : std::uint8_t { kNone, kToFloat, kToTensor };

  Kind kind = Kind::kConstant;
  Coerce coerce = Coerce::kNone;
  std::int32_t index = 0;
};

struct ListArg {
  c10::TypePtr element_type;
  std::vector<Arg> elements;
};

// Where one result goes. Results of an op are its returns, in order.
struct Output {
  std::int32_t result = 0;    // which return; kWhole for all of them as one tuple
  std::int32_t element = -1;  // element of a list or tuple result; -1 for the result itself
  Slot slot = 0;
  std::int32_t restride = -1;  // index into layouts; -1 leaves the strides as they come

  static constexpr std::int32_t kWhole = -1;
};

enum class RngMode : std::uint8_t {
  kNone,
  kSave,    // the generator's state is read into rng_slot before the call
  kReplay,  // the call draws from the state in rng_slot; the stream's own state is put back afterwards
};

// Takes its arguments from the stack and leaves its results there, as a boxed kernel does.
using Callback = std::function<void(Stack&)>;

struct Instruction {
  std::optional<c10::OperatorHandle> op;  // without one, `callback` is called
  Callback callback;
  std::vector<Arg> args;
  std::vector<Output> outputs;
  std::vector<Slot> frees;  // slots that die here and were not moved
  RngMode rng = RngMode::kNone;
  Slot rng_slot = kNoSlot;
  c10::Device rng_device = c10::Device(c10::DeviceType::CPU);
  bool mutates = false;  // writes into an argument: the version counter must move
  std::string name;      // "aten::mm (mm_3)", for error messages
};

// Bytes of a meter around one instruction, relative to the meter's start.
struct Mark {
  std::int64_t bytes_inside = 0;  // the most while it ran
  std::int64_t bytes_after = 0;
};

// What a run can tell about itself.
struct Observer {
  Meter* meter = nullptr;       // installed on the running thread; without one there are no marks
  std::vector<Mark> marks;      // one per instruction
  std::size_t instruction = 0;  // where an exception came from
};

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // Takes the inputs out of `inputs` (which is left empty) and returns the outputs. Throws what the ops throw, a c10::Error
  // with the instruction named; afterwards no value of the run is held any more.
  std::vector<c10::IValue> run(std::vector<c10::IValue>& inputs, Observer* observer = nullptr) const;

  std::size_t num_inputs() const { return input_slots_.size(); }
  std::size_t num_outputs() const { return outputs_.size(); }
  const std::vector<Instruction>& instructions() const { return instructions_; }

 private:
  friend class ProgramBuilder;
  struct Frame;
  class FrameLease;

  void run_instruction(const Instruction& instruction, Frame& frame) const;
  void run_instructions(Frame& frame, Observer* observer) const;
  void push(const Arg& arg, std::vector<c10::IValue>& slots, Stack& stack) const;
  c10::IValue value_of(const Arg& arg, std::vector<c10::IValue>& slots) const;

  std::vector<Instruction> instructions_;
  std::vector<Slot> input_slots_;  // kNoSlot for inputs that nothing reads
  std::vector<Arg> outputs_;
  std::vector<c10::IValue> constants_;
  std::vector<ListArg> lists_;
  std::vector<Layout> layouts_;
  std::size_t num_slots_ = 0;
  std::size_t max_args_ = 0;

  // The frame of the last run, kept to save its allocations; a run that finds it taken makes its own.
  mutable std::atomic<Frame*> idle_frame_{nullptr};
};

}  // namespace rockmate
