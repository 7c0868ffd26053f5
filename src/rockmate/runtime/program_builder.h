// Builds a Program: what is called in which order. Lifetimes follow from the uses.
//
//   ProgramBuilder builder;
//   Slot x = builder.add_input(), w = builder.add_input(), h = builder.new_slot(), y = builder.new_slot();
//   builder.call(mm, {Operand::of(x), Operand::of(w)}, {{.result = 0, .slot = h}}, "aten::mm");
//   builder.call(relu, {Operand::of(h)}, {{.result = 0, .slot = y}}, "aten::relu");
//   std::unique_ptr<Program> program = std::move(builder).finish({Operand::of(y)});
#pragma once

#include <memory>

#include "rockmate/runtime/program.h"

namespace rockmate {

// An argument before lifetimes are known: a constant, a slot or a list of operands.
struct Operand {
  enum class Kind : std::uint8_t { kConstant, kSlot, kList };
  Kind kind = Kind::kConstant;
  c10::IValue constant;
  Slot slot = kNoSlot;
  Arg::Coerce coerce = Arg::Coerce::kNone;
  c10::TypePtr element_type;
  std::vector<Operand> elements;

  static Operand of(Slot slot);
  static Operand of_constant(c10::IValue value);
};

class ProgramBuilder {
 public:
  Slot add_input();
  Slot new_slot();
  std::int32_t add_layout(Layout layout);

  // One operand per argument of the op's schema. Throws std::invalid_argument when their number is wrong or a slot is read
  // before it is written.
  Instruction& call(const c10::OperatorHandle& op, const std::vector<Operand>& operands, std::vector<Output> outputs,
                    std::string name);
  Instruction& call(Callback callback, const std::vector<Operand>& operands, std::vector<Output> outputs, std::string name);

  // Makes the last instruction save the generator's state in `state` (kNoSlot: in nobody's), or replay the one there.
  void save_rng(c10::Device device, Slot state);
  void replay_rng(c10::Device device, Slot state);

  std::unique_ptr<Program> finish(const std::vector<Operand>& outputs) &&;

 private:
  Arg lower(const Operand& operand);
  Instruction& add(const std::vector<Operand>& operands, std::vector<Output> outputs, std::string name);
  void mark_written(Slot slot);
  void find_last_uses();

  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  std::vector<bool> written_;  // by slot
};

}  // namespace rockmate
