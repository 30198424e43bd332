// The ordered pipeline: the order of its tasks, and what each may know.
#include "ordered_pipeline.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "support/catch.hpp"

using namespace tangram::compose;

namespace {

struct Task {
  int number = 0;
  int result = 0;
};

}  // namespace

TEST_CASE("tasks end in the order of their beginning, and begin once enough have ended") {
  constexpr int kTasks = 40;
  for (const int at_once : {1, 2, 4}) {
    int begun = 0;
    std::atomic<int> ended = 0;
    std::atomic<bool> too_early = false;
    std::atomic<bool> right = true;
    const auto begin = [&]() -> std::optional<Task> {
      if (begun == kTasks) return std::nullopt;
      if (ended < begun + 1 - at_once) too_early = true;
      return Task{begun++, 0};
    };
    const auto work = [](Task& task) {
      if (task.number % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // others overtake it
      task.result = task.number * task.number;
    };
    const auto end = [&](const Task& task) {
      if (task.number != ended || task.result != task.number * task.number) right = false;
      ++ended;
    };
    run_in_order<Task>(static_cast<std::size_t>(at_once), begin, work, end);
    CHECK(ended == kTasks);
    CHECK(right);
    CHECK_FALSE(too_early);
  }
}

TEST_CASE("without a first task nothing happens") {
  int others = 0;
  run_in_order<Task>(
      2, []() -> std::optional<Task> { return std::nullopt; }, [&](Task&) { ++others; },
      [&](const Task&) { ++others; });
  CHECK(others == 0);
}
