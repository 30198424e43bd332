#include "handover.hpp"

#include <algorithm>

#include "place.hpp"

namespace tangram::execute {

Handover::Handover(const Job& job, const JobPipeline& pipeline, int tp) : job_(job), pipeline_(pipeline) {
  for (const JobStage& stage : pipeline.stages) {
    for (const JobPart& part : stage.parts) {
      for (int i = 0; i + tp <= part.degrees.gpus(); i += tp) {
        std::vector<int>& lane = lanes_.emplace_back();
        for (int j = 0; j < tp; ++j) lane.push_back(part.first_rank + i + j);
      }
    }
  }
}

int Handover::lane_of(int rank) const {
  const auto has_it = [&](const std::vector<int>& lane) { return lane.front() <= rank && rank <= lane.back(); };
  const auto found = std::ranges::find_if(lanes_, has_it);
  return found == lanes_.end() ? -1 : static_cast<int>(found - lanes_.begin());
}

SampleRange Handover::round(std::int64_t microbatch) const {
  const std::int64_t first = pipeline_.first_sample;
  if (!job_.three_phases) {
    const std::int64_t begin = first + microbatch * pipeline_.microbatch;
    return {begin, begin + pipeline_.samples_of(microbatch)};
  }
  return {first, first + (pipeline_.microbatches - 1) * pipeline_.microbatch + pipeline_.last_microbatch};
}

SampleRange Handover::share(const SampleRange& round, int lane) const {
  const Range own = piece(static_cast<int>(round.last - round.first), lane, lanes());
  return {round.first + own.first, round.first + own.last};
}

std::vector<Piece> Handover::makers(std::int64_t sample) const {
  const SampleRange all = round(microbatch_of(sample));
  int lane = 0;
  while (!share(all, lane).holds(sample)) ++lane;
  const std::vector<int>& ranks = ranks_of(lane);
  std::vector<Piece> makers;
  const auto tp = static_cast<int>(ranks.size());
  for (int j = 0; j < tp; ++j) makers.push_back({at(ranks, j), piece(job_.model.positions, j, tp)});
  return makers;
}

std::vector<Piece> Handover::readers(std::int64_t sample) const {
  const auto place = static_cast<int>((sample - pipeline_.first_sample) % pipeline_.microbatch);
  std::vector<Piece> readers;
  for (const JobPart& part : pipeline_.stages.front().parts) {
    for (int i = 0; i < part.degrees.gpus(); ++i) {
      const JobRank& rank = at(job_.ranks, part.first_rank + i);
      if (!at(part.lanes, rank.dp).holds({place, place + 1})) continue;
      readers.push_back({part.first_rank + i, shard_range(job_.model.positions, part.degrees, rank.tp, rank.cp)});
    }
  }
  return readers;
}

Range common(const Range& a, const Range& b) {
  const int first = std::max(a.first, b.first);
  return {first, std::max(first, std::min(a.last, b.last))};
}

Matrix rows_of(const Matrix& shard, int index, const Range& held, const Range& positions) {
  Matrix rows(positions.length(), shard.columns());
  for (int p = positions.first; p < positions.last; ++p) {
    std::copy_n(shard.row(index * held.length() + p - held.first), shard.columns(), rows.row(p - positions.first));
  }
  return rows;
}

void put_rows(Matrix& shard, int index, const Range& held, const Range& positions, const Matrix& rows) {
  for (int p = positions.first; p < positions.last; ++p) {
    std::copy_n(rows.row(p - positions.first), shard.columns(), shard.row(index * held.length() + p - held.first));
  }
}

}  // namespace tangram::execute
