#include "minimize_migration.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::plan {

namespace {

/// The layers a GPU holds and how they are divided.
using Work = std::tuple<int, int, cost::Degrees>;
/// Of every GPU of a member; nothing where it is idle.
using MemberWork = std::vector<std::optional<Work>>;
/// Of every member of an island, in any order.
using IslandWork = std::multiset<MemberWork>;

/// Contents of equal kind are exchanged for nothing, so that only kinds are compared.
template <class Kind>
std::map<Kind, std::vector<std::size_t>> by_kind(const std::vector<Kind>& all) {
  std::map<Kind, std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < all.size(); ++i) kinds[all[i]].push_back(i);
  return kinds;
}

/// Gives every content a place: place_of[i]. Pairs of kinds that have most in common first; content i stays at place i
/// where its kind goes there anyway.
template <class Kind>
std::vector<std::size_t> give_places(const std::vector<Kind>& contents, const std::vector<Kind>& places,
                                     const std::function<int(const Kind&, const Kind&)>& common) {
  auto wanting = by_kind(contents);
  auto free = by_kind(places);
  std::vector<std::tuple<int, std::vector<std::size_t>*, std::vector<std::size_t>*>> pairs;
  for (auto& [content, who] : wanting) {
    for (auto& [place, where] : free) pairs.emplace_back(-common(content, place), &who, &where);
  }
  std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return std::get<0>(pair); });
  std::vector<std::size_t> place_of(contents.size());
  using Numbers = std::vector<std::size_t>;
  // Comes out: the content behind the one that was given.
  const auto give = [&](Numbers& who, Numbers::iterator content, Numbers& where, Numbers::iterator place) {
    place_of[*content] = *place;
    where.erase(place);
    return who.erase(content);
  };
  for (auto& [score, who, where] : pairs) {
    for (auto content = who->begin(); content != who->end();) {
      const auto same = std::ranges::lower_bound(*where, *content);
      const bool stays = same != where->end() && *same == *content;
      content = stays ? give(*who, content, *where, same) : content + 1;
    }
    while (!who->empty() && !where->empty()) give(*who, who->begin(), *where, where->begin());
  }
  return place_of;
}

int common_gpus(const MemberWork& a, const MemberWork& b) {
  int same = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) same += a[i] && a[i] == b[i] ? 1 : 0;
  return same;
}

/// At most this many can keep their work: members that are wholly alike.
int common_members(const IslandWork& a, const IslandWork& b) {
  int same = 0;
  for (auto kind = a.begin(); kind != a.end(); kind = a.upper_bound(*kind)) {
    const auto busy = static_cast<int>(std::ranges::count_if(*kind, [](const auto& work) { return work.has_value(); }));
    same += busy * static_cast<int>(std::min(a.count(*kind), b.count(*kind)));
  }
  return same;
}

class MigrationMinimizer {
 public:
  MigrationMinimizer(const compose::Composition& composition, const cluster::Fleet& fleet,
                     const cluster::IslandLevel& level, const LaunchPlan& near)
      : composition_(composition), fleet_(fleet), level_(level) {
    for (const Rank& rank : near.ranks) {
      const Stage& stage = near.stage(rank.stage);
      const cost::Degrees& degrees = at(stage.parts, rank.part).strategy.degrees;
      old_[{rank.host, rank.gpu}] = Work{stage.first(), stage.last(), degrees};
    }
  }

  void run(std::vector<std::vector<std::vector<PlacedPart>>>& placed) {
    read(placed);
    for (const cluster::IslandClass& its_class : level_.classes) exchange_islands(its_class);
    for (auto& replica : placed) {
      for (auto& stage : replica) {
        for (PlacedPart& part : stage) {
          for (GpuSlot& slot : part.gpus) slot = moved_.at(slot);
          std::ranges::sort(part.gpus);
        }
      }
    }
  }

 private:
  void read(const std::vector<std::vector<std::vector<PlacedPart>>>& placed) {
    for (const auto& replica : placed) {
      for (std::size_t s = 0; s < replica.size(); ++s) {
        const compose::StageChoice& stage = composition_.stages[s];
        for (std::size_t p = 0; p < replica[s].size(); ++p) {
          const Work work{stage.first, stage.last, stage.parts[p].plan.strategy.degrees};
          for (const GpuSlot& slot : replica[s][p].gpus) new_[{slot.node, slot.gpu}] = work;
        }
      }
    }
  }

  [[nodiscard]] MemberWork new_work(const cluster::IslandMember& member) const {
    MemberWork work;
    for (int g = 0; g < member.count; ++g) {
      const auto found = new_.find({member.node, member.first_gpu + g});
      work.push_back(found == new_.end() ? std::nullopt : std::optional(found->second));
    }
    return work;
  }
  [[nodiscard]] MemberWork old_work(const cluster::IslandMember& member) const {
    MemberWork work;
    for (int g = 0; g < member.count; ++g) {
      const auto found = old_.find({fleet_.nodes[member.node].name, member.first_gpu + g});
      work.push_back(found == old_.end() ? std::nullopt : std::optional(found->second));
    }
    return work;
  }

  void exchange_islands(const cluster::IslandClass& its_class) {
    std::vector<IslandWork> contents;
    std::vector<IslandWork> places;
    for (const int id : its_class.islands) {
      IslandWork& content = contents.emplace_back();
      IslandWork& place = places.emplace_back();
      for (const cluster::IslandMember& member : at(level_.islands, id).members) {
        content.insert(new_work(member));
        place.insert(old_work(member));
      }
    }
    const auto place_of = give_places<IslandWork>(contents, places, common_members);
    for (std::size_t i = 0; i < place_of.size(); ++i) {
      exchange_members(its_class.islands[i], its_class.islands[place_of[i]]);
    }
  }

  /// What the members of one island hold goes to those of another (or of the same).
  void exchange_members(int from, int to) {
    const auto& sources = at(level_.islands, from).members;
    const auto& targets = at(level_.islands, to).members;
    std::vector<MemberWork> contents;
    std::vector<MemberWork> places;
    contents.reserve(sources.size());
    places.reserve(targets.size());
    for (const cluster::IslandMember& member : sources) contents.push_back(new_work(member));
    for (const cluster::IslandMember& member : targets) places.push_back(old_work(member));
    const auto place_of = give_places<MemberWork>(contents, places, common_gpus);
    for (std::size_t i = 0; i < place_of.size(); ++i) {
      const cluster::IslandMember& target = targets[place_of[i]];
      for (int g = 0; g < sources[i].count; ++g) {
        moved_[{sources[i].node, sources[i].first_gpu + g, from}] = {target.node, target.first_gpu + g, to};
      }
    }
  }

  const compose::Composition& composition_;
  const cluster::Fleet& fleet_;
  const cluster::IslandLevel& level_;
  std::map<std::pair<std::string, int>, Work> old_;  // by host and GPU
  std::map<std::pair<std::size_t, int>, Work> new_;  // by node and GPU
  std::map<GpuSlot, GpuSlot> moved_;
};

}  // namespace

void minimize_migration(std::vector<std::vector<std::vector<PlacedPart>>>& placed,
                        const compose::Composition& composition, const cluster::Fleet& fleet,
                        const cluster::IslandLevel& level, const LaunchPlan& near) {
  MigrationMinimizer(composition, fleet, level, near).run(placed);
}

}  // namespace tangram::plan
