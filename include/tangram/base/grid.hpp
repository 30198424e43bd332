// Cells by row and column, in one piece. Goes in: how many there are of both, or the cells row by row. Comes out: cells
// by signed numbers, and rows as spans.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "tangram/base/assert.hpp"

namespace tangram {

template <class Cell>
class Grid {
 public:
  Grid() = default;
  /// All cells alike.
  template <std::integral Rows, std::integral Columns>
  Grid(Rows rows, Columns columns, const Cell& cell = Cell{})
      : columns_(static_cast<std::size_t>(columns)), cells_(static_cast<std::size_t>(rows) * columns_, cell) {}
  /// Cells row by row; the last row is whole.
  Grid(int columns, std::vector<Cell> cells) : columns_(static_cast<std::size_t>(columns)), cells_(std::move(cells)) {
    TANGRAM_ASSERT(columns_ == 0 ? cells_.empty() : cells_.size() % columns_ == 0);
  }

  [[nodiscard]] int rows() const { return columns_ == 0 ? 0 : static_cast<int>(cells_.size() / columns_); }
  [[nodiscard]] int columns() const { return static_cast<int>(columns_); }

  /// Anew, in the same memory where it suffices.
  template <std::integral Rows, std::integral Columns>
  void assign(Rows rows, Columns columns, const Cell& cell) {
    columns_ = static_cast<std::size_t>(columns);
    cells_.assign(static_cast<std::size_t>(rows) * columns_, cell);
  }

  /// Debug builds check that there is such a cell.
  template <std::integral Row, std::integral Column>
  [[nodiscard]] Cell& operator()(Row row, Column column) {
    return cells_[place(row, column)];
  }
  template <std::integral Row, std::integral Column>
  [[nodiscard]] const Cell& operator()(Row row, Column column) const {
    return cells_[place(row, column)];
  }

  template <std::integral Row>
  [[nodiscard]] std::span<Cell> row(Row number) {
    return std::span(cells_).subspan(row_place(number), columns_);
  }
  template <std::integral Row>
  [[nodiscard]] std::span<const Cell> row(Row number) const {
    return std::span(cells_).subspan(row_place(number), columns_);
  }
  /// One more, below. A grid without columns takes theirs from it.
  void add_row(std::span<const Cell> cells) {
    if (columns_ == 0) columns_ = cells.size();
    TANGRAM_ASSERT(cells.size() == columns_);
    cells_.insert(cells_.end(), cells.begin(), cells.end());
  }

  /// All cells, row by row.
  [[nodiscard]] auto begin() { return cells_.begin(); }
  [[nodiscard]] auto end() { return cells_.end(); }
  [[nodiscard]] auto begin() const { return cells_.begin(); }
  [[nodiscard]] auto end() const { return cells_.end(); }
  [[nodiscard]] std::size_t size() const { return cells_.size(); }
  [[nodiscard]] bool empty() const { return cells_.empty(); }

 private:
  // Negative numbers become such as are far behind the end.
  [[nodiscard]] std::size_t row_place(std::integral auto row) const {
    TANGRAM_DEBUG_ASSERT(static_cast<std::size_t>(row) < static_cast<std::size_t>(rows()));
    return static_cast<std::size_t>(row) * columns_;
  }
  [[nodiscard]] std::size_t place(std::integral auto row, std::integral auto column) const {
    TANGRAM_DEBUG_ASSERT(static_cast<std::size_t>(column) < columns_);
    return row_place(row) + static_cast<std::size_t>(column);
  }

  std::size_t columns_ = 0;
  std::vector<Cell> cells_;
};

}  // namespace tangram
