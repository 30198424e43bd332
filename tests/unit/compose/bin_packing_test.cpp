// Whether items fit into equal bins, told by inequalities: against trying every way to put them there.
#include "bin_packing.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "support/catch.hpp"
#include "support/placing.hpp"

using namespace tangram::compose;

namespace {

bool hold(const std::vector<PackingInequality>& inequalities, const std::vector<int>& items, int bins) {
  return std::ranges::all_of(inequalities, [&](const PackingInequality& inequality) {
    std::int64_t sum = 0;
    for (const int size : items) sum += inequality.weight[static_cast<std::size_t>(size)];
    return sum <= inequality.capacity * bins;
  });
}

struct Tally {
  int wrong = 0;
  int unpackable = 0;
};

// Every multiset of sizes whose sum bins could hold.
Tally compare(int bin, const std::vector<int>& sizes, int bins) {
  const std::vector<PackingInequality> inequalities = packing_inequalities(bin, sizes);
  Tally tally;
  std::vector<int> items;
  const std::function<void(std::size_t, int)> choose = [&](std::size_t from, int left) {
    if (from == sizes.size()) {
      const bool can = tangram::test::can_pack(items, bin, bins);
      if (can != hold(inequalities, items, bins)) ++tally.wrong;
      if (!can) ++tally.unpackable;
      return;
    }
    choose(from + 1, left);
    if (sizes[from] > left) return;
    items.push_back(sizes[from]);
    choose(from, left - sizes[from]);
    items.pop_back();
  };
  choose(0, bin * bins);
  return tally;
}

std::vector<int> up_to(int bin) {
  std::vector<int> sizes(static_cast<std::size_t>(bin));
  std::iota(sizes.begin(), sizes.end(), 1);
  return sizes;
}

}  // namespace

TEST_CASE("items of any sizes fit where the inequalities hold, and nowhere else") {
  for (int bin = 1; bin <= kAnySizes; ++bin) {
    for (int bins = 1; bins <= (bin <= 5 ? 4 : 2); ++bins) {
      const Tally tally = compare(bin, up_to(bin), bins);
      INFO(bins << " bins of " << bin);
      CHECK(tally.wrong == 0);
      CHECK((tally.unpackable > 0) == (bins > 1 && bin > 2));
    }
  }
}

TEST_CASE("items of some sizes fit where the inequalities hold") {
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{1, 2, 4, 7}, {2, 4, 7}, {2, 3, 7}, {3, 7}, {1, 3, 4, 7}}) {
    CHECK(compare(7, sizes, 3).wrong == 0);
  }
  CHECK(compare(8, {1, 2, 3, 4, 6, 8}, 3).wrong == 0);
  CHECK(compare(6, {2, 3, 4, 6}, 4).wrong == 0);
}

TEST_CASE("in large bins each size divides the next") {
  CHECK(compare(12, {1, 2, 4, 8, 12}, 2).wrong == 0);
  CHECK(compare(13, {2, 4, 8, 13}, 3).wrong == 0);
  CHECK(compare(9, {1, 2, 4, 9}, 3).wrong == 0);
  CHECK(packing_inequalities(16, std::vector{1, 2, 4, 8, 16}).empty());
}

TEST_CASE("sizes that divide each other and the bin need no inequality") {
  CHECK(packing_inequalities(8, std::vector{1, 2, 4, 8}).empty());
  CHECK(packing_inequalities(6, std::vector{1, 2, 6}).empty());
  // Of 3 GPUs two can not be taken twice: one of 2 or 3 a bin.
  const auto three = packing_inequalities(3, std::vector{1, 2, 3});
  REQUIRE(three.size() == 1);
  CHECK(three.front().weight == std::vector<std::int64_t>{0, 0, 1, 1});
  CHECK(three.front().capacity == 1);
}
