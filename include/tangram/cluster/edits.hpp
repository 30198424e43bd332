// What if the fleet were another? Goes in: a fleet and short texts. Comes out: the fleet with nodes added, dropped or
// changed, or where a text is wrong.
//
//   drop   node=NAME or a range, gpu=TYPE, LABEL=VALUE       "rack=r3", "node=a-[01-04]"
//   add    gpu=TYPE,nodes=N[,count=GPUs][,network=RATE][,latency=TIME][,LABEL=VALUE...]     "gpu=H100,nodes=2"
//          nodes like the first one with that type, if there is one; else count and network are those of the node
//          with the most GPUs where they are not said, and Fleet::assumed tells it
//          like=NAME,nodes=N[,...] instead of gpu and count: nodes with all that this one has
//   set    link(LABEL:VALUE,LABEL:VALUE).bandwidth=RATE      also link(LABEL): between different values; .latency=TIME
//          node(NAME or LABEL:VALUE).network=RATE, .compute=SHARE, .memory=SHARE, .price=DOLLARS
//          gpu(TYPE).compute=SHARE, .memory=SHARE, .price=DOLLARS
//
// Types are names of the fleet or the catalogue or their beginnings; of a family of the catalogue ("H100") the one with
// the fastest fabric, then the fastest, then the most memory is taken. Rates are 10Gbit or 1.25GB a second, of a whole
// node and one direction; times 5us or 17ms; shares 70% of what was there.
#pragma once

#include <string>
#include <vector>

#include "tangram/cluster/fleet.hpp"

namespace tangram::cluster {

struct Edits {
  std::vector<std::string> drop;
  std::vector<std::string> add;
  std::vector<std::string> set;
  [[nodiscard]] bool empty() const { return drop.empty() && add.empty() && set.empty(); }
};

/// Drops first, then adds, then sets, each in order. Mistakes are kUsage, their places counted in the text, their file
/// "--drop", "--add" or "--set".
[[nodiscard]] Expected<Fleet> edited(Fleet fleet, const Edits& edits);

}  // namespace tangram::cluster
