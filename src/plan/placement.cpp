#include "placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "pack_bins.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::plan {

namespace {

struct PartPlace {
  int stage = 0;
  int part = 0;
  int gpus = 0;
};

/// What lies together: a part, or parts that share a member.
struct Request {
  int replica = 0;
  int gpus = 0;
  std::vector<PartPlace> parts;
};

struct MemberState {
  const cluster::IslandMember* member = nullptr;
  int island = 0;
  int used = 0;
  [[nodiscard]] int free() const { return member->count - used; }
};

/// By class, larger ones first.
std::vector<std::vector<Request>> requests_of(const compose::Composition& composition, std::size_t classes) {
  std::vector<std::vector<Request>> requests(classes);
  for (int replica = 0; replica < composition.replicas; ++replica) {
    std::map<std::pair<int, int>, std::size_t> shared;  // class, member -> its request
    for (std::size_t s = 0; s < composition.stages.size(); ++s) {
      const auto& parts = composition.stages[s].parts;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        std::vector<Request>& own = at(requests, parts[p].island_class);
        std::size_t index = own.size();
        if (parts[p].member != compose::PartChoice::kAnyMember) {
          index = shared.try_emplace({parts[p].island_class, parts[p].member}, index).first->second;
        }
        if (index == own.size()) own.push_back({replica, 0, {}});
        own[index].gpus += parts[p].gpus;
        own[index].parts.push_back({static_cast<int>(s), static_cast<int>(p), parts[p].gpus});
      }
    }
  }
  for (std::vector<Request>& own : requests) {
    std::ranges::sort(own, {}, [](const Request& r) {
      return std::tuple(-r.gpus, r.replica, r.parts.front().stage, r.parts.front().part);
    });
  }
  return requests;
}

using PlacedRequests = std::vector<PlacedPart>;

/// The free GPUs of one island class, and where each replica already is.
class ClassPool {
 public:
  ClassPool(const cluster::IslandClass& island_class, const cluster::IslandLevel& level)
      : per_member_(island_class.gpus_per_member), per_island_(island_class.members_per_island) {
    for (const int id : island_class.islands) {
      for (const auto& member : at(level.islands, id).members) {
        members_.push_back({&member, id, 0});
      }
    }
  }

  /// One by one, close to what the replica has already. Nothing where one does not fit any more.
  std::optional<PlacedRequests> place_closely(const std::vector<Request>& requests) {
    PlacedRequests placed;
    for (const Request& request : requests) {
      auto own = request.gpus >= per_member_ ? take_whole(request) : take_inside(request);
      if (!own) return std::nullopt;
      placed.push_back(std::move(*own));
    }
    return placed;
  }

  /// So that all of them fit.
  PlacedRequests place_tightly(const std::vector<Request>& requests) {
    std::vector<PlacedPart> placed(requests.size());
    for (const std::size_t i : beyond_islands(requests)) placed[i] = occupy_islands(requests[i]);
    for (const std::vector<std::size_t>& island : packed_into_islands(requests))
      occupy_island(island, requests, placed);
    for (const std::vector<std::size_t>& member : packed_into_members(requests)) {
      MemberState& state = *std::ranges::find(members_, 0, &MemberState::used);
      for (const std::size_t i : member) occupy(state, requests[i].gpus, requests[i].replica, placed[i]);
    }
    return placed;
  }

 private:
  // Best fit: the island with the fewest whole members left, so that large gaps stay for large shapes. Only when no
  // island has enough members does the shape span several, fullest first.
  std::optional<PlacedPart> take_whole(const Request& request) {
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
    } else if (wanted <= per_island_) {
      return std::nullopt;
    } else {
      for (const auto& [island, count] : free) order.push_back(island);
      std::ranges::sort(order, {}, [&](int island) { return std::pair(-free[island], island); });
    }

    PlacedPart placed;
    placed.members = wanted;
    int left = wanted;
    for (const int island : order) left -= occupy_members(island, left, request.replica, placed);
    if (left > 0) return std::nullopt;
    return placed;
  }

  // Close to the replica's other parts first (same member, node, island), then where a member is already broken.
  std::optional<PlacedPart> take_inside(const Request& request) {
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
    if (best == nullptr) return std::nullopt;
    PlacedPart placed;
    occupy(*best, request.gpus, request.replica, placed);
    return placed;
  }

  [[nodiscard]] int per_island_gpus() const { return per_member_ * per_island_; }

  [[nodiscard]] std::vector<std::size_t> beyond_islands(const std::vector<Request>& requests) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].gpus > per_island_gpus()) found.push_back(i);
    }
    return found;
  }

  // Indices of requests, by bin.
  using Bins = std::vector<std::vector<std::size_t>>;

  // Requests of at least `least` and at most `most` GPUs in bins of so many.
  static Bins packed(const std::vector<Request>& requests, int least, int most, int bin, std::size_t bins) {
    std::vector<std::size_t> chosen;
    std::vector<int> sizes;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].gpus < least || requests[i].gpus > most) continue;
      chosen.push_back(i);
      sizes.push_back(requests[i].gpus);
    }
    auto result = pack_bins(sizes, bin, static_cast<int>(bins));
    if (!result) report_broken_invariant("the composition fits the level's islands", __FILE__, __LINE__);
    for (std::vector<std::size_t>& one : *result) {
      for (std::size_t& i : one) i = chosen[i];
    }
    return std::move(*result);
  }

  [[nodiscard]] Bins packed_into_islands(const std::vector<Request>& requests) const {
    return packed(requests, per_member_, per_island_gpus(), per_island_gpus(), untouched_islands().size());
  }

  [[nodiscard]] Bins packed_into_members(const std::vector<Request>& requests) const {
    const auto free = static_cast<std::size_t>(std::ranges::count(members_, 0, &MemberState::used));
    return packed(requests, 1, per_member_ - 1, per_member_, free);
  }

  [[nodiscard]] std::vector<int> untouched_islands() const {
    std::map<int, bool> untouched;
    for (const MemberState& state : members_)
      untouched.try_emplace(state.island, true).first->second &= state.used == 0;
    std::vector<int> islands;
    for (const auto& [island, free] : untouched) {
      if (free) islands.push_back(island);
    }
    return islands;
  }

  PlacedPart occupy_islands(const Request& request) {
    PlacedPart placed;
    placed.members = request.gpus / per_member_;
    int left = placed.members;
    for (const int island : untouched_islands()) left -= occupy_members(island, left, request.replica, placed);
    if (left > 0) report_broken_invariant("the composition fits the level's islands", __FILE__, __LINE__);
    return placed;
  }

  void occupy_island(const std::vector<std::size_t>& chosen, const std::vector<Request>& requests,
                     std::vector<PlacedPart>& placed) {
    const int island = untouched_islands().front();
    for (const std::size_t i : chosen) {
      placed[i].members = requests[i].gpus / per_member_;
      occupy_members(island, placed[i].members, requests[i].replica, placed[i]);
    }
  }

  /// Up to so many untouched members of the island; how many it took.
  int occupy_members(int island, int most, int replica, PlacedPart& placed) {
    int taken = 0;
    for (auto& state : members_) {
      if (taken == most) break;
      if (state.island != island || state.used != 0) continue;
      occupy(state, per_member_, replica, placed);
      ++taken;
    }
    return taken;
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
  int per_island_;
  std::vector<MemberState> members_;
  std::map<int, std::set<const MemberState*>> used_members_;  // by replica; only ever asked for membership
  std::map<int, std::set<std::size_t>> nodes_;
  std::map<int, std::set<int>> islands_;
};

/// Its parts, in the order of the pipeline.
void give_to_parts(const Request& request, const PlacedPart& together, std::vector<std::vector<PlacedPart>>& replica) {
  auto from = together.gpus.begin();
  for (const PartPlace& part : request.parts) {
    PlacedPart& placed = at(at(replica, part.stage), part.part);
    placed.members = together.members;
    placed.gpus.assign(from, from + part.gpus);
    from += part.gpus;
  }
}

}  // namespace

std::vector<std::vector<std::vector<PlacedPart>>> place(const compose::Composition& composition,
                                                        const cluster::IslandLevel& level) {
  std::vector<std::vector<PlacedPart>> one_replica;
  one_replica.reserve(composition.stages.size());
  for (const auto& stage : composition.stages) one_replica.emplace_back(stage.parts.size());
  std::vector placed(static_cast<std::size_t>(composition.replicas), one_replica);

  const std::vector<std::vector<Request>> requests = requests_of(composition, level.classes.size());
  for (std::size_t k = 0; k < requests.size(); ++k) {
    auto places = ClassPool(level.classes[k], level).place_closely(requests[k]);
    if (!places) places = ClassPool(level.classes[k], level).place_tightly(requests[k]);
    for (std::size_t i = 0; i < requests[k].size(); ++i) {
      give_to_parts(requests[k][i], (*places)[i], at(placed, requests[k][i].replica));
    }
  }
  return placed;
}

}  // namespace tangram::plan
