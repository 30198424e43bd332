// What crosses the boundaries, judged from the ranks' coordinates: every receiving shard is covered exactly once, by
// the ranks that own the data.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "findings.hpp"
#include "saturating.hpp"
#include "tangram/base/at.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::plan {

namespace {

struct Range {
  std::int64_t first = 0, last = 0;
  [[nodiscard]] bool holds(const Range& other) const { return first <= other.first && other.last <= last; }
  [[nodiscard]] bool meets(const Range& other) const { return first < other.last && other.first < last; }
  [[nodiscard]] std::int64_t length() const { return last - first; }
};

struct Shard {
  Range samples;
  Range sequence;
  [[nodiscard]] bool holds(const Shard& other) const {
    return samples.holds(other.samples) && sequence.holds(other.sequence);
  }
  [[nodiscard]] bool meets(const Shard& other) const {
    return samples.meets(other.samples) && sequence.meets(other.sequence);
  }
  [[nodiscard]] std::int64_t area() const { return product(samples.length(), sequence.length()); }
};

Range piece(const Range& whole, int index, int count) {
  return {whole.first + whole.length() * index / count, whole.first + whole.length() * (index + 1) / count};
}

/// What a rank owns of its stage's microbatch, by its coordinates.
Shard shard_of(const LaunchPlan& plan, const Rank& rank, std::int64_t tokens) {
  const Stage& stage = plan.stage(rank.stage);
  std::int64_t before = 0;
  for (int p = 0; p < rank.part; ++p) before += at(stage.parts, p).samples;
  const Part& part = at(stage.parts, rank.part);
  const auto& degrees = part.strategy.degrees;
  // The first replicas get what is left when all have equally many.
  const std::int64_t each = part.samples / degrees.dp;
  const std::int64_t left = part.samples % degrees.dp;
  const std::int64_t first = before + each * rank.dp + std::min<std::int64_t>(rank.dp, left);
  const Range context = piece({0, tokens}, rank.cp, degrees.cp);
  return {{first, first + each + (rank.dp < left ? 1 : 0)}, piece(context, rank.tp, degrees.tp)};
}

Shard extent(const Transfer& t) { return {{t.sample_first, t.sample_last}, {t.seq_first, t.seq_last}}; }

std::int64_t bytes_before(std::int64_t position, std::int64_t tokens, std::int64_t bytes) {
  return bytes / tokens * position + bytes % tokens * position / tokens;
}

class BoundaryJudge {
 public:
  BoundaryJudge(const LaunchPlan& plan, const Boundary& boundary, Findings& findings)
      : plan_(plan),
        boundary_(boundary),
        findings_(findings),
        where_(at_boundary(boundary)),
        tokens_(plan.pipelined().block(plan.stage(boundary.from).first_cut() - 1).tokens),
        bytes_(model::cut_bytes(plan.pipelined(), plan.stage(boundary.from).first_cut())) {}

  void judge() {
    std::map<int, std::vector<Shard>> received;
    for (const auto& transfer : boundary_.transfers) {
      if (one(transfer)) received[transfer.dst].push_back(extent(transfer));
    }
    for (const auto& rank : plan_.ranks) {
      if (rank.stage == boundary_.to) coverage(rank, received[rank.rank]);
    }
    mode();
  }

 private:
  bool one(const Transfer& t) {
    const std::string which = "transfer " + std::to_string(t.src) + "->" + std::to_string(t.dst);
    const Rank& source = at(plan_.ranks, t.src);
    const Rank& target = at(plan_.ranks, t.dst);
    if (source.stage != boundary_.from || target.stage != boundary_.to) {
      findings_.add("transfer-rank", where_, which + " does not join the boundary's stages");
      return false;
    }
    const Shard shard = extent(t);
    if (shard.samples.length() <= 0 || shard.sequence.length() <= 0) {
      findings_.add("transfer-empty", where_, which + " carries nothing");
      return false;
    }
    if (!shard_of(plan_, source, tokens_).holds(shard)) {
      findings_.add("transfer-owner", where_, which + " sends what rank " + std::to_string(t.src) + " does not own");
    }
    const bool wanted = shard_of(plan_, target, tokens_).holds(shard);
    if (!wanted) {
      findings_.add("transfer-target", where_,
                    which + " brings what rank " + std::to_string(t.dst) + " does not work on");
    } else {
      const std::int64_t bytes =
          product(bytes_before(t.seq_last, tokens_, bytes_) - bytes_before(t.seq_first, tokens_, bytes_),
                  shard.samples.length());
      if (t.bytes.value() != bytes) {
        findings_.add("transfer-bytes", where_,
                      which + " says " + std::to_string(t.bytes.value()) + " bytes, its part of the activation has " +
                          std::to_string(bytes));
      }
    }
    return wanted;
  }

  // All pieces lie inside the shard; if no two meet and their areas add up, they tile it.
  void coverage(const Rank& rank, const std::vector<Shard>& pieces) {
    std::int64_t area = 0;
    bool twice = false;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      area = sum(area, pieces[i].area());
      for (std::size_t j = 0; j < i && !twice; ++j) twice = pieces[i].meets(pieces[j]);
    }
    if (twice) {
      findings_.add("transfer-duplicate", where_, "rank " + std::to_string(rank.rank) + " receives something twice");
    } else if (area != shard_of(plan_, rank, tokens_).area()) {
      findings_.add("transfer-missing", where_,
                    "rank " + std::to_string(rank.rank) + " does not receive all it works on");
    }
  }

  void mode() {
    std::set<std::pair<int, int>> pairs;
    std::map<int, int> senders_of;
    std::map<int, int> receivers_of;
    for (const auto& t : boundary_.transfers) {
      if (!pairs.emplace(t.src, t.dst).second) continue;
      ++receivers_of[t.src];
      ++senders_of[t.dst];
    }
    const auto single = [](const std::map<int, int>& counts) {
      return std::ranges::all_of(counts, [](const auto& entry) { return entry.second == 1; });
    };
    const bool one_receiver = single(receivers_of);
    const bool one_sender = single(senders_of);
    const BoundaryMode mode = one_receiver ? (one_sender ? BoundaryMode::kEqual : BoundaryMode::kFanIn)
                                           : (one_sender ? BoundaryMode::kFanOut : BoundaryMode::kOverlap);
    if (boundary_.mode != mode) findings_.add("boundary-mode", where_, "the mode is not what the transfers show");
  }

  const LaunchPlan& plan_;
  const Boundary& boundary_;
  Findings& findings_;
  std::string where_;
  std::int64_t tokens_;
  std::int64_t bytes_;
};

void check_one_each(const LaunchPlan& plan, Findings& findings) {
  std::map<std::pair<int, int>, int> found;
  for (const auto& boundary : plan.boundaries) ++found[{boundary.from, boundary.to}];
  for (const auto& pipeline : plan.pipelines) {
    // Behind its last stage an interleaved pipeline goes on with its first one.
    const std::size_t stages = pipeline.stages.size();
    for (std::size_t s = 0; s + 1 < stages + (plan.is_interleaved() ? 1 : 0); ++s) {
      const std::pair<int, int> pair{pipeline.stages[s], pipeline.stages[(s + 1) % stages]};
      const std::string where = "boundary " + std::to_string(pair.first) + "->" + std::to_string(pair.second);
      const int count = found[pair];
      if (count == 0) findings.add("boundary-missing", where, "neighbouring stages have no boundary");
      if (count > 1) findings.add("boundary-extra", where, "is listed " + std::to_string(count) + " times");
      found.erase(pair);
    }
  }
  for (const auto& [pair, count] : found) {
    findings.add("boundary-extra", "boundary " + std::to_string(pair.first) + "->" + std::to_string(pair.second),
                 "joins stages that are not neighbours");
  }
}

}  // namespace

void check_transfers(const LaunchPlan& plan, Findings& findings) {
  check_one_each(plan, findings);
  for (const auto& boundary : plan.boundaries) {
    // Behind the last block there is nothing to hand over; such a boundary is already reported.
    if (plan.stage(boundary.from).first_cut() >= plan.pipelined().block_count()) continue;
    BoundaryJudge(plan, boundary, findings).judge();
  }
}

}  // namespace tangram::plan
