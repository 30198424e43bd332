#include "max_flow.hpp"

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

void FlowNetwork::add_edge(int from, int to, std::int64_t capacity) {
  const auto add = [this](int tail, int head, std::int64_t left) {
    edges_.push_back({head, at(first_, tail), left});
    at(first_, tail) = static_cast<int>(edges_.size()) - 1;
  };
  add(from, to, capacity);
  add(to, from, 0);
}

std::int64_t FlowNetwork::maximum_flow(int source, int sink) {
  std::int64_t flow = 0;
  while (find_levels(source, sink)) {
    current_ = first_;
    while (const std::int64_t pushed = push_path(source, sink)) flow += pushed;
  }
  return flow;
}

bool FlowNetwork::is_reached(int node) const { return at(level_, node) >= 0; }

// Edges from the source, by breadth first; false: the sink is not reached.
bool FlowNetwork::find_levels(int source, int sink) {
  level_.assign(first_.size(), -1);
  at(level_, source) = 0;
  std::vector<int> queue{source};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (int e = at(first_, queue[i]); e >= 0; e = at(edges_, e).next) {
      const int to = at(edges_, e).to;
      if (at(edges_, e).left <= 0 || at(level_, to) >= 0) continue;
      at(level_, to) = at(level_, queue[i]) + 1;
      queue.push_back(to);
    }
  }
  return at(level_, sink) >= 0;
}

// One augmenting path by depth first, without recursion: networks are as long as models. Dead ends are left for good.
std::int64_t FlowNetwork::push_path(int source, int sink) {
  path_.clear();
  int node = source;
  while (node != sink) {
    int& e = at(current_, node);
    while (e >= 0 && (at(edges_, e).left <= 0 || at(level_, at(edges_, e).to) != at(level_, node) + 1)) {
      e = at(edges_, e).next;
    }
    if (e >= 0) {
      path_.push_back(e);
      node = at(edges_, e).to;
      continue;
    }
    if (path_.empty()) return 0;
    at(level_, node) = -1;
    node = at(edges_, path_.back() ^ 1).to;
    path_.pop_back();
  }
  std::int64_t pushed = kUnlimited;
  for (const int e : path_) pushed = std::min(pushed, at(edges_, e).left);
  for (const int e : path_) {
    at(edges_, e).left -= pushed;
    at(edges_, e ^ 1).left += pushed;
  }
  return pushed;
}

}  // namespace tangram::disaggregate
