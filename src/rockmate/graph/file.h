// Whole files in and out. What is written appears under its name complete or not at all.
#pragma once

#include <string>

namespace rockmate {

// Throws std::invalid_argument when the file can't be read.
std::string read_file(const std::string& path);

// Writes beside `path` and renames. Throws std::invalid_argument, and leaves what was there, when it can't be written.
void write_file(const std::string& path, const std::string& text);

}  // namespace rockmate
