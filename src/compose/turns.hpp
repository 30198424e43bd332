// Work in an order, some of it at once. Goes in: what begins, works and ends a turn. Nothing depends on how long turns
// take: the n-th begins with what is known of all turns but the last ones before it.
#pragma once

#include <tbb/parallel_pipeline.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace tangram::compose {

/// `begin` makes the next turn, or none; `work` may run beside other turns and all else; `end` takes turns in the order
/// of their beginning, one after the other. When a turn begins, all have ended but the `at_once` - 1 before it, of
/// which any may have.
template <class Turn, class Begin, class Work, class End>
void take_turns(std::size_t at_once, const Begin& begin, const Work& work, const End& end) {
  using Shared = std::shared_ptr<Turn>;  // what goes through a pipeline must be copied
  const auto first = [&](tbb::flow_control& flow) -> Shared {
    std::optional<Turn> turn = begin();
    if (turn) return std::make_shared<Turn>(std::move(*turn));
    flow.stop();
    return nullptr;
  };
  const auto middle = [&](Shared turn) {
    work(*turn);
    return turn;
  };
  const auto last = [&](const Shared& turn) { end(*turn); };
  tbb::parallel_pipeline(at_once, tbb::make_filter<void, Shared>(tbb::filter_mode::serial_in_order, first) &
                                      tbb::make_filter<Shared, Shared>(tbb::filter_mode::parallel, middle) &
                                      tbb::make_filter<Shared, void>(tbb::filter_mode::serial_in_order, last));
}

}  // namespace tangram::compose
