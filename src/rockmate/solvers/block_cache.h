// Solved blocks on disk: one small text file for each class of blocks and grid.
//
// A file holds the block's canonical form, compared in full when it is read, and the sequences of its options, which are
// checked and priced again. Files are written beside their place and renamed into it, so a reader or an interrupted run never
// leaves half of one; a file that is damaged or of another block counts as missing and is written anew. A directory
// that can't be written is no error: planning is only slower the next time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "rockmate/solvers/block_options.h"

namespace rockmate {

class BlockCache {
 public:
  // No caching when the directory is empty.
  BlockCache(const std::string& directory, const BlockSettings& settings);

  std::optional<BlockOptions> find(const BlockProblem& problem, const std::vector<std::int64_t>& form) const;
  void store(const std::vector<std::int64_t>& form, const BlockOptions& options) const;

 private:
  std::vector<std::int64_t> key(const std::vector<std::int64_t>& form) const;
  std::filesystem::path path_of(const std::vector<std::int64_t>& key) const;

  std::filesystem::path directory_;
  std::vector<std::int64_t> settings_;
};

}  // namespace rockmate
