#include "tangram/planner/ahead.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "neighbours.hpp"
#include "planning.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/planner/search_cache.hpp"

namespace tangram::planner {

namespace {

using Neighbour = std::function<Expected<cluster::Fleet>(const std::string& node)>;

/// Whether one more like the one is one more like the other.
bool alike(const cluster::Node& a, const cluster::Node& b) {
  cluster::Node renamed = a;
  renamed.name = b.name;
  return renamed == b;
}

/// One node of each kind. Where links are measured pair by pair, each is of its own.
std::vector<std::string> kinds_of(const cluster::Fleet& fleet) {
  std::vector<const cluster::Node*> kinds;
  for (const cluster::Node& node : fleet.nodes) {
    const bool known = fleet.measured.empty() &&
                       std::ranges::any_of(kinds, [&](const cluster::Node* kind) { return alike(*kind, node); });
    if (!known) kinds.push_back(&node);
  }
  std::vector<std::string> names;
  names.reserve(kinds.size());
  for (const cluster::Node* kind : kinds) names.push_back(kind->name);
  return names;
}

std::vector<std::string> names_of(const cluster::Fleet& fleet) {
  std::vector<std::string> names;
  names.reserve(fleet.nodes.size());
  for (const cluster::Node& node : fleet.nodes) names.push_back(node.name);
  return names;
}

class Searcher {
 public:
  Searcher(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
           const compose::ProgressCallback& progress)
      : fleet_(fleet), model_(model), options_(options), progress_(progress) {}

  Ahead run() {
    const std::int64_t made = options_.cache->misses();
    const std::int64_t found = options_.cache->hits();
    Ahead ahead;
    ahead.nodes = fleet_.nodes.size();
    const Neighbour without = [this](const std::string& node) { return without_nodes(fleet_, {node}); };
    const Neighbour with = [this](const std::string& node) { return with_one_more(fleet_, node); };
    // Which of two nodes alike goes may decide the order of islands, so that all are tried.
    const std::vector<std::string> gone = one_of_each(names_of(fleet_), without);
    const std::vector<std::string> added = one_of_each(kinds_of(fleet_), with);
    ahead.fewer = gone.size();
    ahead.more = added.size();
    total_ = static_cast<int>(gone.size() + added.size());
    search_all(gone, without);
    search_all(added, with);
    ahead.made = options_.cache->misses() - made;
    ahead.found = options_.cache->hits() - found;
    return ahead;
  }

 private:
  /// Of the nodes the first whose neighbour has islands that no neighbour before has. What has none is left out.
  std::vector<std::string> one_of_each(const std::vector<std::string>& nodes, const Neighbour& neighbour) {
    if (progress_) progress_({0, 0, "ahead: islands without or with a node more", Nanoseconds::max()});
    std::vector<std::string> keys(nodes.size());
    tbb::parallel_for(std::size_t{0}, nodes.size(), [&](std::size_t i) {
      const auto fleet = neighbour(nodes[i]);
      if (fleet) keys[i] = islands_key(cluster::find_islands(*fleet, options_.island_tolerance));
    });
    std::vector<std::string> chosen;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!keys[i].empty() && seen_.insert(std::move(keys[i])).second) chosen.push_back(nodes[i]);
    }
    return chosen;
  }

  void search_all(const std::vector<std::string>& nodes, const Neighbour& neighbour) {
    for (const std::string& node : nodes) {
      if (options_.search.deadline.has_passed()) return;
      const auto fleet = neighbour(node);
      if (!fleet) continue;
      make_searches(*fleet, model_, options_, [this](const compose::Progress& inner) { report(inner); });
      ++done_;
    }
  }

  void report(const compose::Progress& inner) const {
    if (!progress_) return;
    compose::Progress progress = inner;
    progress.phase = fmt::format("ahead, fleet {} of {}: {}", done_ + 1, total_, inner.phase);
    progress_(progress);
  }

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  const PlanOptions& options_;
  const compose::ProgressCallback& progress_;
  std::set<std::string> seen_;
  int done_ = 0;
  int total_ = 0;
};

}  // namespace

Ahead search_ahead(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                   const compose::ProgressCallback& progress) {
  return Searcher(fleet, model, options, progress).run();
}

}  // namespace tangram::planner
