// Budgets as users write them.
#pragma once

#include <string>

#include "rockmate/graph/graph.h"

namespace rockmate {

// "800MB" (10^6), "4GiB" (2^30), "123456", "123456B" are bytes; "50%" and "0.5" (a number with a point, at most 1.0) are shares
// of the store-all peak, above 0. Case and spaces between number and unit do not matter; shares round down to whole bytes.
// Throws std::invalid_argument ("[budget] ...") for anything else, for zero, negative or not finite numbers, and for more bytes
// than fit in 63 bits.
Bytes parse_budget(const std::string& text, Bytes store_all_peak_bytes);

// 1610612736 -> "1.50 GiB"; three significant digits.
std::string format_bytes(Bytes bytes);

}  // namespace rockmate
