#include "rockmate/solvers/block_options.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "rockmate/solvers/block_cache.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;
using namespace rockmate::testing;

namespace {

BlockClasses transformer_blocks() {
  const TrainingGraph graph = transformer(2);
  return classify_blocks(graph, partition_chain(graph));
}

// The largest block: attention.
const BlockProblem& largest(const BlockClasses& classes) {
  return *std::max_element(classes.problems.begin(), classes.problems.end(),
                           [](const auto& a, const auto& b) { return a.graph.num_ops() < b.graph.num_ops(); });
}

}  // namespace

TEST_CASE("the options of a block trade saved bytes and peak for time") {
  const BlockClasses classes = transformer_blocks();
  const BlockProblem& problem = largest(classes);
  const BlockOptions found = block_options(problem, {});
  CHECK(found.complete);
  CHECK(found.num_programs == 0);  // the search answers them all
  REQUIRE(found.options.size() > 10);
  bool keeps_all = false, saves_nothing = false;
  for (const BlockOption& option : found.options) {
    CHECK(option == price_option(problem, option.sequence));
    keeps_all = keeps_all || option.recompute_us == 0;
    saves_nothing = saves_nothing || option.saved_bytes == 0;
  }
  CHECK(keeps_all);
  CHECK(saves_nothing);
}

TEST_CASE("programs take over where the search may not hold enough states") {
  const BlockClasses classes = transformer_blocks();
  const BlockProblem& problem =
      *std::min_element(classes.problems.begin(), classes.problems.end(), [](const auto& a, const auto& b) {
        const auto distance = [](const BlockProblem& p) { return std::abs(p.graph.num_ops() - 22); };
        return distance(a) < distance(b);
      });
  BlockSettings settings;
  settings.save_levels = settings.peak_levels = 3;
  settings.max_states = 2;
  const BlockOptions by_program = block_options(problem, settings);
  CHECK(by_program.num_programs > 0);
  settings.max_states = 50'000;
  const BlockOptions by_search = block_options(problem, settings);
  // At each pair of budgets of the coarse grid the program is as fast as the search, within its gap.
  for (const BlockOption& asked : by_search.options) {
    Micros best = std::numeric_limits<Micros>::infinity();
    for (const BlockOption& option : by_program.options) {
      const bool fits = option.saved_bytes <= asked.saved_bytes && option.backward_peak_bytes <= asked.backward_peak_bytes;
      if (fits) best = std::min(best, option.recompute_us);
    }
    if (asked.recompute_us == 0) CHECK(best == 0);
  }
}

TEST_CASE("solved blocks are read back, and a damaged file is solved anew") {
  const auto directory = std::filesystem::temp_directory_path() / "rockmate-block-cache-test";
  std::filesystem::remove_all(directory);
  const BlockClasses classes = transformer_blocks();
  const BlockProblem& problem = classes.problems[1];
  const BlockSettings settings;
  const BlockCache cache(directory.string(), settings);
  CHECK_FALSE(cache.find(problem, classes.forms[1]).has_value());
  const BlockOptions solved = block_options(problem, settings);
  cache.store(classes.forms[1], solved);
  REQUIRE(cache.find(problem, classes.forms[1]).has_value());
  CHECK(cache.find(problem, classes.forms[1])->options == solved.options);
  CHECK_FALSE(cache.find(classes.problems[0], classes.forms[0]).has_value());
  BlockSettings other = settings;
  other.peak_levels = 11;
  CHECK_FALSE(BlockCache(directory.string(), other).find(problem, classes.forms[1]).has_value());

  REQUIRE(std::distance(std::filesystem::directory_iterator(directory), {}) == 1);
  const std::filesystem::path file = std::filesystem::directory_iterator(directory)->path();
  const auto size = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, size * 2 / 3);
  CHECK_FALSE(cache.find(problem, classes.forms[1]).has_value());
  std::ofstream(file) << "not a block";
  CHECK_FALSE(cache.find(problem, classes.forms[1]).has_value());
  cache.store(classes.forms[1], solved);
  CHECK(cache.find(problem, classes.forms[1]).has_value());
  std::filesystem::remove_all(directory);
}

TEST_CASE("with little time a block gets less of searches and programs, never so little that small ones are not answered") {
  const BlockSettings usual;
  BlockSettings plenty, little, none;
  CHECK_FALSE(fit_to_time(1000, 10, plenty));
  CHECK(plenty.max_states == usual.max_states);
  CHECK(plenty.time_limit_s == usual.time_limit_s);
  CHECK(fit_to_time(2, 10, little));
  CHECK(little.max_states < usual.max_states);
  CHECK(little.time_limit_s * little.max_programs * 10 <= 1);
  CHECK(fit_to_time(-1, 10, none));
  CHECK(none.max_states > 0);
  CHECK(none.max_states < little.max_states);
  const BlockClasses classes = transformer_blocks();
  CHECK(block_options(classes.problems.front(), none).options.size() > 1);
}
