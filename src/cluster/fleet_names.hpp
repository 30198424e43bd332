// Node names: patterns that stand for many, and the order people expect.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace tangram::cluster {

inline constexpr int kMaxGpus = 100'000;
inline constexpr std::size_t kMaxMeasuredNodes = 2'000;  // their matrix of links takes 64 MB

/// "a-[08-10,12]" is a-08, a-09, a-10, a-12; several brackets multiply. Numbers keep the width of a range's first one.
/// The error is one line without a place.
[[nodiscard]] tl::expected<std::vector<std::string>, std::string> expand_names(std::string_view pattern);

/// "a-{}" and 12 is a-01 ... a-12, all of one width.
[[nodiscard]] std::vector<std::string> number_names(std::string_view pattern, int count);

/// Digits compare as numbers: a2 < a10. A total order: equal only for equal texts.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

}  // namespace tangram::cluster
