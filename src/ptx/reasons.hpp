// Lists of reasons. Goes in: one after the other. Comes out: each once, by its text and its line.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {

[[nodiscard]] inline bool is_among(const Reason& why, const std::vector<Reason>& reasons) {
  return std::ranges::any_of(
      reasons, [&](const Reason& other) { return other.place.line == why.place.line && other.text == why.text; });
}

inline void add_reason(std::vector<Reason>& reasons, Reason why) {
  if (!is_among(why, reasons)) reasons.push_back(std::move(why));
}

}  // namespace tangram::ptx
