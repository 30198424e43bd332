// Access to foreign files whose keys are data (degrees, layers, names), where a strict reader of known keys does not
// fit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/io/document.hpp"

namespace tangram::profiles {

inline constexpr double kMiB = 1 << 20;  ///< in bytes

/// The part of a path that file and folder names are read from: "a/b/c.json" gives {"a", "b", "c.json"}.
[[nodiscard]] std::vector<std::string> path_parts(const std::string& path);
/// The name of the folder `up` levels above the file; empty where there is none.
[[nodiscard]] std::string folder_above(const std::string& path, std::size_t up = 1);
[[nodiscard]] std::string file_name(const std::string& path);

[[nodiscard]] std::optional<int> whole_number(std::string_view text);  ///< decimal digits alone
[[nodiscard]] std::optional<double> number(std::string_view text);     ///< the whole text

/// An error at a value of a document, or of line `line` (from 1) of a text; 0: of the whole file.
[[nodiscard]] Diagnostic error_at(const io::Document& document, const io::Node& node, std::string code,
                                  std::string message, std::string hint = {});
[[nodiscard]] Diagnostic error_in(const std::string& file, std::string_view text, int line, std::string code,
                                  std::string message, std::string hint = {});

/// An array of numbers, none of them negative.
[[nodiscard]] Expected<std::vector<double>> numbers(const io::Document& document, const io::Node& node);

/// At "a.b.c", or nullptr.
[[nodiscard]] const io::Node* find_path(const io::Node& root, std::initializer_list<std::string_view> keys);

[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);               ///< without line ends
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);  ///< parts, trimmed
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);               ///< at white space
[[nodiscard]] std::optional<std::string> text_between(std::string_view text, std::string_view before,
                                                      std::string_view after);

}  // namespace tangram::profiles
