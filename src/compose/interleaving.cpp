#include "interleaving.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "tangram/runtime/runtime.hpp"

namespace tangram::compose {

namespace {

constexpr std::int64_t kAllGroups = 64;  // pipelines hardly have more stages

// The longest run of blocks of one type.
model::BlockRange longest_run(const model::Model& model) {
  const int blocks = model.block_count();
  model::BlockRange longest;
  for (int first = 0; first < blocks;) {
    int last = first + 1;
    while (last < blocks &&
           model.blocks[static_cast<std::size_t>(last)] == model.blocks[static_cast<std::size_t>(first)])
      ++last;
    if (last - first > longest.last - longest.first) longest = {first, last};
    first = last;
  }
  return longest;
}

bool is_elsewhere(const model::Model& model, const model::BlockRange& run) {
  const int type = model.blocks[static_cast<std::size_t>(run.first)];
  for (int block = 0; block < model.block_count(); ++block) {
    const bool inside = run.first <= block && block < run.last;
    if (!inside && model.blocks[static_cast<std::size_t>(block)] == type) return true;
  }
  return false;
}

}  // namespace

ChunkedSlices::ChunkedSlices(const model::Model& model) : blocks_(model.block_count()) {
  const model::BlockRange run = longest_run(model);
  if (is_elsewhere(model, run)) return;
  std::set<std::int64_t> bytes;
  for (int cut = std::max(1, run.first); cut <= run.last && cut < blocks_; ++cut) {
    bytes.insert(model::cut_bytes(model, cut));
  }
  if (bytes.size() != 1) return;
  alike_first_ = run.first;
  alike_last_ = run.last;
  cut_bytes_ = *bytes.begin();
}

bool ChunkedSlices::has(int first, int last, int chunks) const {
  if (cut_bytes_ == 0 || last - first < chunks) return false;
  const int smallest = chain::chunk_size(last - first, chunks, 0);
  const int largest = chain::chunk_size(last - first, chunks, chunks - 1);
  if (first < alike_first_ && (first > 0 || smallest < alike_first_)) return false;
  return last <= alike_last_ || (last == blocks_ && largest >= blocks_ - alike_last_);
}

std::vector<std::vector<model::BlockRange>> chunk_ranges(const std::vector<int>& blocks, int chunks) {
  std::vector<std::vector<model::BlockRange>> ranges(blocks.size());
  int first = 0;
  for (int c = 0; c < chunks; ++c) {
    for (std::size_t s = 0; s < blocks.size(); ++s) {
      const int size = chain::chunk_size(blocks[s], chunks, c);
      ranges[s].push_back({first, first + size});
      first += size;
    }
  }
  return ranges;
}

std::vector<chain::MicrobatchGroup> microbatch_groups(std::int64_t microbatches) {
  std::vector<chain::MicrobatchGroup> groups;
  for (std::int64_t group = 2; group <= microbatches; ++group) {
    if (group > kAllGroups && !std::has_single_bit(static_cast<std::uint64_t>(group))) continue;
    const std::int64_t most_stages = runtime::most_interleaved_stages(microbatches, group);
    if (most_stages > 1) groups.push_back({group, most_stages});
  }
  return groups;
}

}  // namespace tangram::compose
