#include "table_lookup.hpp"

#include <algorithm>
#include <cmath>

#include "tangram/base/at.hpp"

namespace tangram::kernels {

TableLookup::TableLookup(const OperatorTable& table, int gpu, const cluster::GpuType& device)
    : table_(table), gpu_(gpu), device_(device), roofline_(at(table.inference, gpu).roofline) {}

std::optional<TableRatio> TableLookup::find(std::span<const std::int64_t> shape, AxisSet held_out) const {
  Rows rows{0, table_.row_count()};
  const std::vector<int> columns = table_.sorted_columns();
  const std::size_t fixed = columns.size() - table_.axes.size();
  for (std::size_t i = 0; i < fixed; ++i) rows = having(rows, columns[i], at(shape, columns[i]));
  TableRatio found;
  const std::optional<double> value = ratio(rows, 0, {shape, held_out}, found);
  if (!value) return std::nullopt;
  found.log_ratio = *value;
  return found;
}

TableLookup::Rows TableLookup::having(Rows rows, int column, std::int64_t value) const {
  const auto partition = [&](auto&& is_before) {
    int first = rows.first;
    int last = rows.last;
    while (first < last) {
      const int middle = first + (last - first) / 2;
      if (is_before(table_.shapes(middle, column))) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  };
  return {partition([&](std::int64_t v) { return v < value; }), partition([&](std::int64_t v) { return v <= value; })};
}

std::optional<double> TableLookup::ratio(Rows rows, std::size_t axis, const Query& query, TableRatio& found) const {
  if (rows.empty()) return std::nullopt;
  if (axis == table_.axes.size()) return ratio_of_row(rows.first);
  const int column = table_.axes[axis];
  const std::int64_t value = at(query.shape, column);
  const Rows same = having(rows, column, value);
  const bool hidden = (query.held_out >> axis & 1U) != 0;
  if (!same.empty() && !hidden) return ratio(same, axis + 1, query, found);
  const Rows below{rows.first, same.first};
  const Rows above{same.last, rows.last};
  if (below.empty() && above.empty()) return std::nullopt;
  if (below.empty() || above.empty()) {
    found.beyond = true;
    const std::int64_t nearest = table_.shapes(below.empty() ? above.first : below.last - 1, column);
    return ratio(having(rows, column, nearest), axis + 1, query, found);
  }
  found.interpolated |= AxisSet{1} << axis;
  const std::int64_t low = table_.shapes(below.last - 1, column);
  const std::int64_t high = table_.shapes(above.first, column);
  const auto at_low = ratio(having(rows, column, low), axis + 1, query, found);
  const auto at_high = ratio(having(rows, column, high), axis + 1, query, found);
  if (!at_low || !at_high) return at_low ? at_low : at_high;
  const auto log_of = [](std::int64_t number) { return std::log(static_cast<double>(number)); };
  const double weight = (log_of(value) - log_of(low)) / (log_of(high) - log_of(low));
  return (1 - weight) * *at_low + weight * *at_high;
}

std::optional<double> TableLookup::ratio_of_row(int row) const {
  const double seconds = table_.seconds(row, gpu_);
  const auto modelled = roofline(table_.shapes.row(row));
  if (seconds <= 0 || !modelled) return std::nullopt;
  return std::log(seconds / *modelled);
}

std::optional<double> TableLookup::roofline(std::span<const std::int64_t> shape) const {
  return roofline_seconds(roofline_, work_of(table_.op, shape, table_.dtype), device_, table_.dtype);
}

}  // namespace tangram::kernels
