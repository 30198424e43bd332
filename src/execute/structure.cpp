#include "structure.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "tangram/base/at.hpp"
#include "tangram/cost/validity.hpp"

namespace tangram::execute {

namespace {

using plan::LaunchPlan;

std::string at_stage(int id) { return "stage " + std::to_string(id); }
std::string at_rank(int rank) { return "rank " + std::to_string(rank); }

/// Findings of one code beyond the first few say nothing new: one mistake shows at every rank of a large plan.
class Collected {
 public:
  void add(std::string code, std::string where, std::string message) {
    constexpr int kShown = 5;
    if (++count_[code] <= kShown) list_.push_back({std::move(code), std::move(where), std::move(message)});
  }
  [[nodiscard]] std::vector<Finding> take() && { return std::move(list_); }

 private:
  std::map<std::string, int> count_;
  std::vector<Finding> list_;
};

/// Of samples and positions: half-open, as the plan counts them.
struct Area {
  std::int64_t sample_first = 0, sample_last = 0;
  std::int64_t first = 0, last = 0;
  [[nodiscard]] bool holds(const Area& o) const {
    return sample_first <= o.sample_first && o.sample_last <= sample_last && first <= o.first && o.last <= last;
  }
  [[nodiscard]] bool meets(const Area& o) const {
    return sample_first < o.sample_last && o.sample_first < sample_last && first < o.last && o.first < last;
  }
};

void find_layer_range(const LaunchPlan& plan, const plan::Pipeline& pipeline, Collected& findings) {
  const std::string where = "pipeline " + std::to_string(pipeline.id);
  std::vector<int> held(plan.pipelined().blocks.size(), 0);
  int behind = 0;
  for (std::size_t c = 0; c < plan.chunks(); ++c) {
    for (const int id : pipeline.stages) {
      if (c >= plan.stage(id).chunks.size()) continue;
      const model::BlockRange& chunk = plan.stage(id).chunks[c];
      if (chunk.first < behind) {
        findings.add("layer-range", at_stage(id),
                     "runs block " + std::to_string(chunk.first) + " after a stage has run it or a later one");
      }
      behind = chunk.last;
    }
  }
  for (const int id : pipeline.stages) {
    const plan::Stage& stage = plan.stage(id);
    if (stage.chunks.size() != plan.chunks() || (plan.chunks() > 1) != plan.is_interleaved()) {
      findings.add("layer-range", at_stage(id), "all stages have equally many chunks, several where they take turns");
    }
    for (const int b : stage.blocks()) ++at(held, b);
    if (stage.embedding != (stage.first() == 0) || stage.head != (stage.last() == plan.pipelined().block_count())) {
      findings.add("layer-range", at_stage(id), "embedding and head go with the first and the last block");
    }
  }
  for (std::size_t b = 0; b < held.size(); ++b) {
    if (held[b] == 0) findings.add("layer-range", where, "block " + std::to_string(b) + " is in no stage");
    if (held[b] > 1) findings.add("layer-range", where, "block " + std::to_string(b) + " is in several stages");
  }
}

void find_missing_samples(const LaunchPlan& plan, Collected& findings) {
  std::int64_t total = 0;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    total += pipeline.samples;
    // Of the last microbatch some samples may be missing, but not all.
    const auto runs = static_cast<long double>(pipeline.microbatches) * static_cast<long double>(pipeline.microbatch);
    const auto missing = runs - static_cast<long double>(pipeline.samples);
    if (missing < 0 || missing >= static_cast<long double>(pipeline.microbatch)) {
      findings.add("microbatch-missing", "pipeline " + std::to_string(pipeline.id),
                   std::to_string(pipeline.microbatches) + " microbatches of " + std::to_string(pipeline.microbatch) +
                       " are not its " + std::to_string(pipeline.samples) + " samples");
    }
  }
  if (total != plan.model.job.global_batch) {
    findings.add("batch-share", "plan",
                 "pipelines take " + std::to_string(total) + " samples of a batch of " +
                     std::to_string(plan.model.job.global_batch));
  }
}

/// Why the part's ranks cannot share the stage's layers; empty: they can.
std::string why_impossible(const model::Model& model, const plan::Stage& stage, const plan::Part& part) {
  if (part.samples > std::numeric_limits<int>::max()) return "too many samples";
  std::string why;
  for (const model::SliceSignature& chunk : stage.signatures(model)) {
    if (why.empty()) {
      why = cost::why_indivisible(model, chunk, part.strategy.degrees, static_cast<int>(part.samples));
    }
  }
  return why;
}

bool is_possible(const cost::MemoryPolicy& policy, const plan::Stage& stage) {
  const int blocks = stage.most_chunk_blocks();
  if (policy.is_mixed() && stage.chunks.size() > 1) return false;
  int told = 0;
  for (const cost::BlockRun& run : policy.runs) {
    if (run.policy.zero < 0 || run.policy.zero > 3 || run.blocks < 1 || run.blocks > blocks - told) return false;
    told += run.blocks;
  }
  return policy.zero >= 0 && policy.zero <= 3 && policy.recompute_layers >= 0 && policy.recompute_layers <= blocks &&
         (!policy.is_mixed() || told == blocks);
}

void find_degrees(const LaunchPlan& plan, const plan::Stage& stage, Collected& findings) {
  const plan::Pipeline& pipeline = at(plan.pipelines, stage.pipeline);
  std::int64_t samples = 0;
  for (const plan::Part& part : stage.parts) {
    samples += part.samples;
    if (const std::string why = why_impossible(plan.pipelined(), stage, part); !why.empty()) {
      findings.add("degrees-invalid", at_stage(stage.id), why);
    }
    const cost::MemoryPolicy& policy = part.strategy.policy;
    if (!is_possible(policy, stage)) {
      findings.add("degrees-invalid", at_stage(stage.id), "ZeRO goes from 0 to 3, recompute to the stage's layers");
    }
  }
  if (samples != pipeline.microbatch) {
    findings.add(
        "batch-share", at_stage(stage.id),
        "takes " + std::to_string(samples) + " samples of a microbatch of " + std::to_string(pipeline.microbatch));
  }
  if (stage.warmup < 0) findings.add("in-flight-differs", at_stage(stage.id), "a warm-up cannot be negative");
}

/// tp, cp, dp, expert-tp, ep, expert dp.
using Coordinates = std::tuple<int, int, int, int, int, int>;

Coordinates written(const plan::Rank& rank) { return {rank.tp, rank.cp, rank.dp, rank.etp, rank.ep, rank.edp}; }

/// Of the index-th rank of a part: tp is the fastest, then cp, then dp; of experts expert-tp, then ep.
Coordinates expected(const cost::Degrees& d, int index) {
  return {index % d.tp,  index / d.tp % d.cp,  index / (d.tp * d.cp),
          index % d.etp, index / d.etp % d.ep, index / (d.etp * d.ep)};
}

void find_swapped_ranks(const LaunchPlan& plan, const plan::Stage& stage, std::size_t p, Collected& findings) {
  const plan::Part& part = stage.parts[p];
  const cost::Degrees& d = part.strategy.degrees;
  if (d.gpus() % (std::int64_t{d.ep} * d.etp) != 0) return;
  for (int i = 0; i < d.gpus(); ++i) {
    const plan::Rank& rank = plan.rank(part, i);
    if (rank.stage != stage.id || rank.part != static_cast<int>(p)) {
      findings.add(
          "rank-order", at_rank(rank.rank),
          "stands where " + at_stage(stage.id) + " has its ranks, but says stage " + std::to_string(rank.stage));
      continue;
    }
    if (written(rank) == expected(d, i)) continue;
    int place = 0;
    while (place < d.gpus() && expected(d, place) != written(rank)) ++place;
    findings.add("rank-order", at_rank(rank.rank),
                 place < d.gpus() ? "has the coordinates of rank " + std::to_string(part.first_rank + place)
                                  : "has coordinates outside of its part");
  }
}

void find_shared_ranks(const LaunchPlan& plan, Collected& findings) {
  std::vector<int> owners(plan.ranks.size(), 0);
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      const auto first = owners.begin() + part.first_rank;
      std::for_each(first, first + part.strategy.degrees.gpus(), [](int& count) { ++count; });
    }
  }
  for (std::size_t r = 0; r < owners.size(); ++r) {
    if (owners[r] == 1) continue;
    findings.add("rank-order", at_rank(static_cast<int>(r)), owners[r] == 0 ? "works nowhere" : "works in two places");
  }
}

/// What each rank of a stage works on and hands over.
std::map<int, Area> shards(const plan::Stage& stage, std::int64_t tokens) {
  std::map<int, Area> shards;
  std::int64_t before = 0;
  for (const plan::Part& part : stage.parts) {
    const cost::Degrees& d = part.strategy.degrees;
    const std::int64_t each = part.samples / d.dp;
    const std::int64_t more = part.samples % d.dp;  // replicas with one sample more, in front of the others
    for (int i = 0; i < d.gpus(); ++i) {
      const auto [tp, cp, dp, etp, ep, edp] = expected({d.tp, d.cp, d.dp}, i);
      const std::int64_t first = tokens * cp / d.cp;
      const std::int64_t length = tokens * (cp + 1) / d.cp - first;
      const std::int64_t sample = before + each * dp + std::min<std::int64_t>(dp, more);
      shards[part.first_rank + i] = {sample, sample + each + (dp < more ? 1 : 0), first + length * tp / d.tp,
                                     first + length * (tp + 1) / d.tp};
    }
    before += part.samples;
  }
  return shards;
}

/// One side of a boundary: every cell of every rank's shard in exactly one transfer.
class BoundarySide {
 public:
  BoundarySide(const plan::Boundary& boundary, bool receives, std::map<int, Area> shards, Collected& findings)
      : where_("boundary " + std::to_string(boundary.from) + "->" + std::to_string(boundary.to)),
        verb_(receives ? "receives" : "sends"),
        shards_(std::move(shards)),
        findings_(findings) {
    for (const plan::Transfer& t : boundary.transfers) {
      take(receives ? t.dst : t.src, {t.sample_first, t.sample_last, t.seq_first, t.seq_last});
    }
  }

  void judge() {
    for (const auto& [rank, shard] : shards_) {
      const std::vector<Area>& pieces = pieces_[rank];
      long double covered = 0;
      bool twice = false;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        covered += cells(pieces[i]);
        for (std::size_t j = 0; j < i && !twice; ++j) twice = pieces[i].meets(pieces[j]);
      }
      if (twice) {
        findings_.add("transfer-duplicate", where_, at_rank(rank) + " " + verb_ + " something twice");
      } else if (covered != cells(shard)) {
        findings_.add("transfer-missing", where_,
                      at_rank(rank) + " " + verb_ + " only a part of samples [" + std::to_string(shard.sample_first) +
                          ", " + std::to_string(shard.sample_last) + "), positions [" + std::to_string(shard.first) +
                          ", " + std::to_string(shard.last) + ")");
      }
    }
  }

 private:
  static long double cells(const Area& area) {
    return static_cast<long double>(area.sample_last - area.sample_first) *
           static_cast<long double>(area.last - area.first);
  }
  void take(int rank, const Area& area) {
    const auto shard = shards_.find(rank);
    if (shard == shards_.end() || !shard->second.holds(area) || cells(area) <= 0) {
      findings_.add("transfer-misdirected", where_, at_rank(rank) + " " + verb_ + " what it does not work on");
    } else {
      pieces_[rank].push_back(area);
    }
  }

  std::string where_;
  std::string verb_;
  std::map<int, Area> shards_;
  std::map<int, std::vector<Area>> pieces_;
  Collected& findings_;
};

void find_transfers(const LaunchPlan& plan, int from, int to, Collected& findings) {
  std::vector<const plan::Boundary*> found;
  for (const plan::Boundary& boundary : plan.boundaries) {
    if (boundary.from == from && boundary.to == to) found.push_back(&boundary);
  }
  if (found.size() != 1) {
    findings.add("transfer-missing", "boundary " + std::to_string(from) + "->" + std::to_string(to),
                 found.empty() ? "is not listed" : "is listed more than once");
    return;
  }
  const std::int64_t tokens = plan.pipelined().block(plan.stage(from).first_cut() - 1).tokens;
  BoundarySide(*found.front(), false, shards(plan.stage(from), tokens), findings).judge();
  BoundarySide(*found.front(), true, shards(plan.stage(to), tokens), findings).judge();
}

/// Colocated encoders: lanes are made of the ranks of one part each, and several stages take their turns in phases.
void find_lanes(const LaunchPlan& plan, Collected& findings) {
  for (const plan::Stage& stage : plan.stages) {
    if (stage.parts.size() > 1) findings.add("encoder-lanes", at_stage(stage.id), "is mixed, and has encoders");
    for (const plan::ColocatedEncoders::Encoder& encoder : plan.colocated->encoders) {
      const std::int64_t gpus = stage.parts.front().strategy.degrees.gpus();
      if (encoder.layout.tp > 0 && gpus % encoder.layout.tp == 0) continue;
      findings.add("encoder-lanes", at_stage(stage.id),
                   std::to_string(gpus) + " ranks are no lanes of " + std::to_string(encoder.layout.tp) +
                       " for encoder " + encoder.module);
    }
  }
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    if (!plan.colocated->each_microbatch() || pipeline.stages.size() == 1) continue;
    findings.add("encoder-turns", "pipeline " + std::to_string(pipeline.id),
                 "has several stages, whose encoders cannot have a turn for each microbatch");
  }
}

}  // namespace

std::vector<Finding> structure_findings(const LaunchPlan& plan) {
  Collected findings;
  find_missing_samples(plan, findings);
  find_shared_ranks(plan, findings);
  if (plan.colocated) find_lanes(plan, findings);
  for (const plan::Stage& stage : plan.stages) {
    find_degrees(plan, stage, findings);
    for (std::size_t p = 0; p < stage.parts.size(); ++p) find_swapped_ranks(plan, stage, p, findings);
  }
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    find_layer_range(plan, pipeline, findings);
    const std::size_t stages = pipeline.stages.size();
    for (std::size_t s = 0; s + 1 < stages + (plan.is_interleaved() ? 1 : 0); ++s) {
      find_transfers(plan, pipeline.stages[s], pipeline.stages[(s + 1) % stages], findings);
    }
  }
  return std::move(findings).take();
}

}  // namespace tangram::execute
