#include <algorithm>
#include <tuple>

#include "tangram/plan/assemble.hpp"

namespace tangram::plan {

namespace {

struct SequenceShard {
  int rank = 0;
  std::int64_t first = 0, last = 0;
};

/// One data-parallel replica of a part: its samples, and who owns which piece of their sequence.
struct Lane {
  std::int64_t first = 0, last = 0;
  std::vector<SequenceShard> shards;
};

// cp ranges of the sequence, each cut into tp ranges. As tp is the fastest coordinate, this is also the order of ranks.
std::vector<SequenceShard> shards_of(const cost::Degrees& degrees, int first_rank, std::int64_t tokens) {
  std::vector<SequenceShard> shards;
  for (int c = 0; c < degrees.cp; ++c) {
    const std::int64_t begin = tokens * c / degrees.cp;
    const std::int64_t length = tokens * (c + 1) / degrees.cp - begin;
    for (int t = 0; t < degrees.tp; ++t) {
      shards.push_back(
          {first_rank + c * degrees.tp + t, begin + length * t / degrees.tp, begin + length * (t + 1) / degrees.tp});
    }
  }
  return shards;
}

std::vector<Lane> lanes_of(const Stage& stage, std::int64_t tokens) {
  std::vector<Lane> lanes;
  std::int64_t sample = 0;
  for (const auto& part : stage.parts) {
    const auto& degrees = part.strategy.degrees;
    for (int d = 0; d < degrees.dp; ++d) {
      lanes.push_back({sample + degrees.samples_before(d, part.samples),
                       sample + degrees.samples_before(d + 1, part.samples),
                       shards_of(degrees, part.first_rank + d * degrees.tp * degrees.cp, tokens)});
    }
    sample += part.samples;
  }
  return lanes;
}

}  // namespace

std::vector<Transfer> boundary_transfers(const Stage& from, const Stage& to, std::int64_t tokens,
                                         Bytes bytes_per_sample) {
  const auto senders = lanes_of(from, tokens);
  const auto receivers = lanes_of(to, tokens);
  // Bytes of positions [0, n) of a sample: differences of these add up to the whole whatever the divisibility.
  const auto bytes_before = [&](std::int64_t position) {
    return bytes_per_sample.value() / tokens * position + bytes_per_sample.value() % tokens * position / tokens;
  };
  std::vector<Transfer> transfers;
  for (const auto& source : senders) {
    for (const auto& target : receivers) {
      const std::int64_t first = std::max(source.first, target.first);
      const std::int64_t last = std::min(source.last, target.last);
      if (first >= last) continue;
      for (std::size_t i = 0, j = 0; i < source.shards.size() && j < target.shards.size();) {
        const auto& a = source.shards[i];
        const auto& b = target.shards[j];
        const std::int64_t seq_first = std::max(a.first, b.first);
        const std::int64_t seq_last = std::min(a.last, b.last);
        if (seq_first < seq_last) {
          transfers.push_back({a.rank, b.rank, first, last, seq_first, seq_last,
                               Bytes((bytes_before(seq_last) - bytes_before(seq_first)) * (last - first))});
        }
        if (a.last <= b.last) ++i;
        if (b.last <= a.last) ++j;
      }
    }
  }
  std::ranges::sort(transfers, {},
                    [](const Transfer& t) { return std::tuple(t.src, t.dst, t.sample_first, t.seq_first); });
  return transfers;
}

BoundaryMode boundary_mode(const std::vector<Transfer>& transfers) {
  const auto all_once = [&](int Transfer::* rank) {
    std::vector<int> seen;
    seen.reserve(transfers.size());
    for (const auto& transfer : transfers) seen.push_back(transfer.*rank);
    std::ranges::sort(seen);
    return std::ranges::adjacent_find(seen) == seen.end();
  };
  const bool one_receiver_each = all_once(&Transfer::src);
  const bool one_sender_each = all_once(&Transfer::dst);
  if (one_receiver_each && one_sender_each) return BoundaryMode::kEqual;
  if (one_receiver_each) return BoundaryMode::kFanIn;
  if (one_sender_each) return BoundaryMode::kFanOut;
  return BoundaryMode::kOverlap;
}

}  // namespace tangram::plan
