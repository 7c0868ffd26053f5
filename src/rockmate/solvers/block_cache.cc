#include "rockmate/solvers/block_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <fstream>
#include <system_error>

namespace rockmate {
namespace {

constexpr std::int64_t kVersion = 1;  // of the solvers: raised when they find other options for the same block
constexpr const char* kMagic = "rockmate-block";

std::uint64_t hash_of(const std::vector<std::int64_t>& numbers, std::uint64_t seed) {
  std::uint64_t hash = seed;
  for (std::int64_t number : numbers) {
    hash ^= static_cast<std::uint64_t>(number) + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
    hash *= 0xff51afd7ed558ccd;
    hash ^= hash >> 33;
  }
  return hash;
}

// Numbers as the file has them: how many, then each, then their hash.
void write_numbers(std::ostream& out, const std::vector<std::int64_t>& numbers) {
  out << numbers.size();
  for (std::int64_t number : numbers) out << ' ' << number;
  out << ' ' << static_cast<std::int64_t>(hash_of(numbers, 1)) << '\n';
}

bool read_numbers(std::istream& in, std::vector<std::int64_t>& numbers) {
  std::size_t count = 0;
  if (!(in >> count) || count > 100'000'000) return false;
  numbers.clear();
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t number = 0;
    if (!(in >> number)) return false;
    numbers.push_back(number);
  }
  std::int64_t hash = 0;
  return in >> hash && hash == static_cast<std::int64_t>(hash_of(numbers, 1));
}

// Is this a forward pass in order and then each backward op once, with forward ops between?
bool is_sequence(const TrainingGraph& graph, const std::vector<std::int64_t>& sequence) {
  const std::size_t num_forward = num_forward_ops(graph);
  if (sequence.size() < static_cast<std::size_t>(graph.num_ops())) return false;
  std::vector<bool> done(graph.num_ops(), false);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (sequence[i] < 0 || sequence[i] >= graph.num_ops()) return false;
    if (i < num_forward && sequence[i] != static_cast<std::int64_t>(i)) return false;
    const bool is_backward = sequence[i] >= static_cast<std::int64_t>(num_forward);
    if (is_backward && done[sequence[i]]) return false;
    if (i >= num_forward && !is_backward && !graph.ops[sequence[i]].recomputable) return false;
    done[sequence[i]] = true;
  }
  return std::find(done.begin(), done.end(), false) == done.end();
}

}  // namespace

BlockCache::BlockCache(const std::string& directory, const BlockSettings& settings)
    : directory_(directory),
      settings_{kVersion, settings.save_levels, settings.peak_levels, std::bit_cast<std::int64_t>(settings.mip_gap),
                settings.max_program_binaries} {}

std::vector<std::int64_t> BlockCache::key(const std::vector<std::int64_t>& form) const {
  std::vector<std::int64_t> numbers = settings_;
  numbers.insert(numbers.end(), form.begin(), form.end());
  return numbers;
}

std::filesystem::path BlockCache::path_of(const std::vector<std::int64_t>& key) const {
  char name[64];
  std::snprintf(name, sizeof name, "block-%016llx%016llx.txt", static_cast<unsigned long long>(hash_of(key, 2)),
                static_cast<unsigned long long>(hash_of(key, 3)));
  return directory_ / name;
}

std::optional<BlockOptions> BlockCache::find(const BlockProblem& problem, const std::vector<std::int64_t>& form) const {
  if (directory_.empty()) return std::nullopt;
  const std::vector<std::int64_t> wanted = key(form);
  std::ifstream in(path_of(wanted));
  std::string magic;
  std::vector<std::int64_t> numbers;
  std::size_t count = 0;
  if (!(in >> magic) || magic != kMagic || !read_numbers(in, numbers) || numbers != wanted || !(in >> count))
    return std::nullopt;
  BlockOptions result;
  for (std::size_t i = 0; i < count; ++i) {
    if (!read_numbers(in, numbers) || !is_sequence(problem.graph, numbers)) return std::nullopt;
    result.options.push_back(price_option(problem, {numbers.begin(), numbers.end()}));
  }
  if (result.options.empty()) return std::nullopt;
  return result;
}

void BlockCache::store(const std::vector<std::int64_t>& form, const BlockOptions& options) const {
  if (directory_.empty()) return;
  static std::atomic<int> count{0};
  std::error_code failed;
  std::filesystem::create_directories(directory_, failed);
  const std::vector<std::int64_t> numbers = key(form);
  const std::filesystem::path path = path_of(numbers);
  std::filesystem::path beside = path;
  beside += "." + std::to_string(getpid()) + "." + std::to_string(count++) + ".tmp";
  {
    std::ofstream out(beside);
    out << kMagic << '\n';
    write_numbers(out, numbers);
    out << options.options.size() << '\n';
    for (const BlockOption& option : options.options) {
      write_numbers(out, {option.sequence.begin(), option.sequence.end()});
    }
    out.flush();
    if (!out) {
      out.close();
      std::filesystem::remove(beside, failed);
      return;
    }
  }
  std::filesystem::rename(beside, path, failed);
  if (failed) std::filesystem::remove(beside, failed);
}

}  // namespace rockmate
