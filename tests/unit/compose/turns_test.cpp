// Turns: their order, and what each may know.
#include "turns.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "support/catch.hpp"

using namespace tangram::compose;

namespace {

struct Turn {
  int number = 0;
  int result = 0;
};

}  // namespace

TEST_CASE("turns end in the order of their beginning, and begin once enough have ended") {
  constexpr int kTurns = 40;
  for (const int at_once : {1, 2, 4}) {
    int begun = 0;
    std::atomic<int> ended = 0;
    std::atomic<bool> too_early = false;
    std::atomic<bool> right = true;
    const auto begin = [&]() -> std::optional<Turn> {
      if (begun == kTurns) return std::nullopt;
      if (ended < begun + 1 - at_once) too_early = true;
      return Turn{begun++, 0};
    };
    const auto work = [](Turn& turn) {
      if (turn.number % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // others overtake it
      turn.result = turn.number * turn.number;
    };
    const auto end = [&](const Turn& turn) {
      if (turn.number != ended || turn.result != turn.number * turn.number) right = false;
      ++ended;
    };
    take_turns<Turn>(static_cast<std::size_t>(at_once), begin, work, end);
    CHECK(ended == kTurns);
    CHECK(right);
    CHECK_FALSE(too_early);
  }
}

TEST_CASE("without a first turn nothing happens") {
  int others = 0;
  take_turns<Turn>(
      2, []() -> std::optional<Turn> { return std::nullopt; }, [&](Turn&) { ++others; },
      [&](const Turn&) { ++others; });
  CHECK(others == 0);
}
