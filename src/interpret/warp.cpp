#include "warp.hpp"

#include <algorithm>
#include <utility>

#include "matrix.hpp"

namespace tangram::interpret {
namespace {

bool is_sync(const Step& step) { return step.source->has("sync"); }

/// PTX ISA, "shfl": the lane that is read, and whether it is within the segment.
std::pair<std::int64_t, bool> source_of(const Step& step, const Thread& thread) {
  const auto lane = thread.lane();
  const auto offset = static_cast<std::int64_t>(thread.read(step.operands[2]) & 0x1f);
  const Bits bounds = thread.read(step.operands[3]);
  const auto clamp = static_cast<std::int64_t>(bounds & 0x1f);
  const auto segment = static_cast<std::int64_t>(bounds >> 8 & 0x1f);
  const std::int64_t highest = (lane & segment) | (clamp & ~segment);
  const std::int64_t lowest = lane & segment;
  std::int64_t from = lane;
  bool inside = false;
  if (step.choice == "up") {
    from = lane - offset;
    inside = from >= highest;
  } else if (step.choice == "down") {
    from = lane + offset;
    inside = from <= highest;
  } else if (step.choice == "bfly") {
    from = lane ^ offset;
    inside = from <= highest;
  } else {
    from = lowest | (offset & ~segment);
    inside = from <= highest;
  }
  return {inside ? from : lane, inside};
}

void shuffle(const std::vector<Thread*>& members) {
  const Step& step = members.front()->step();
  std::vector<std::pair<Bits, bool>> results;
  for (const Thread* thread : members) {
    const auto [lane, inside] = source_of(step, *thread);
    const auto source = std::ranges::find_if(members, [&](const Thread* other) { return other->lane() == lane; });
    const Thread* from = source == members.end() ? thread : *source;  // of a lane that does not take part: undefined
    results.emplace_back(from->read(step.operands[1]), inside);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::span<const Ref> targets = step.operands[0].elements();
    members[i]->write(targets[0], results[i].first);
    if (targets.size() > 1) members[i]->write(targets[1], results[i].second ? 1 : 0);
  }
}

void vote(const std::vector<Thread*>& members) {
  const Step& step = members.front()->step();
  Bits ballot = 0;
  bool all = true;
  for (const Thread* thread : members) {
    const bool holds = thread->read(step.operands[1]) != 0;
    if (holds) ballot |= Bits{1} << thread->lane();
    all = all && holds;
  }
  const bool none = ballot == 0;
  const Bits result = step.choice == "ballot" ? ballot
                      : step.choice == "all"  ? Bits{all}
                      : step.choice == "any"  ? Bits{!none}
                                              : Bits{all || none};
  for (Thread* thread : members) thread->write(step.operands[0], result);
}

}  // namespace

Bits member_mask(const Thread& thread) {
  const Step& step = thread.step();
  const Bits all = truncated(~Bits{0}, 32);
  const bool of_matrices = step.op == Op::kMatrixProduct || step.op == Op::kLoadMatrix || step.op == Op::kStoreMatrix;
  if (step.op == Op::kActiveMask || of_matrices || !is_sync(step) || step.operands.empty()) return all;
  return thread.read(step.operands.back());
}

void exchange(const std::vector<Thread*>& members) {
  const Step& step = members.front()->step();
  switch (step.op) {
    case Op::kShfl: return shuffle(members);
    case Op::kVote: return vote(members);
    case Op::kMatrixProduct: return multiply_matrices(members);
    case Op::kLoadMatrix: return load_matrices(members);
    case Op::kStoreMatrix: return store_matrices(members);
    case Op::kActiveMask: {
      Bits mask = 0;
      for (const Thread* thread : members) mask |= Bits{1} << thread->lane();
      for (Thread* thread : members) thread->write(step.operands[0], mask);
      return;
    }
    default: return;
  }
}

}  // namespace tangram::interpret
