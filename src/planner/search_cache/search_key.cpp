// What a search depends on, as a digest. Whatever search_target comes to read has to come in here: a key that leaves
// something out finds a wrong plan.
#include <map>
#include <set>

#include "as_json.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/planner/search_cache.hpp"

namespace tangram::planner {
namespace {

using search_cache::Json;

/// Of its islands the search reads how many there are.
Json class_json(const cluster::IslandClass& island_class) {
  const auto& [id, alias, device, gpus, members, islands, inside, between, apart, price] = island_class;
  return Json::array({id, alias, search_cache::to_json(device), gpus, members, islands.size(),
                      search_cache::to_json(inside), search_cache::to_json(between), search_cache::to_json(apart),
                      search_cache::to_json(price)});
}

/// Which classes have GPUs in one host: targets may forbid to use both. Hosts are not named.
Json shared_hosts(const std::vector<cluster::Island>& islands) {
  std::map<std::size_t, std::set<int>> classes;
  for (const cluster::Island& island : islands) {
    for (const cluster::IslandMember& member : island.members) classes[member.node].insert(island.island_class);
  }
  std::set<std::set<int>> shared;
  for (auto& [node, on_host] : classes) {
    if (on_host.size() > 1) shared.insert(std::move(on_host));
  }
  return shared;
}

Json level_json(const cluster::IslandLevel& level) {
  const auto& [name, threshold, islands, classes, links] = level;
  Json all = Json::array();
  for (const cluster::IslandClass& each : classes) all.push_back(class_json(each));
  return Json::array(
      {name, search_cache::to_json(threshold), shared_hosts(islands), std::move(all), search_cache::to_json(links)});
}

Json hierarchy_json(const cluster::IslandHierarchy& hierarchy) {
  const auto& [tolerance, levels] = hierarchy;
  Json all = Json::array({search_cache::to_json(tolerance)});
  for (const cluster::IslandLevel& level : levels) all.push_back(level_json(level));
  return all;
}

Json profiles_json(const cost::ProfileSet& profiles) {
  return Json::array({search_cache::to_json(profiles.profiles()), profiles.measured_only()});
}

Json options_json(const compose::SearchOptions& options) {
  // The deadline is no part of it: what it ends is not stored.
  const auto& [timed, top, label_budget, deadline, max_replicas, max_parts, constraints, cuts, spend, incumbent,
               accepted_gap, near_degrees, schedule, placement, lifted, profiles, relaxed_bound, tuning] = options;
  return Json::array({timed, top, label_budget, max_replicas, max_parts, search_cache::to_json(constraints),
                      Json::array({cuts.blocks, cuts.segments}), search_cache::to_json(spend),
                      search_cache::to_json(incumbent), search_cache::to_json(accepted_gap),
                      search_cache::to_json(near_degrees), search_cache::to_json(schedule), to_string(placement),
                      search_cache::to_json(lifted), profiles == nullptr ? Json() : profiles_json(*profiles),
                      search_cache::to_json(relaxed_bound)});
}

/// Whether equal infos mean equal answers.
bool is_known(const parallelizer::ParallelizerInfo& info) {
  return info.built_in || (info.deterministic && !info.identity.empty());
}

/// CBOR, because it takes texts as they are, UTF-8 or not, and numbers to the last bit.
std::string digest_of(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return digest(bytes);
}

}  // namespace

std::string islands_key(const cluster::IslandHierarchy& hierarchy) { return digest_of(hierarchy_json(hierarchy)); }

const parallelizer::ParallelizerInfo* first_uncacheable(
    std::span<const parallelizer::Parallelizer* const> parallelizers) {
  for (const parallelizer::Parallelizer* p : parallelizers) {
    if (!is_known(p->info())) return &p->info();
  }
  return nullptr;
}

std::optional<std::string> search_key(const SearchQuestion& question, const std::string& program) {
  if (first_uncacheable(question.parallelizers) != nullptr) return std::nullopt;
  // What is tuned or switched off is to be searched, not remembered.
  if (question.options.tuning != compose::SearchTuning{}) return std::nullopt;
  Json who = Json::array();
  for (const parallelizer::Parallelizer* p : question.parallelizers) who.push_back(search_cache::to_json(p->info()));
  return digest_of(Json::array({program, static_cast<int>(question.target), search_cache::to_json(question.model),
                                hierarchy_json(question.hierarchy), options_json(question.options), std::move(who)}));
}

}  // namespace tangram::planner
