#include "block_weights.hpp"

#include <algorithm>
#include <map>

#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

BlockWeights weights_of(const Program& program, const std::vector<std::int64_t>& block) {
  BlockWeights weights;
  weights.of_first.assign(1, 0);
  for (const std::int64_t weight : block) weights.of_first.push_back(weights.of_first.back() + weight);
  weights.of_signature.assign(static_cast<std::size_t>(program.signatures), 0);
  for (int first = 0; first < program.blocks; ++first) {
    for (int last = first + 1; last <= program.blocks; ++last) {
      std::int64_t& heaviest = at(weights.of_signature, program.signature_of(first, last));
      heaviest = std::max(heaviest, at(weights.of_first, last) - at(weights.of_first, first));
    }
  }
  return weights;
}

// The fastest any option runs a block on its own: tells whether the ends, which hold more than their block, are no
// smaller than the kind.
std::int64_t fastest_alone(const Program& program, int block) {
  std::int64_t fastest = INT64_MAX;
  for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
    const auto& frontier = program.frontier(option, program.signature_of(block, block + 1));
    if (!frontier.empty()) fastest = std::min(fastest, frontier.front().T);
  }
  return fastest;
}

}  // namespace

std::vector<BlockWeights> block_weights(const Program& program, int least_share_of_kind) {
  std::map<int, int> count;  // of blocks, by signature
  for (int block = 0; block < program.blocks; ++block) ++count[program.signature_of(block, block + 1)];
  const auto blocks = static_cast<std::size_t>(program.blocks);
  std::vector<BlockWeights> all{weights_of(program, std::vector<std::int64_t>(blocks, kBlockWeight))};
  for (const auto& [signature, blocks_of_kind] : count) {
    if (blocks_of_kind * least_share_of_kind < program.blocks || blocks_of_kind == program.blocks) continue;
    std::vector<std::int64_t> weight(blocks, 0);
    std::int64_t of_kind = INT64_MAX;
    for (int block = 0; block < program.blocks; ++block) {
      if (program.signature_of(block, block + 1) != signature) continue;
      at(weight, block) = kBlockWeight;
      of_kind = fastest_alone(program, block);
    }
    for (const int end : {0, program.blocks - 1}) {
      if (fastest_alone(program, end) >= of_kind) at(weight, end) = kBlockWeight;
    }
    if (weight != std::vector<std::int64_t>(blocks, kBlockWeight)) all.push_back(weights_of(program, weight));
  }
  return all;
}

}  // namespace tangram::chain
