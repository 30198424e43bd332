// Maximum flow by Dinic's algorithm (Dinitz 1970), in whole numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace tangram::disaggregate {

class FlowNetwork {
 public:
  static constexpr std::int64_t kUnlimited = INT64_MAX / 4;

  explicit FlowNetwork(int nodes) : first_(static_cast<std::size_t>(nodes), -1) {}

  int add_node() {
    first_.push_back(-1);
    return static_cast<int>(first_.size()) - 1;
  }
  void add_edge(int from, int to, std::int64_t capacity);

  /// The largest flow, of edges with these capacities; what is left of them stays.
  std::int64_t maximum_flow(int source, int sink);
  /// After maximum_flow: whether edges with capacity left lead from the source there, which a minimum cut puts on its
  /// side.
  [[nodiscard]] bool is_reached(int node) const;

 private:
  struct Edge {
    int to = 0;
    int next = -1;
    std::int64_t left = 0;
  };

  bool find_levels(int source, int sink);
  std::int64_t push_path(int source, int sink);

  std::vector<Edge> edges_;  // an edge and its reverse, next to each other
  std::vector<int> first_;
  std::vector<int> level_;
  std::vector<int> current_;
  std::vector<int> path_;
};

}  // namespace tangram::disaggregate
