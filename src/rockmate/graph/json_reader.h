// Reading JSON objects with errors that say where: "[graph] ops[3].time_us: expected a number, found a string".
// For the sources that read files; no public header includes it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace rockmate {

// Where in which kind of file a piece of JSON lies.
struct JsonPlace {
  std::string stage;  // "graph"
  std::string path;   // "ops[3]"; empty for the whole document

  [[noreturn]] void fail(const std::string& what) const;
  JsonPlace in(const std::string& key) const { return {stage, path.empty() ? key : path + "." + key}; }
  JsonPlace at(std::size_t index) const { return {stage, path + "[" + std::to_string(index) + "]"}; }
};

// The fields of one object. A field that is absent leaves its target as it was; one that nobody read is an error in finish().
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, JsonPlace place);

  void read(const std::string& key, std::string& target);
  void read(const std::string& key, std::int32_t& target);
  void read(const std::string& key, std::int64_t& target);
  void read(const std::string& key, double& target);
  void read(const std::string& key, bool& target);
  void read(const std::string& key, std::vector<std::int32_t>& target);
  void read(const std::string& key, std::vector<std::int64_t>& target);
  void read(const std::string& key, std::vector<std::string>& target);
  void read(const std::string& key, std::map<std::string, double>& target);

  // The array under `key`; an error when it is absent.
  const nlohmann::json& array(const std::string& key);
  void finish() const;

 private:
  const nlohmann::json* find(const std::string& key);

  const nlohmann::json& object_;
  JsonPlace place_;
  std::set<std::string> known_;
};

std::int64_t json_integer(const nlohmann::json& json, const JsonPlace& place, std::int64_t low, std::int64_t high);

// Parses the text, or says that it is no JSON.
nlohmann::json parse_json(const std::string& text, const std::string& stage);

// Parses the text and checks its "format" and "version", which count as read.
nlohmann::json parse_document(const std::string& text, const std::string& stage, const std::string& format, int version);

}  // namespace rockmate
