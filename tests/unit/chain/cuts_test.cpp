#include "labels/cuts.hpp"

#include <vector>

#include "support/catch.hpp"

using tangram::chain::CutList;

TEST_CASE("the cut that removes most is asked first, and any yes is a yes") {
  CutList<3> cuts;
  std::vector<std::size_t> asked;
  const auto ask = [&](std::vector<bool> answers) {
    asked.clear();
    return cuts.any([&](std::size_t i) {
      asked.push_back(i);
      return answers[i];
    });
  };
  CHECK_FALSE(ask({false, false, false}));
  CHECK(asked == std::vector<std::size_t>{0, 1, 2});
  CHECK(ask({false, false, true}));
  CHECK(cuts.removed(2) == 1);
  // With one to its name it has passed the second, and with two the first.
  CHECK(ask({false, false, true}));
  CHECK(asked == std::vector<std::size_t>{0, 2});
  CHECK(ask({true, true, true}));
  CHECK(asked == std::vector<std::size_t>{2});
  CHECK(cuts.removed(0) == 0);
  CHECK(cuts.removed(2) == 3);
}
