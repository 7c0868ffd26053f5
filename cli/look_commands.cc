// The subcommands that plan nothing: import, simulate, show.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "cli/planning.h"
#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"
#include "rockmate/graph/node_link.h"
#include "rockmate/report/summary.h"
#include "rockmate/schedule/budget.h"
#include "rockmate/schedule/json.h"
#include "rockmate/schedule/simulator.h"
#include "rockmate/schedule/verifier.h"

namespace rockmate::cli {
namespace {

using nlohmann::ordered_json;

void print_trace(const TrainingGraph& graph, const Schedule& schedule, const Simulation& simulation) {
  std::printf("%8s %14s %14s  %s\n", "action", "bytes inside", "bytes after", "what");
  for (std::size_t at = 0; at < schedule.actions.size(); ++at) {
    if (at == schedule.forward_end) std::printf("%8s\n", "-- backward");
    const auto [kind, id] = schedule.actions[at];
    const bool compute = kind == Action::Kind::kCompute;
    std::printf("%8zu %14lld %14lld  %s%s%s\n", at, static_cast<long long>(simulation.bytes_inside[at]),
                static_cast<long long>(simulation.bytes_after[at]), compute ? "" : "free ",
                (compute ? graph.ops[id].name : graph.values[id].name).c_str(),
                at == simulation.peak_action ? "   <-- peak" : "");
  }
}

int show_graph(const TrainingGraph& graph, bool json) {
  const Simulation plain = rockmate::simulate(graph, schedule_from_sequence(graph, store_all_sequence(graph)));
  std::set<std::string> signatures;
  Bytes parameters = 0;
  int random = 0;
  for (const Op& op : graph.ops) {
    signatures.insert(op.signature);
    random += op.is_random;
  }
  for (const Value& value : graph.values) parameters += value.kind == ValueKind::kParameter ? value.bytes : 0;
  const OpId forward = num_forward_ops(graph);
  if (json) {
    const ordered_json result = {{"name", graph.name},
                                 {"device", graph.device},
                                 {"num_forward_ops", forward},
                                 {"num_backward_ops", graph.num_ops() - forward},
                                 {"num_random_ops", random},
                                 {"num_signatures", signatures.size()},
                                 {"num_values", graph.num_values()},
                                 {"parameter_bytes", parameters},
                                 {"store_all_peak_bytes", plain.peak_bytes},
                                 {"store_all_time_us", plain.time_us}};
    std::printf("%s\n", result.dump(2).c_str());
    return kDone;
  }
  std::printf("graph       %s, on %s\n", graph.name.c_str(), graph.device.c_str());
  std::printf("ops         %d forward, %d backward; %d random, %zu distinct signatures\n", forward, graph.num_ops() - forward,
              random, signatures.size());
  std::printf("values      %d; parameters %s\n", graph.num_values(), format_bytes(parameters).c_str());
  std::printf("plain step  peak %s, %.3f ms\n", format_bytes(plain.peak_bytes).c_str(), plain.time_us / 1e3);
  return kDone;
}

int show_schedule(const Schedule& schedule, bool json) {
  std::multiset<std::int32_t> computed;
  for (const Action& action : schedule.actions) {
    if (action.kind == Action::Kind::kCompute) computed.insert(action.id);
  }
  const std::size_t again = computed.size() - std::set<std::int32_t>(computed.begin(), computed.end()).size();
  if (json) {
    const ordered_json result = {{"num_actions", schedule.actions.size()},
                                 {"forward_end", schedule.forward_end},
                                 {"num_computes", computed.size()},
                                 {"num_recomputed", again}};
    std::printf("%s\n", result.dump(2).c_str());
    return kDone;
  }
  std::printf("schedule    %zu actions, the forward pass ends at %zu\n", schedule.actions.size(), schedule.forward_end);
  std::printf("computes    %zu, of them %zu again\n", computed.size(), again);
  return kDone;
}

}  // namespace

int simulate(const SimulateSettings& settings) {
  const TrainingGraph graph = load_graph(settings.graph_path, settings.device);
  const Schedule schedule = read_as(settings.schedule_path, schedule_from_json);
  if (const auto fault = verify(graph, schedule)) {
    std::fprintf(stderr, "%s\n", fault->message.c_str());
    return kInfeasible;
  }
  const Simulation simulation = rockmate::simulate(graph, schedule);
  if (settings.json) {
    ordered_json result = {{"peak_bytes", simulation.peak_bytes}, {"peak_action", simulation.peak_action},
                           {"time_us", simulation.time_us},       {"recompute_time_us", simulation.recompute_time_us},
                           {"overhead", simulation.overhead()},   {"num_recomputed", simulation.num_recomputed}};
    if (settings.trace) {
      result["bytes_inside"] = simulation.bytes_inside;
      result["bytes_after"] = simulation.bytes_after;
    }
    std::printf("%s\n", result.dump(2).c_str());
    return kDone;
  }
  if (settings.trace) print_trace(graph, schedule, simulation);
  std::printf("peak        %lld bytes (%s), at action %zu of %zu\n", static_cast<long long>(simulation.peak_bytes),
              format_bytes(simulation.peak_bytes).c_str(), simulation.peak_action, schedule.actions.size());
  std::printf("time        %.3f ms, overhead %.2f%%\n", simulation.time_us / 1e3, 100 * simulation.overhead());
  std::printf("recomputed  %d\n", simulation.num_recomputed);
  if (schedule.actions.empty()) return kDone;
  std::printf("largest at the peak\n");
  const PeakSummary summary = summarize_action(graph, schedule, simulation.peak_action);
  for (std::size_t i = 0; i < summary.values.size() && i < 8; ++i) {
    const Holder& holder = summary.values[i];
    std::printf("  %10s  %s  %s\n", format_bytes(holder.bytes).c_str(), holder.what.c_str(), holder.block.c_str());
  }
  return kDone;
}

int import_graph(const std::string& path, const std::string& output_path, bool json) {
  const TrainingGraph graph = read_as(path, [](const std::string& text) { return graph_from_node_link(text); });
  write_file(output_path, graph_to_json(graph));
  return json ? show_graph(graph, json) : kDone;
}

int show(const std::string& path, bool json) {
  return read_as(path, [json](const std::string& text) {
    const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
    const bool is_schedule = document.is_object() && document.value("format", nlohmann::json()) == "rockmate-schedule";
    return is_schedule ? show_schedule(schedule_from_json(text), json) : show_graph(graph_from_json(text), json);
  });
}

}  // namespace rockmate::cli
