#include "cut_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tangram::compose {

namespace {

// Blocks from `first` on that repeat what is `period` blocks in front of them.
int length_of_repeat(const model::Model& model, int first, int end, int period) {
  int block = first + period;
  while (block < end && at(model.blocks, block) == at(model.blocks, block - period)) ++block;
  return std::min(block, end) - first;
}

// The longest repeat with a period up to `most`; of equally long ones that of the shortest period.
struct Repeat {
  int period = 1;
  int blocks = 0;
};

Repeat longest_repeat(const model::Model& model, int first, int end, int most) {
  Repeat longest;
  for (int period = 1; period <= most && longest.blocks < end - first; ++period) {
    const int blocks = length_of_repeat(model, first, end, period);
    if (blocks > longest.blocks) longest = {period, blocks};
  }
  return longest;
}

// [first, end) of one module.
void add_cuts(const model::Model& model, int first, int end, int spacing, std::vector<int>& cuts) {
  while (first < end) {
    const Repeat repeat = longest_repeat(model, first, end, spacing);
    const int step = (spacing + repeat.period - 1) / repeat.period * repeat.period;
    for (int cut = first + step; cut < first + repeat.blocks; cut += step) cuts.push_back(cut);
    first += repeat.blocks;
    cuts.push_back(first);
  }
}

// Where modules end, the last one with the model.
std::set<int> ends_of_modules(const model::Model& model) {
  std::set<int> ends{model.block_count()};
  for (const model::Module& module : model.graph.modules) {
    if (module.blocks.last > 0) ends.insert(module.blocks.last);
  }
  for (const model::BlockRange& encoder : model::encoder_ranges(model)) ends.insert(encoder.last);
  return ends;
}

std::string ordinal(int number) {
  const bool teen = number / 10 % 10 == 1;
  const int last = teen ? 0 : number % 10;
  return fmt::format("{}{}", number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

}  // namespace

CutPoints::CutPoints(const model::Model& model, int spacing) : blocks_{0} {
  for (const int end : ends_of_modules(model)) add_cuts(model, blocks_.back(), end, spacing, blocks_);
}

CutPoints CutPoints::near(const model::Model& model, std::span<const int> cuts, int reach) {
  std::set<int> blocks{0, model.block_count()};
  for (const int cut : cuts) {
    for (int block = cut - reach; block <= cut + reach; ++block) {
      if (block > 0 && block < model.block_count()) blocks.insert(block);
    }
  }
  return CutPoints({blocks.begin(), blocks.end()});
}

int CutPoints::cut_at(int block) const {
  return static_cast<int>(std::ranges::lower_bound(blocks_, block) - blocks_.begin());
}

int CutPoints::longest_segment() const {
  int longest = 0;
  for (int segment = 0; segment < segments(); ++segment) {
    longest = std::max(longest, block(segment + 1) - block(segment));
  }
  return longest;
}

int cut_spacing(const model::Model& model, const CutLimits& limits) {
  const int blocks = model.block_count();
  if (blocks <= limits.blocks) return 1;
  int spacing = 1;
  while (spacing < blocks && CutPoints(model, spacing).segments() > limits.segments) ++spacing;
  return spacing;
}

std::string cut_rule(const CutPoints& cuts) {
  return fmt::format(
      "stages end at every {} block, and where blocks stop repeating or a module ends: {} segments of {} blocks; those "
      "of the fastest plan are then moved by single blocks",
      ordinal(cuts.longest_segment()), cuts.segments(), cuts.block(cuts.segments()));
}

}  // namespace tangram::compose
