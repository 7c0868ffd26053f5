// A training graph as text, so that planning, tests and bug reports need no torch. The example of graph.h begins
//
//   {"format": "rockmate-graph", "version": 1, "name": "example", "device": "cpu", "rng_state_bytes": 0,
//    "values": [
//     {"name": "x", "bytes": 7, "kind": "input"},
//     {"name": "h", "bytes": 1000, "kind": "activation", "producer": 0},
//     {"name": "loss", "bytes": 4, "kind": "activation", "retention": "step_end", "producer": 2},
//     ...],
//    "ops": [
//     {"name": "mm", "target": "aten.mm.default", "pass": "forward", "inputs": [0, 1], "outputs": [2], "time_us": 8},
//     ...]}
//
// A field that is left out has the default of graph.h; an unknown one is an error. Kinds: parameter, buffer, input, constant,
// tangent, activation, gradient, parameter_gradient. Retention: last_use, forward_end, step_end. Pass: forward, backward.
#pragma once

#include <string>

#include "rockmate/graph/graph.h"

namespace rockmate {

// graph_from_json(graph_to_json(g)) is g, times to the last bit.
std::string graph_to_json(const TrainingGraph& graph);

// Throws std::invalid_argument with the place and the trouble when the text is no graph of this version, or check_graph
// refuses.
TrainingGraph graph_from_json(const std::string& text);

// The names used in the file.
std::string name_of(ValueKind kind);
std::string name_of(Retention retention);
std::string name_of(Pass pass);

}  // namespace rockmate
