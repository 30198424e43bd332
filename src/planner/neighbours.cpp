#include "neighbours.hpp"

#include "tangram/cluster/edits.hpp"

namespace tangram::planner {

Expected<cluster::Fleet> without_nodes(const cluster::Fleet& fleet, const std::vector<std::string>& names) {
  cluster::Edits edits;
  for (const std::string& name : names) edits.drop.push_back("node=" + name);
  return cluster::edited(fleet, edits);
}

Expected<cluster::Fleet> with_one_more(const cluster::Fleet& fleet, const std::string& name) {
  return cluster::edited(fleet, {{}, {"like=" + name}, {}});
}

}  // namespace tangram::planner
