#include "rockmate/runtime/program.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <stdexcept>

#include "rockmate/runtime/rng.h"

namespace rockmate {
namespace {

// Autograd and autocast did their work when the graph was traced.
constexpr c10::DispatchKeySet kTracedAway = c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;

// Ops that write into an argument move its version counter, which the ADInplaceOrView kernels do.
class VersionCountingGuard {
 public:
  VersionCountingGuard() : saved_(c10::impl::tls_local_dispatch_key_set()) {
    c10::impl::LocalDispatchKeySet keys = saved_;
    keys.excluded_ = keys.excluded_ - c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
    c10::impl::_force_tls_local_dispatch_key_set(keys);
  }
  ~VersionCountingGuard() { c10::impl::_force_tls_local_dispatch_key_set(saved_); }
  VersionCountingGuard(const VersionCountingGuard&) = delete;
  VersionCountingGuard& operator=(const VersionCountingGuard&) = delete;

 private:
  c10::impl::LocalDispatchKeySet saved_;
};

c10::IValue coerced(c10::IValue value, Arg::Coerce coerce) {
  if (coerce == Arg::Coerce::kToFloat && value.isInt()) return static_cast<double>(value.toInt());
  if (coerce == Arg::Coerce::kToTensor && value.isScalar()) {
    at::Tensor tensor = at::scalar_tensor(value.toScalar(), at::TensorOptions().dtype(value.toScalar().type()));
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }
  return value;
}

c10::IValue element_of(const c10::IValue& value, std::int32_t element) {
  const auto index = static_cast<std::size_t>(element);
  if (value.isTuple()) return value.toTupleRef().elements().at(index);
  return value.toListRef().at(index);
}

}  // namespace

struct Program::Frame {
  std::vector<c10::IValue> slots;
  Stack stack;

  void clear() {
    for (c10::IValue& slot : slots) {
      if (!slot.isNone()) slot = c10::IValue();
    }
    stack.clear();
  }
};

// Lends the idle frame, or a new one, and gives it back empty.
class Program::FrameLease {
 public:
  explicit FrameLease(const Program& program) : program_(program), frame_(program.idle_frame_.exchange(nullptr)) {
    if (frame_) return;
    frame_ = std::make_unique<Frame>();
    frame_->slots.resize(program.num_slots_);
    frame_->stack.reserve(program.max_args_);
  }
  ~FrameLease() {
    frame_->clear();
    const std::unique_ptr<Frame> displaced(program_.idle_frame_.exchange(frame_.release()));
  }
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  Frame& frame() { return *frame_; }

 private:
  const Program& program_;
  std::unique_ptr<Frame> frame_;
};

Program::~Program() { const std::unique_ptr<Frame> idle(idle_frame_.exchange(nullptr)); }

c10::IValue Program::value_of(const Arg& arg, std::vector<c10::IValue>& slots) const {
  switch (arg.kind) {
    case Arg::Kind::kConstant:
      return constants_[arg.index];
    case Arg::Kind::kSlot:
      return coerced(slots[arg.index], arg.coerce);
    case Arg::Kind::kLastUse:
      return coerced(std::move(slots[arg.index]), arg.coerce);
    case Arg::Kind::kList:
      break;
  }
  const ListArg& list = lists_[arg.index];
  c10::impl::GenericList values(list.element_type);
  values.reserve(list.elements.size());
  for (const Arg& element : list.elements) values.push_back(value_of(element, slots));
  return values;
}

inline void Program::push(const Arg& arg, std::vector<c10::IValue>& slots, Stack& stack) const {
  if (arg.kind == Arg::Kind::kConstant) {
    stack.emplace_back(constants_[arg.index]);
  } else if (arg.coerce != Arg::Coerce::kNone || arg.kind == Arg::Kind::kList) {
    stack.emplace_back(value_of(arg, slots));
  } else if (arg.kind == Arg::Kind::kLastUse) {
    stack.emplace_back(std::move(slots[arg.index]));
  } else {
    stack.emplace_back(slots[arg.index]);
  }
}

inline void Program::run_instruction(const Instruction& instruction, Frame& frame) const {
  std::vector<c10::IValue>& slots = frame.slots;
  Stack& stack = frame.stack;
  std::optional<ReplayGuard> replay;
  if (instruction.rng == RngMode::kReplay) {
    replay.emplace(instruction.rng_device, slots[instruction.rng_slot].toTensor());
  } else if (instruction.rng == RngMode::kSave) {
    at::Tensor state = generator_state(instruction.rng_device);
    if (instruction.rng_slot != kNoSlot) slots[instruction.rng_slot] = std::move(state);
  }
  for (const Arg& arg : instruction.args) push(arg, slots, stack);
  if (!instruction.op) {
    instruction.callback(stack);
  } else if (instruction.mutates) {
    const VersionCountingGuard counting;
    instruction.op->callBoxed(&stack);
  } else {
    instruction.op->callBoxed(&stack);
  }
  replay.reset();
  for (const Slot slot : instruction.frees) slots[slot] = c10::IValue();

  for (const Output& output : instruction.outputs) {
    c10::IValue& target = slots[output.slot];
    if (output.result == Output::kWhole) {
      target = c10::ivalue::Tuple::create(std::vector<c10::IValue>(stack.begin(), stack.end()));
      continue;
    }
    c10::IValue& result = stack[output.result];
    if (output.element >= 0) {
      target = element_of(result, output.element);
    } else {
      target = std::move(result);
    }
    if (!target.isTensor()) continue;
    const at::Tensor& tensor = target.toTensor();
    if (!tensor.defined()) {
      target = c10::IValue();  // a gradient that was not asked for: None, as Python sees it
    } else if (output.restride >= 0 && differs(tensor, layouts_[output.restride])) {
      target = restrided(tensor, layouts_[output.restride]);
    }
  }
  stack.clear();
}

void Program::run_instructions(Frame& frame, Observer* observer) const {
  Meter* const meter = observer ? observer->meter : nullptr;
  std::size_t index = 0;
  try {
    for (const Instruction& instruction : instructions_) {
      if (meter) meter->take_window_peak();
      run_instruction(instruction, frame);
      if (meter) observer->marks.push_back({meter->take_window_peak(), meter->current_bytes()});
      ++index;
    }
  } catch (c10::Error& error) {
    if (observer) observer->instruction = index;
    error.add_context("[program] instruction " + std::to_string(index) + " of " + std::to_string(instructions_.size()) + ": " +
                      instructions_[index].name);
    throw;
  } catch (...) {
    if (observer) observer->instruction = index;
    throw;
  }
}

std::vector<c10::IValue> Program::run(std::vector<c10::IValue>& inputs, Observer* observer) const {
  if (inputs.size() != input_slots_.size()) {
    throw std::invalid_argument("[program] it takes " + std::to_string(input_slots_.size()) + " inputs and was given " +
                                std::to_string(inputs.size()));
  }
  const c10::AutoGradMode no_grad(false);
  const c10::impl::ExcludeDispatchKeyGuard below_autograd(kTracedAway);
  FrameLease lease(*this);
  Frame& frame = lease.frame();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (input_slots_[i] != kNoSlot) frame.slots[input_slots_[i]] = std::move(inputs[i]);
  }
  inputs.clear();
  run_instructions(frame, observer);

  std::vector<c10::IValue> results;
  results.reserve(outputs_.size());
  for (const Arg& output : outputs_) results.push_back(value_of(output, frame.slots));
  return results;
}

}  // namespace rockmate
