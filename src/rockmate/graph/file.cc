#include "rockmate/graph/file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rockmate {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, const std::string& why) {
  throw std::invalid_argument("[file] can't " + what + " '" + path + "': " + why);
}

// A name that no other process or thread writes to, in the folder of `path` so that the rename stays on one disk.
std::string temporary_beside(const std::string& path) {
  static std::atomic<int> counter{0};
  return path + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".tmp";
}

}  // namespace

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) fail("read", path, "it is a folder");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in && !in.eof()) fail("read", path, errno ? std::strerror(errno) : "input error");
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = temporary_beside(path);
  errno = 0;
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  const std::string why = errno ? std::strerror(errno) : "output error";
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (!out || error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    fail("write", path, error ? error.message() : why);
  }
}

}  // namespace rockmate
