#include "tangram/cluster/islands.hpp"

#include <set>
#include <string>
#include <utility>

#include "island_text.hpp"

namespace tangram::cluster {

namespace {

IslandLevel name_level(const Fleet& fleet, UnnamedLevel level, double tolerance) {
  level.level.name = level_name(fleet, level);
  const std::vector<std::string> aliases = class_aliases(fleet, level, tolerance);
  for (std::size_t i = 0; i < aliases.size(); ++i) level.level.classes[i].alias = aliases[i];
  const std::vector<std::string> reasons = island_reasons(fleet, level, tolerance);
  for (std::size_t i = 0; i < reasons.size(); ++i) level.level.islands[i].reason = reasons[i];
  return std::move(level.level);
}

// Coarser levels keep the plain name; a finer one that would share it adds its bandwidth.
void make_names_unique(std::vector<IslandLevel>& levels) {
  std::set<std::string> taken;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    if (taken.count(level->name) != 0) level->name += " at " + bits_per_second(BytesPerSecond(level->threshold));
    const std::string base = level->name;
    for (int number = 2; !taken.insert(level->name).second; ++number) {
      level->name = base + " (" + std::to_string(number) + ")";
    }
  }
}

}  // namespace

IslandHierarchy find_islands(const Fleet& fleet, double tolerance) {
  const MemberGroups member_groups(fleet, tolerance);
  IslandHierarchy hierarchy;
  hierarchy.tolerance = tolerance;
  for (const Partition& partition : cut_hierarchy(member_groups, tolerance)) {
    hierarchy.levels.push_back(name_level(fleet, build_level(member_groups, partition, tolerance), tolerance));
  }
  make_names_unique(hierarchy.levels);
  return hierarchy;
}

}  // namespace tangram::cluster
