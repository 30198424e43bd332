// What encoders and language model handed to each other, against one process, sample by sample.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "compare.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

/// By sample, of all positions: what one process has.
using Whole = std::map<std::int64_t, const Matrix*>;

double largest_of(const Matrix& matrix) {
  double largest = 0;
  for (const double value : matrix.values()) largest = std::max(largest, std::abs(value));
  return largest;
}

bool equal_rows(const Matrix& rows, const Range& positions, const Matrix& whole) {
  const double tolerance = kTolerance * largest_of(whole);
  for (int p = positions.first; p < positions.last; ++p) {
    for (int j = 0; j < whole.columns(); ++j) {
      if (!(std::abs(rows.at(p - positions.first, j) - whole.at(p, j)) <= tolerance)) return false;
    }
  }
  return true;
}

/// What a rank has of a sample, of one encoder.
struct HandedOver {
  const JobEncoder& encoder;
  int rank = 0;  ///< of the plan
  std::int64_t sample = 0;
  Range positions;
  const Matrix& rows;
};

/// Empty: it is what one process has.
std::vector<Finding> judged(const HandedOver& had, const Whole& reference, bool gradient) {
  if (equal_rows(had.rows, had.positions, *reference.at(had.sample))) return {};
  const auto of_other = std::ranges::find_if(reference, [&](const auto& entry) {
    return entry.first != had.sample && equal_rows(had.rows, had.positions, *entry.second);
  });
  const std::string what = gradient ? "gradient of what it made of" : "embeddings of";
  const std::string where = "encoder " + had.encoder.name;
  const std::string code = gradient ? "encoder-gradient" : "encoder-embedding";
  if (of_other != reference.end()) {
    return {
        {code + "-misplaced", where,
         fmt::format("the {} sample {} on rank {} is that of sample {}", what, had.sample, had.rank, of_other->first)}};
  }
  return {{code + "-differs", where,
           fmt::format("the {} sample {} on rank {} is not what one process has", what, had.sample, had.rank)}};
}

const RankProgram& only_rank(const Run& reference) { return *reference.ranks.front(); }

/// The first that is found: one mistake shows at every sample.
std::vector<Finding> embedding_findings(const Job& job, const Run& run, const Run& reference) {
  std::vector<Whole> whole(job.encoders.size());
  for (const auto& [key, rows] : only_rank(reference).embeddings()) at(whole, key.first)[key.second] = &rows;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const JobRank& rank = job.ranks[r];
    const Range positions = shard_range(job.model.positions, job.part_of(rank).degrees, rank.tp, rank.cp);
    for (const auto& [key, rows] : run.ranks[r]->embeddings()) {
      const HandedOver had{at(job.encoders, key.first), rank.number, key.second, positions, rows};
      if (auto findings = judged(had, at(whole, key.first), false); !findings.empty()) return findings;
    }
  }
  return {};
}

std::vector<Finding> gradient_findings(const Job& job, const Run& run, const Run& reference) {
  for (std::size_t e = 0; e < job.encoders.size(); ++e) {
    Whole whole;
    for (const auto& [sample, rows] : only_rank(reference).encoders()[e].returned()) whole[sample] = &rows;
    for (std::size_t r = 0; r < run.ranks.size(); ++r) {
      const EncoderProgram& encoder = run.ranks[r]->encoders()[e];
      for (const auto& [sample, rows] : encoder.returned()) {
        const HandedOver had{job.encoders[e], job.ranks[r].number, sample, encoder.positions(), rows};
        if (auto findings = judged(had, whole, true); !findings.empty()) return findings;
      }
    }
  }
  return {};
}

std::vector<Finding> missing_samples(const Job& job, const Run& run) {
  std::int64_t judged = 0;
  for (const auto& rank : run.ranks) judged += rank->samples_judged();
  if (judged == job.samples) return {};
  return {{"microbatch-missing", "plan",
           fmt::format("the loss is that of {} samples, the batch has {}", judged, job.samples)}};
}

}  // namespace

std::vector<Finding> handover_findings(const Job& job, const Run& run, const Run& reference) {
  if (job.encoders.empty()) return {};
  auto findings = missing_samples(job, run);
  if (findings.empty()) findings = embedding_findings(job, run, reference);
  if (findings.empty()) findings = gradient_findings(job, run, reference);
  return findings;
}

}  // namespace tangram::execute
