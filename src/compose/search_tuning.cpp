#include "tangram/compose/search_tuning.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::compose {

namespace {

std::vector<std::string> switch_names() {
  std::vector<std::string> names;
  for (const SearchSwitch& each : search_switches()) names.emplace_back(each.name);
  return names;
}

Diagnostic unknown_switch(std::string_view name) {
  const std::vector<std::string> names = switch_names();
  const auto near = closest(name, names);
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  return problem(ErrorKind::kUsage, "unknown-search-switch",
                 "the search has nothing called \"" + std::string(name) + "\" to be switched off" +
                     (near ? "; did you mean \"" + *near + "\"?" : ""),
                 "names: " + all);
}

Expected<void> switch_off(std::string_view name, SearchTuning& tuning) {
  const std::vector<SearchSwitch> all = search_switches();
  const auto found = std::ranges::find(all, name, &SearchSwitch::name);
  if (found == all.end()) return fail(unknown_switch(name));
  found->of(tuning) = false;
  return {};
}

}  // namespace

std::vector<SearchSwitch> search_switches() {
  std::vector<SearchSwitch> all;
  for (const chain::SolverCut& cut : chain::solver_cuts()) {
    all.push_back({cut.name, cut.summary,
                   [is_on = cut.is_on](SearchTuning& tuning) -> bool& { return tuning.solver.cuts.*is_on; }});
  }
  const auto add = [&](std::string_view name, bool ProgramTuning::* is_on, std::string_view summary) {
    all.push_back({name, summary, [is_on](SearchTuning& tuning) -> bool& { return tuning.programs.*is_on; }});
  };
  add("first-look", &ProgramTuning::first_look, "one pipeline of large shapes before everything else");
  add("screening", &ProgramTuning::screening, "programs cut by the time of single blocks");
  add("root-bound", &ProgramTuning::root_bound, "programs cut by their relaxation");
  add("staircases", &ProgramTuning::staircases, "slices of few lengths bound the others before they are asked for");
  add("wide-gap-first", &ProgramTuning::wide_gap_first, "all programs proven to a wide gap where labels are scarce");
  add("small-fleet-timetables", &ProgramTuning::small_fleet_timetables, "timetables of small fleets, once more");
  add("last-local-search", &ProgramTuning::last_local_search, "local search from the fastest plan at the end");
  all.push_back({"whole-blocks", "whole blocks in the bound without a search",
                 [](SearchTuning& tuning) -> bool& { return tuning.bound.whole_blocks; }});
  return all;
}

Expected<SearchTuning> without(SearchTuning tuning, std::string_view names) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (auto known = switch_off(names.substr(0, end), tuning); !known) return fail(std::move(known.error()));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return tuning;
}

}  // namespace tangram::compose
