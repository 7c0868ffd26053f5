#include "rockmate/runtime/program_builder.h"

#include <algorithm>
#include <stdexcept>

namespace rockmate {
namespace {

void for_each_slot(std::vector<Arg>& args, std::vector<ListArg>& lists, const std::function<void(Arg&)>& visit) {
  for (Arg& arg : args) {
    if (arg.kind == Arg::Kind::kSlot) visit(arg);
    if (arg.kind == Arg::Kind::kList) for_each_slot(lists[arg.index].elements, lists, visit);
  }
}

}  // namespace

Operand Operand::of(Slot slot) {
  Operand operand;
  operand.kind = Kind::kSlot;
  operand.slot = slot;
  return operand;
}

Operand Operand::of_constant(c10::IValue value) {
  Operand operand;
  operand.constant = std::move(value);
  return operand;
}

Slot ProgramBuilder::new_slot() {
  written_.push_back(false);
  return static_cast<Slot>(program_->num_slots_++);
}

Slot ProgramBuilder::add_input() {
  const Slot slot = new_slot();
  program_->input_slots_.push_back(slot);
  written_[slot] = true;
  return slot;
}

std::int32_t ProgramBuilder::add_layout(Layout layout) {
  program_->layouts_.push_back(std::move(layout));
  return static_cast<std::int32_t>(program_->layouts_.size()) - 1;
}

Arg ProgramBuilder::lower(const Operand& operand) {
  if (operand.kind == Operand::Kind::kSlot) {
    if (operand.slot < 0 || static_cast<std::size_t>(operand.slot) >= written_.size() || !written_[operand.slot]) {
      throw std::invalid_argument("[program] slot " + std::to_string(operand.slot) + " is read before it is written");
    }
    return {Arg::Kind::kSlot, operand.coerce, operand.slot};
  }
  if (operand.kind == Operand::Kind::kConstant) {
    program_->constants_.push_back(operand.constant);
    return {Arg::Kind::kConstant, Arg::Coerce::kNone, static_cast<std::int32_t>(program_->constants_.size()) - 1};
  }
  ListArg list{operand.element_type, {}};
  for (const Operand& element : operand.elements) list.elements.push_back(lower(element));
  program_->lists_.push_back(std::move(list));
  return {Arg::Kind::kList, Arg::Coerce::kNone, static_cast<std::int32_t>(program_->lists_.size()) - 1};
}

void ProgramBuilder::mark_written(Slot slot) {
  if (slot < 0 || static_cast<std::size_t>(slot) >= written_.size() || written_[slot]) {
    throw std::invalid_argument("[program] slot " + std::to_string(slot) + " is written twice or does not exist");
  }
  written_[slot] = true;
}

Instruction& ProgramBuilder::add(const std::vector<Operand>& operands, std::vector<Output> outputs, std::string name) {
  Instruction instruction;
  for (const Operand& operand : operands) instruction.args.push_back(lower(operand));
  program_->max_args_ = std::max(program_->max_args_, operands.size() + 8);
  for (const Output& output : outputs) mark_written(output.slot);
  instruction.outputs = std::move(outputs);
  instruction.name = std::move(name);
  return program_->instructions_.emplace_back(std::move(instruction));
}

Instruction& ProgramBuilder::call(const c10::OperatorHandle& op, const std::vector<Operand>& operands,
                                  std::vector<Output> outputs, std::string name) {
  const c10::FunctionSchema& schema = op.schema();
  if (operands.size() != schema.arguments().size()) {
    throw std::invalid_argument("[program] " + name + " takes " + std::to_string(schema.arguments().size()) +
                                " arguments and was given " + std::to_string(operands.size()));
  }
  Instruction& instruction = add(operands, std::move(outputs), std::move(name));
  instruction.op = op;
  instruction.mutates = schema.is_mutable();
  return instruction;
}

Instruction& ProgramBuilder::call(Callback callback, const std::vector<Operand>& operands, std::vector<Output> outputs,
                                  std::string name) {
  Instruction& instruction = add(operands, std::move(outputs), std::move(name));
  instruction.callback = std::move(callback);
  return instruction;
}

void ProgramBuilder::save_rng(c10::Device device, Slot state) {
  Instruction& instruction = program_->instructions_.back();
  instruction.rng = RngMode::kSave;
  instruction.rng_device = device;
  instruction.rng_slot = state;
  if (state != kNoSlot) mark_written(state);
}

void ProgramBuilder::replay_rng(c10::Device device, Slot state) {
  const Arg read = lower(Operand::of(state));
  Instruction& instruction = program_->instructions_.back();
  instruction.rng = RngMode::kReplay;
  instruction.rng_device = device;
  instruction.rng_slot = read.index;
}

void ProgramBuilder::find_last_uses() {
  // From the end backwards: the first time that a slot is met is its last use. It can be moved where it is met only once.
  Program& program = *program_;
  std::vector<bool> read_later(program.num_slots_, false);
  std::vector<int> met(program.num_slots_, 0);
  auto settle = [&](std::vector<Arg>& args, Slot also_read, std::vector<Slot>* frees) {
    for_each_slot(args, program.lists_, [&](Arg& arg) { ++met[arg.index]; });
    if (also_read != kNoSlot) ++met[also_read];
    auto dies = [&](Slot slot) { return !read_later[slot]; };
    std::vector<Slot> touched;
    for_each_slot(args, program.lists_, [&](Arg& arg) {
      touched.push_back(arg.index);
      if (dies(arg.index) && met[arg.index] == 1) {
        arg.kind = Arg::Kind::kLastUse;
      } else if (frees && dies(arg.index) && std::find(frees->begin(), frees->end(), arg.index) == frees->end()) {
        frees->push_back(arg.index);
      }
    });
    if (also_read != kNoSlot) {
      touched.push_back(also_read);
      if (frees && dies(also_read) && met[also_read] == 1) frees->push_back(also_read);
    }
    for (const Slot slot : touched) {
      read_later[slot] = true;
      met[slot] = 0;
    }
  };
  settle(program.outputs_, kNoSlot, nullptr);
  for (auto it = program.instructions_.rbegin(); it != program.instructions_.rend(); ++it) {
    // What nobody reads never gets into a slot.
    std::erase_if(it->outputs, [&](const Output& output) { return !read_later[output.slot]; });
    if (it->rng == RngMode::kSave && it->rng_slot != kNoSlot && !read_later[it->rng_slot]) it->rng_slot = kNoSlot;
    settle(it->args, it->rng == RngMode::kReplay ? it->rng_slot : kNoSlot, &it->frees);
  }
  for (Slot& slot : program.input_slots_) {
    if (!read_later[slot]) slot = kNoSlot;
  }
}

std::unique_ptr<Program> ProgramBuilder::finish(const std::vector<Operand>& outputs) && {
  for (const Operand& output : outputs) program_->outputs_.push_back(lower(output));
  find_last_uses();
  return std::move(program_);
}

}  // namespace rockmate
