// What closed forms are above timetables.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace tangram::tests {

/// Numbers of microbatches that they are told apart by.
inline constexpr std::array<std::int64_t, 5> kMicrobatches{4, 8, 16, 32, 64};

/// As parts of the timetables.
class Excess {
 public:
  void add(std::int64_t closed_form, std::int64_t timetable) {
    all_.push_back(static_cast<double>(closed_form) / static_cast<double>(timetable) - 1);
  }

  [[nodiscard]] std::size_t count() const { return all_.size(); }
  [[nodiscard]] double least() const { return *std::ranges::min_element(all_); }
  [[nodiscard]] double most() const { return *std::ranges::max_element(all_); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = all_;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double share_below() const {
    const auto below = std::ranges::count_if(all_, [](double excess) { return excess < 0; });
    return static_cast<double>(below) / static_cast<double>(count());
  }
  /// In percent: "least -0.20, median 1.40, most 4.80, below in 0.10".
  [[nodiscard]] std::string text() const {
    std::ostringstream stream;
    stream.precision(3);
    stream << "least " << 100 * least() << ", median " << 100 * median() << ", most " << 100 * most() << ", below in "
           << 100 * share_below();
    return stream.str();
  }

 private:
  std::vector<double> all_;
};

}  // namespace tangram::tests
