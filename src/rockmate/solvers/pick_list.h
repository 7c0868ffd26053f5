// Small numbers (indices of instances) in no order: put in, taken out and picked by their place in constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rockmate {

class PickList {
 public:
  const std::vector<std::int32_t>& items() const { return items_; }

  // Puts the item in, or takes it out; nothing where that has been done. The last item takes the place of one taken out.
  void set(std::int32_t item, bool is_listed) {
    const auto index = static_cast<std::size_t>(item);
    if (index >= place_.size()) place_.resize(index + 1, -1);
    std::int32_t& place = place_[index];
    if (is_listed == (place >= 0)) return;
    if (is_listed) {
      place = static_cast<std::int32_t>(items_.size());
      items_.push_back(item);
    } else {
      items_[place] = items_.back();
      place_[items_[place]] = place;
      items_.pop_back();
      place = -1;
    }
  }

  void clear() {
    items_.clear();
    place_.clear();
  }

 private:
  std::vector<std::int32_t> items_;
  std::vector<std::int32_t> place_;  // of each item in items_, -1 where it is not listed
};

}  // namespace rockmate
