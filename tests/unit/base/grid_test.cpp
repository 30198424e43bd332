// Elements and cells by signed numbers.
#include "tangram/base/grid.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "tangram/base/at.hpp"

using namespace tangram;

TEST_CASE("at: elements of vectors, arrays and spans by numbers of any width") {
  std::vector<int> numbers{1, 2, 3};
  at(numbers, std::int64_t{1}) = 5;
  CHECK(numbers == std::vector<int>{1, 5, 3});
  const std::array<int, 2> pair{7, 8};
  CHECK(at(pair, std::size_t{1}) == 8);
  CHECK(at(std::span(numbers).subspan(1), 1) == 3);
  enum class Side : std::uint8_t { kLeft, kRight };
  CHECK(at(pair, Side::kRight) == 8);
  static_assert(std::is_same_v<decltype(at(numbers, 0)), int&>);
  static_assert(std::is_same_v<decltype(at(pair, 0)), const int&>);
}

TEST_CASE("grid: cells by row and column, rows one behind the other") {
  Grid<int> grid(2, 3, 4);
  CHECK(grid.rows() == 2);
  CHECK(grid.columns() == 3);
  grid(1, std::int64_t{2}) = 9;
  grid.row(0)[1] = 6;
  CHECK(std::vector<int>(grid.begin(), grid.end()) == std::vector<int>{4, 6, 4, 4, 4, 9});
  const Grid<int>& same = grid;
  CHECK(same(0, std::size_t{1}) == 6);
  CHECK(same.row(1).back() == 9);
  grid.assign(1, 2, 0);
  CHECK(std::vector<int>(grid.begin(), grid.end()) == std::vector<int>{0, 0});
}

TEST_CASE("grid: made of cells, and row by row") {
  const Grid<int> given(2, {1, 2, 3, 4});
  CHECK(given.rows() == 2);
  CHECK(given(1, 0) == 3);
  CHECK_THROWS_AS(Grid<int>(2, {1, 2, 3}), std::logic_error);
  Grid<int> grown;
  CHECK(grown.empty());
  CHECK(grown.rows() == 0);
  grown.add_row(given.row(1));
  grown.add_row(given.row(0));
  CHECK(grown.size() == 4);
  CHECK(grown(0, 1) == 4);
  CHECK(grown(1, 1) == 2);
  CHECK_THROWS_AS(grown.add_row(std::vector<int>{1}), std::logic_error);
}

#ifndef NDEBUG
TEST_CASE("debug builds check numbers") {
  const std::vector<int> numbers{1, 2};
  CHECK_THROWS_AS(at(numbers, -1), std::logic_error);
  CHECK_THROWS_AS(at(numbers, 2U), std::logic_error);
  const Grid<int> grid(2, 3);
  CHECK_THROWS_AS(grid(2, 0), std::logic_error);
  CHECK_THROWS_AS(grid(0, 3), std::logic_error);
  CHECK_THROWS_AS(grid(0, -1), std::logic_error);
  CHECK_THROWS_AS(grid.row(-1), std::logic_error);
}
#endif
