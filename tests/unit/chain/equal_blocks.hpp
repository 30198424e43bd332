// Programs of equal blocks whose times can be added up in the head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain::fixtures {

struct Speed {
  std::vector<Use> uses;
  std::int64_t per_block = 0;
  std::int64_t n_max = 100;
};

/// Equal blocks; an option runs n of them in n times its time.
inline Program equal_blocks(int blocks, std::vector<int> inventory, const std::vector<Speed>& speeds) {
  Program program;
  program.blocks = blocks;
  program.microbatches = 8;
  program.inventory = std::move(inventory);
  program.signatures = blocks;
  program.signature = {blocks + 1, blocks + 1, -1};
  for (int first = 0; first < blocks; ++first) {
    for (int last = first + 1; last <= blocks; ++last) {
      program.signature(first, last) = last - first - 1;
    }
  }
  for (const Speed& speed : speeds) {
    program.options.push_back({speed.uses, 0});
    std::vector<std::vector<Candidate>> frontiers;
    for (int n = 1; n <= blocks; ++n) {
      const std::int64_t time = speed.per_block * n;
      frontiers.push_back({{.T = time, .A = time, .n_max = speed.n_max}});
    }
    program.frontiers.add_row(frontiers);
  }
  program.keys = 1;
  program.cut_kind.assign(static_cast<std::size_t>(blocks) + 1, 0);
  program.prices = {{1, {{0, 0}}}};
  return program;
}

inline const Speed kFast{{{0, 1}}, 10};
inline const Speed kSlow{{{1, 1}}, 15};

}  // namespace tangram::chain::fixtures
