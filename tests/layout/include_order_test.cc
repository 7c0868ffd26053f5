// The layers of src/rockmate: a folder includes only itself and those above it. HiGHS is included in ilp/ only, torch in
// runtime/ and its binding only.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// In processing order. runtime/ stands apart: it may use the nouns of graph/, and nothing uses it.
const std::vector<std::string> kLayers = {"graph",   "cost",    "partition", "schedule", "ilp",
                                          "solvers", "planner", "planners",  "report",   "runtime"};

struct Include {
  fs::path file;  // below the source folder
  std::string target;
};

std::vector<Include> includes_in(const std::string& folder) {
  const fs::path root = ROCKMATE_SOURCE_DIR;
  const std::regex pattern(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
  std::vector<Include> includes;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cc" && extension != ".h") continue;
    std::ifstream in(entry.path());
    std::smatch match;
    for (std::string line; std::getline(in, line);) {
      if (std::regex_search(line, match, pattern)) includes.push_back({fs::relative(entry.path(), root), match[1]});
    }
  }
  return includes;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](const std::string& b) { return text.starts_with(b); });
}

// "rockmate/graph/graph.h" -> 0; -1 for what is none of ours.
int layer_of(const std::string& include) {
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    if (include.starts_with("rockmate/" + kLayers[i] + "/")) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

TEST_CASE("a folder includes only those above it") {
  for (const Include& include : includes_in("src")) {
    CAPTURE(include.file.string());
    CAPTURE(include.target);
    const int own = layer_of(include.file.string().substr(4));  // without "src/"
    REQUIRE(own >= 0);                                          // every file lies in a layer
    CHECK(layer_of(include.target) <= own);
    if (kLayers[own] == "runtime" && layer_of(include.target) >= 0) {
      CHECK(starts_with_any(include.target, {"rockmate/runtime/", "rockmate/graph/"}));
    }
    // Ours are rooted at the project, never relative to the file.
    CHECK_FALSE(include.target.starts_with("."));
    if (include.target.starts_with("rockmate/")) CHECK(fs::exists(fs::path(ROCKMATE_SOURCE_DIR) / "src" / include.target));
  }
}

TEST_CASE("HiGHS only in ilp/") {
  for (const char* folder : {"src", "bindings", "cli", "tests"}) {
    for (const Include& include : includes_in(folder)) {
      CAPTURE(include.file.string());
      CAPTURE(include.target);
      const bool highs = starts_with_any(include.target, {"highs", "Highs", "interfaces/highs", "HConfig"});
      if (highs) CHECK(include.file.string().starts_with("src/rockmate/ilp/"));
    }
  }
}

TEST_CASE("torch only in runtime/ and its binding") {
  for (const char* folder : {"src", "bindings", "cli", "tests"}) {
    for (const Include& include : includes_in(folder)) {
      CAPTURE(include.file.string());
      CAPTURE(include.target);
      if (!starts_with_any(include.target, {"torch/", "ATen/", "c10/", "caffe2/"})) continue;
      const std::string file = include.file.string();
      CHECK((file.starts_with("src/rockmate/runtime/") || file.starts_with("bindings/bind_runtime")));
    }
  }
}

TEST_CASE("the planning side includes no Python, and files stay small") {
  for (const Include& include : includes_in("src")) {
    if (include.file.string().find("/runtime/") != std::string::npos) continue;
    CAPTURE(include.file.string());
    CHECK_FALSE(starts_with_any(include.target, {"Python.h", "pybind11/"}));
  }
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ROCKMATE_SOURCE_DIR) / "src")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    const auto lines = std::count(std::istreambuf_iterator<char>(in), {}, '\n');
    CAPTURE(entry.path().string());
    CHECK(lines < 500);
  }
}
