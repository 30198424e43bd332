// Rows of a timeline of placed kernels: streams of GPUs, then links. Of GPUs and links that are alike the first ones.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "tangram/dispatch/schedule.hpp"
#include "tangram/dispatch/timeline.hpp"
#include "tangram/picture/timeline.hpp"

namespace tangram::app {

/// That are alike.
[[nodiscard]] int links_between(const dispatch::Schedule& schedule, int from, int to);

class ScheduleLanes {
 public:
  explicit ScheduleLanes(const dispatch::Schedule& schedule);

  [[nodiscard]] const std::vector<picture::Lane>& all() const { return lanes_; }
  /// -1: not drawn.
  [[nodiscard]] int lane_of(const dispatch::Work& work) const;

 private:
  void add_device(int device, int shown);
  void add_links(int shown);

  const dispatch::Schedule& schedule_;
  std::vector<picture::Lane> lanes_;
  std::map<std::tuple<int, int, int>, int> streams_;  // by device, server and stream
  std::map<std::tuple<int, int, int>, int> links_;    // by sender, receiver and server
};

}  // namespace tangram::app
