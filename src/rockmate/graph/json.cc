#include "rockmate/graph/json.h"

#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "rockmate/graph/json_reader.h"

namespace rockmate {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "rockmate-graph";
constexpr int kVersion = 1;

constexpr std::array<const char*, 8> kKinds = {"parameter", "buffer",     "input",    "constant",
                                               "tangent",   "activation", "gradient", "parameter_gradient"};
constexpr std::array<const char*, 3> kRetentions = {"last_use", "forward_end", "step_end"};
constexpr std::array<const char*, 2> kPasses = {"forward", "backward"};

template <typename Enum>
void read_enum(JsonFields& fields, const JsonPlace& place, const std::string& key, std::span<const char* const> names,
               Enum& target) {
  std::string text = names[static_cast<std::size_t>(target)];
  fields.read(key, text);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (text == names[i]) {
      target = static_cast<Enum>(i);
      return;
    }
  }
  std::string all;
  for (const char* name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  place.in(key).fail("'" + text + "' is none of " + all);
}

Value value_from(const json& object, const JsonPlace& place) {
  JsonFields fields(object, place);
  Value value;
  fields.read("name", value.name);
  fields.read("bytes", value.bytes);
  read_enum(fields, place, "kind", kKinds, value.kind);
  read_enum(fields, place, "retention", kRetentions, value.retention);
  fields.read("producer", value.producer);
  fields.finish();
  return value;
}

Op op_from(const json& object, const JsonPlace& place) {
  JsonFields fields(object, place);
  Op op;
  fields.read("name", op.name);
  fields.read("target", op.target);
  fields.read("signature", op.signature);
  fields.read("module", op.module);
  read_enum(fields, place, "pass", kPasses, op.pass);
  fields.read("inputs", op.inputs);
  fields.read("outputs", op.outputs);
  fields.read("time_us", op.time_us);
  fields.read("workspace_bytes", op.workspace_bytes);
  fields.read("flops", op.flops);
  fields.read("moved_bytes", op.moved_bytes);
  fields.read("dtype", op.dtype);
  fields.read("is_random", op.is_random);
  fields.read("recomputable", op.recomputable);
  fields.finish();
  return op;
}

ordered_json to_json(const Value& value) {
  ordered_json object = {{"name", value.name}, {"bytes", value.bytes}, {"kind", name_of(value.kind)}};
  if (value.retention != Retention::kUntilLastUse) object["retention"] = name_of(value.retention);
  if (value.producer != kNone) object["producer"] = value.producer;
  return object;
}

ordered_json to_json(const Op& op) {
  ordered_json object = {{"name", op.name},       {"target", op.target},           {"signature", op.signature},
                         {"module", op.module},   {"pass", name_of(op.pass)},      {"inputs", op.inputs},
                         {"outputs", op.outputs}, {"time_us", op.time_us},         {"workspace_bytes", op.workspace_bytes},
                         {"flops", op.flops},     {"moved_bytes", op.moved_bytes}, {"dtype", op.dtype}};
  if (op.is_random) object["is_random"] = true;
  if (!op.recomputable) object["recomputable"] = false;
  return object;
}

// One element a line, so that two graphs can be compared line by line.
template <typename T>
std::string lines(const std::vector<T>& items) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i ? ",\n  " : "\n  ") + to_json(items[i]).dump();
  return text + "]";
}

}  // namespace

std::string name_of(ValueKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }
std::string name_of(Retention retention) { return kRetentions.at(static_cast<std::size_t>(retention)); }
std::string name_of(Pass pass) { return kPasses.at(static_cast<std::size_t>(pass)); }

std::string graph_to_json(const TrainingGraph& graph) {
  check_graph(graph);
  try {
    return std::string("{\"format\": \"") + kFormat + "\", \"version\": " + std::to_string(kVersion) +
           ",\n \"name\": " + json(graph.name).dump() + ", \"device\": " + json(graph.device).dump() +
           ", \"rng_state_bytes\": " + std::to_string(graph.rng_state_bytes) +
           (graph.has_boundary ? "" : ", \"has_boundary\": false") + ",\n \"values\": " + lines(graph.values) +
           ",\n \"ops\": " + lines(graph.ops) + "}\n";
  } catch (const json::type_error& error) {
    throw std::invalid_argument(std::string("[graph] a name is no UTF-8 text: ") + error.what());
  }
}

TrainingGraph graph_from_json(const std::string& text) {
  const json document = parse_document(text, "graph", kFormat, kVersion);
  const JsonPlace top{"graph", ""};
  JsonFields fields(document, top);
  TrainingGraph graph;
  fields.read("name", graph.name);
  fields.read("device", graph.device);
  fields.read("rng_state_bytes", graph.rng_state_bytes);
  fields.read("has_boundary", graph.has_boundary);
  const json& values = fields.array("values");
  for (std::size_t i = 0; i < values.size(); ++i) graph.values.push_back(value_from(values[i], top.in("values").at(i)));
  const json& ops = fields.array("ops");
  for (std::size_t i = 0; i < ops.size(); ++i) graph.ops.push_back(op_from(ops[i], top.in("ops").at(i)));
  fields.finish();
  check_graph(graph);
  return graph;
}

}  // namespace rockmate
