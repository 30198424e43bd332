#include "placement.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "tangram/base/assert.hpp"

namespace tangram::plan {

namespace {

struct Request {
  int replica = 0;
  int stage = 0;
  int part = 0;
  int island_class = 0;
  int gpus = 0;
};

struct MemberState {
  const cluster::IslandMember* member = nullptr;
  int island = 0;
  int used = 0;
  [[nodiscard]] int free() const { return member->count - used; }
};

std::vector<Request> requests_of(const compose::Composition& composition) {
  std::vector<Request> requests;
  for (int replica = 0; replica < composition.replicas; ++replica) {
    for (std::size_t s = 0; s < composition.stages.size(); ++s) {
      const auto& parts = composition.stages[s].parts;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        requests.push_back({replica, static_cast<int>(s), static_cast<int>(p), parts[p].island_class, parts[p].gpus});
      }
    }
  }
  std::ranges::sort(requests, {}, [](const Request& r) { return std::tuple(-r.gpus, r.replica, r.stage, r.part); });
  return requests;
}

/// The free GPUs of one island class, and where each replica already is.
class ClassPool {
 public:
  ClassPool(const cluster::IslandClass& island_class, const cluster::IslandLevel& level)
      : per_member_(island_class.gpus_per_member) {
    for (const int id : island_class.islands) {
      for (const auto& member : level.islands[static_cast<std::size_t>(id)].members) {
        members_.push_back({&member, id, 0});
      }
    }
  }

  PlacedPart take(const Request& request) {
    return request.gpus >= per_member_ ? take_whole(request) : take_inside(request);
  }

 private:
  // Best fit: the island with the fewest whole members left, so that large gaps stay for large shapes. Only when no
  // island has enough members does the shape span several, fullest first.
  PlacedPart take_whole(const Request& request) {
    const int wanted = request.gpus / per_member_;
    std::map<int, int> free;  // island -> untouched members
    for (const auto& state : members_) free[state.island] += state.used == 0 ? 1 : 0;

    std::optional<std::tuple<int, bool, int>> best;  // (left over, replica is not there yet, island)
    for (const auto& [island, count] : free) {
      if (count < wanted) continue;
      const std::tuple<int, bool, int> key{count - wanted, !islands_[request.replica].contains(island), island};
      if (!best || key < *best) best = key;
    }

    std::vector<int> order;
    if (best) {
      order.push_back(std::get<2>(*best));
    } else {
      for (const auto& [island, count] : free) order.push_back(island);
      std::ranges::sort(order, {}, [&](int island) { return std::pair(-free[island], island); });
    }

    PlacedPart placed;
    placed.members = wanted;
    int left = wanted;
    for (const int island : order) {
      for (auto& state : members_) {
        if (left == 0) break;
        if (state.island != island || state.used != 0) continue;
        occupy(state, per_member_, request.replica, placed);
        --left;
      }
    }
    if (left > 0) report_broken_invariant("the composition fits the level's islands", __FILE__, __LINE__);
    return placed;
  }

  // Close to the replica's other parts first (same member, node, island), then where a member is already broken.
  PlacedPart take_inside(const Request& request) {
    MemberState* best = nullptr;
    std::tuple<bool, bool, bool, int> best_key;
    for (auto& state : members_) {
      if (state.free() < request.gpus) continue;
      const std::tuple<bool, bool, bool, int> key{!used_members_[request.replica].contains(&state),
                                                  !nodes_[request.replica].contains(state.member->node),
                                                  !islands_[request.replica].contains(state.island), state.free()};
      if (best == nullptr || key < best_key) {
        best = &state;
        best_key = key;
      }
    }
    if (best == nullptr) report_broken_invariant("the composition fits the level's islands", __FILE__, __LINE__);
    PlacedPart placed;
    occupy(*best, request.gpus, request.replica, placed);
    return placed;
  }

  void occupy(MemberState& state, int gpus, int replica, PlacedPart& placed) {
    for (int i = 0; i < gpus; ++i) {
      placed.gpus.push_back({state.member->node, state.member->first_gpu + state.used + i, state.island});
    }
    state.used += gpus;
    used_members_[replica].insert(&state);
    nodes_[replica].insert(state.member->node);
    islands_[replica].insert(state.island);
  }

  int per_member_;
  std::vector<MemberState> members_;
  std::map<int, std::set<const MemberState*>> used_members_;  // by replica; only ever asked for membership
  std::map<int, std::set<std::size_t>> nodes_;
  std::map<int, std::set<int>> islands_;
};

}  // namespace

std::vector<std::vector<std::vector<PlacedPart>>> place(const compose::Composition& composition,
                                                        const cluster::IslandLevel& level) {
  std::vector<std::vector<PlacedPart>> one_replica;
  one_replica.reserve(composition.stages.size());
  for (const auto& stage : composition.stages) one_replica.emplace_back(stage.parts.size());
  std::vector placed(static_cast<std::size_t>(composition.replicas), one_replica);

  std::vector<ClassPool> pools;
  pools.reserve(level.classes.size());
  for (const auto& island_class : level.classes) pools.emplace_back(island_class, level);
  for (const auto& request : requests_of(composition)) {
    placed[static_cast<std::size_t>(request.replica)][static_cast<std::size_t>(request.stage)]
          [static_cast<std::size_t>(request.part)] =
              pools[static_cast<std::size_t>(request.island_class)].take(request);
  }
  return placed;
}

}  // namespace tangram::plan
