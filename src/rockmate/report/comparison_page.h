// Several runs on one page: a table, all their memory curves in one picture, and one picture each.
#pragma once

#include <string>
#include <vector>

#include "rockmate/graph/graph.h"

namespace rockmate {

struct RunTrace {
  std::string label;         // "predicted", "measured"
  std::vector<Bytes> bytes;  // held, from the beginning of the step to its end
};

struct Run {
  std::string label;               // "50 %", "torch.utils.checkpoint"
  std::vector<std::string> cells;  // as many as Comparison::columns
  Bytes budget_bytes = 0;          // the line in its picture; 0 for none
  std::vector<RunTrace> traces;    // the last one is drawn in the common picture
};

struct Comparison {
  std::string title, subtitle;
  std::vector<std::string> columns;  // of the table, beside the label's
  std::vector<Run> runs;
  std::vector<std::string> notes;  // paragraphs below the table
};

std::string comparison_page(const Comparison& comparison);

// {"title": "...", "subtitle": "...", "columns": ["peak"], "notes": ["..."],
//  "runs": [{"label": "50 %", "cells": ["12 MiB"], "budget_bytes": 12582912,
//            "traces": [{"label": "measured", "bytes": [0, 1024, ...]}]}]}
// Throws std::invalid_argument ("[report] runs[0].cells: ...") when the text is none of that.
Comparison comparison_from_json(const std::string& text);

}  // namespace rockmate
