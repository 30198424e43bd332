// An ordered pipeline: tasks that begin and end in order, some of them at work at once. Goes in: what begins, works on
// and ends a task. Nothing depends on how long tasks take: task n begins with the results of tasks 0 .. n - at_once.
#pragma once

#include <tbb/parallel_pipeline.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace tangram::compose {

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
