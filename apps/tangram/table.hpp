// Text tables for people. Goes in: rows of cells with styles. Comes out: aligned lines no wider than the terminal, or
// 100 columns, as long as the columns that may be wrapped allow it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/units.hpp"
#include "terminal.hpp"

namespace tangram::app {

struct Cell {
  std::string text;
  Style style = Style::kPlain;
};

struct Column {
  std::string header;
  bool right = false;     ///< aligned
  std::size_t least = 0;  ///< wrapped at spaces down to this width where the line is too long; 0: never
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row);
  /// Header, then rows; two spaces between columns, none at line ends.
  [[nodiscard]] std::string render(const Terminal& terminal) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths(std::size_t most) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Lines of at most `width` characters, broken at spaces; a longer word stays whole. 0: one line.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);

/// A label of ten columns, then text, wrapped beside it.
[[nodiscard]] std::string labelled(const Terminal& terminal, std::string_view label, const std::string& text);

/// "1 stage", "1,024 ranks"
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

/// Characters, not bytes.
[[nodiscard]] std::size_t display_width(std::string_view utf8);

/// A bar of `width` characters: "####....".
[[nodiscard]] std::string bar(double share, int width);

/// Three significant digits and a unit that fits: "12.3 ms", "1.04 s".
[[nodiscard]] std::string people_time(double seconds);

/// "135 GiB", "2.5 GiB", "80 MiB"
[[nodiscard]] std::string people_bytes(Bytes bytes);

/// Of a share: "12.3 %".
[[nodiscard]] std::string people_percent(double share);

/// Of a share, as narrow as cells want it: "12.3%".
[[nodiscard]] std::string table_percent(double share);

/// Of an error: "+12.3%".
[[nodiscard]] std::string signed_percent(double error);

/// "1,234,567"
[[nodiscard]] std::string thousands(std::int64_t value);

/// Sorted whole numbers as "0-3,7".
[[nodiscard]] std::string compact_ranges(const std::vector<int>& numbers);

/// Names in natural order with their numbered runs compacted: "gpu001-gpu016, login".
[[nodiscard]] std::string compact_names(const std::vector<std::string>& names);

}  // namespace tangram::app
