// "did you mean ...?": the nearest known word, if it is near enough.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tangram {

/// Case-insensitive Damerau-Levenshtein distance (adjacent swaps count once).
[[nodiscard]] int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, if its distance is at most a third of the word's length (at least 1, at most 3);
/// ties go to the earlier candidate.
[[nodiscard]] std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

}  // namespace tangram
