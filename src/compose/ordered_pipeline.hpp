// An ordered pipeline: tasks that begin and end in order, some of them at work at once. Goes in: what begins, works on
// and ends a task. Nothing depends on how long tasks take: task n begins with the results of tasks 0 .. n - at_once.
#pragma once

#include <tbb/parallel_pipeline.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tangram::compose {

/// What is known after each of so many tasks, of which `at_once` are at work at once (run_in_order): nothing depends on
/// which of them ends first.
template <class State>
class StatesInOrder {
 public:
  StatesInOrder(std::size_t tasks, std::size_t at_once, const State& first)
      : at_once_(at_once), after_(tasks + 1, first) {}

  /// What the next task may know when it begins.
  [[nodiscard]] const State& known_to(std::size_t task) const {
    return after_[task < at_once_ ? 0 : task + 1 - at_once_];
  }
  /// Once the first so many tasks have ended.
  [[nodiscard]] State& after(std::size_t tasks) { return after_[tasks]; }

 private:
  std::size_t at_once_;
  std::vector<State> after_;
};

/// `begin` makes the next task, or none; `work` may run beside other tasks and all else; `end` takes tasks in the order
/// of their beginning, one after the other. When a task begins, all have ended but the `at_once` - 1 before it, of
/// which any may have.
template <class Task, class Begin, class Work, class End>
void run_in_order(std::size_t at_once, const Begin& begin, const Work& work, const End& end) {
  using Shared = std::shared_ptr<Task>;  // what goes through a pipeline must be copied
  const auto first = [&](tbb::flow_control& flow) -> Shared {
    std::optional<Task> task = begin();
    if (task) return std::make_shared<Task>(std::move(*task));
    flow.stop();
    return nullptr;
  };
  const auto middle = [&](Shared task) {
    work(*task);
    return task;
  };
  const auto last = [&](const Shared& task) { end(*task); };
  tbb::parallel_pipeline(at_once, tbb::make_filter<void, Shared>(tbb::filter_mode::serial_in_order, first) &
                                      tbb::make_filter<Shared, Shared>(tbb::filter_mode::parallel, middle) &
                                      tbb::make_filter<Shared, void>(tbb::filter_mode::serial_in_order, last));
}

}  // namespace tangram::compose
