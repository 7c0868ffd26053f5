#include "rockmate/graph/json_reader.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace rockmate {
namespace {

using nlohmann::json;

std::string found(const json& value) { return std::string(", found ") + (value.is_null() ? "null" : value.type_name()); }

template <typename T>
constexpr std::int64_t kLow = std::numeric_limits<T>::min();
template <typename T>
constexpr std::int64_t kHigh = std::numeric_limits<T>::max();

}  // namespace

void JsonPlace::fail(const std::string& what) const {
  throw std::invalid_argument("[" + stage + "] " + (path.empty() ? "" : path + ": ") + what);
}

std::int64_t json_integer(const json& value, const JsonPlace& place, std::int64_t low, std::int64_t high) {
  if (!value.is_number_integer()) place.fail("expected a whole number" + found(value));
  const bool too_high = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high);
  if (too_high || value.get<std::int64_t>() < low) place.fail("the number " + value.dump() + " is out of range");
  return value.get<std::int64_t>();
}

JsonFields::JsonFields(const json& object, JsonPlace place)
    : object_(object), place_(std::move(place)), known_{"format", "version"} {
  if (!object.is_object()) place_.fail("expected an object" + found(object));
}

const json* JsonFields::find(const std::string& key) {
  known_.insert(key);
  const auto field = object_.find(key);
  return field == object_.end() ? nullptr : &*field;
}

void JsonFields::read(const std::string& key, std::string& target) {
  const json* value = find(key);
  if (!value) return;
  if (!value->is_string()) place_.in(key).fail("expected text" + found(*value));
  target = value->get<std::string>();
}

void JsonFields::read(const std::string& key, std::int32_t& target) {
  if (const json* value = find(key)) {
    target = static_cast<std::int32_t>(json_integer(*value, place_.in(key), kLow<std::int32_t>, kHigh<std::int32_t>));
  }
}

void JsonFields::read(const std::string& key, std::int64_t& target) {
  if (const json* value = find(key)) {
    target = json_integer(*value, place_.in(key), kLow<std::int64_t>, kHigh<std::int64_t>);
  }
}

void JsonFields::read(const std::string& key, double& target) {
  const json* value = find(key);
  if (!value) return;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    place_.in(key).fail("expected a finite number" + found(*value));
  }
  target = value->get<double>();
}

void JsonFields::read(const std::string& key, bool& target) {
  const json* value = find(key);
  if (!value) return;
  if (!value->is_boolean()) place_.in(key).fail("expected true or false" + found(*value));
  target = value->get<bool>();
}

void JsonFields::read(const std::string& key, std::vector<std::int32_t>& target) {
  if (!find(key)) return;
  target.clear();
  const json& list = array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonPlace place = place_.in(key).at(i);
    target.push_back(static_cast<std::int32_t>(json_integer(list[i], place, kLow<std::int32_t>, kHigh<std::int32_t>)));
  }
}

void JsonFields::read(const std::string& key, std::vector<std::int64_t>& target) {
  if (!find(key)) return;
  target.clear();
  const json& list = array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    target.push_back(json_integer(list[i], place_.in(key).at(i), kLow<std::int64_t>, kHigh<std::int64_t>));
  }
}

void JsonFields::read(const std::string& key, std::vector<std::string>& target) {
  if (!find(key)) return;
  target.clear();
  const json& list = array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string()) place_.in(key).at(i).fail("expected text" + found(list[i]));
    target.push_back(list[i].get<std::string>());
  }
}

void JsonFields::read(const std::string& key, std::map<std::string, double>& target) {
  const json* value = find(key);
  if (!value) return;
  JsonFields fields(*value, place_.in(key));
  for (const auto& [name, number] : value->items()) fields.read(name, target[name]);
}

const json& JsonFields::array(const std::string& key) {
  const json* value = find(key);
  if (!value) place_.fail("the field '" + key + "' is missing");
  if (!value->is_array()) place_.in(key).fail("expected a list" + found(*value));
  return *value;
}

void JsonFields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) place_.fail("unknown field '" + key + "'");
  }
}

json parse_json(const std::string& text, const std::string& stage) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    JsonPlace{stage, ""}.fail(std::string("this is no JSON, or it was cut short: ") + error.what());
  }
}

json parse_document(const std::string& text, const std::string& stage, const std::string& format, int version) {
  const JsonPlace place{stage, ""};
  const json document = parse_json(text, stage);
  if (!document.is_object() || document.value("format", json()) != json(format)) {
    place.fail("this is no " + format + " file: it must be an object with \"format\": \"" + format + "\"");
  }
  const json found_version = document.value("version", json());
  if (found_version != json(version)) {
    place.fail("the file has version " + found_version.dump() + ", this program reads version " + std::to_string(version) +
               ": write the file again, or update rockmate");
  }
  return document;
}

}  // namespace rockmate
