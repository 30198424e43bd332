// Tables of comma-separated values (RFC 4180) as profilers write them: with other lines before the header. Goes in:
// text, and a column that the header has. Comes out: the rows below it, each field by its column's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::kernels {

struct CsvRow {
  int line = 0;  ///< of the first character, from 1
  std::vector<std::string> fields;
};

class CsvTable {
 public:
  /// Lines before one whose fields have `column` are skipped, empty lines everywhere. A row that has more or fewer
  /// fields than the header is an error.
  [[nodiscard]] static Expected<CsvTable> read(std::string_view text, const std::string& file, std::string_view column);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] int header_line() const { return header_.line; }
  [[nodiscard]] const std::vector<std::string>& columns() const { return header_.fields; }
  [[nodiscard]] const std::vector<CsvRow>& rows() const { return rows_; }
  /// The first column of that name, or that begins with it.
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> column_beginning(std::string_view name) const;

 private:
  std::string file_;
  CsvRow header_;
  std::vector<CsvRow> rows_;
};

/// A number as profilers write it: "1,234.5" is 1234.5. None where it is no number.
[[nodiscard]] std::optional<double> csv_number(std::string_view text);

/// Microseconds in a unit: "ns", "nsecond", "us", "usecond", "ms", "msecond", "s", "second".
[[nodiscard]] std::optional<double> microseconds_in(std::string_view unit);

}  // namespace tangram::kernels
