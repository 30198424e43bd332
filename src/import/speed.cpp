#include "speed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tangram/base/at.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::importing {

namespace {

/// `samples` in proportion to the speeds, by largest remainders; earlier ones first where they are alike.
std::vector<std::int64_t> shares(std::int64_t samples, const std::vector<double>& speeds) {
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<std::int64_t> result;
  std::vector<double> remainders;
  for (const double speed : speeds) {
    const double exact = static_cast<double>(samples) * speed / all;
    result.push_back(static_cast<std::int64_t>(exact));
    remainders.push_back(exact - static_cast<double>(result.back()));
  }
  std::vector<std::size_t> order(speeds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  std::int64_t left = samples - std::accumulate(result.begin(), result.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++result[order[i]];
  return result;
}

/// Samples per second of one replica on a class of islands.
class Speeds {
 public:
  Speeds(const JobStage& stage, const cluster::IslandLevel& level, const model::Model& model,
         const cost::ProfileSet* profiles)
      : stage_(stage), level_(level), model_(model), profiles_(profiles) {}

  Expected<double> of(int island_class, const Replica& replica) {
    const auto known = known_.find({island_class, replica.tp});
    if (known != known_.end()) return known->second;
    const cluster::IslandClass& island = tangram::at(level_.classes, island_class);
    const auto gpus = static_cast<int>(replica.gpus.size());
    const cluster::DeviceShape shape{island.device, 1, gpus, island.inside_member, island.between_members, {}};
    cost::Degrees degrees = stage_.common;
    degrees.tp = replica.tp;
    degrees.dp_replicate = 1;
    const auto slice = model::signature(model_, static_cast<int>(stage_.first), static_cast<int>(stage_.last));
    const auto units = cost::unit_costs_of(model_, slice, shape, degrees, 1, profiles_);
    if (!units) return fail(at(stage_.place, "unsupported-degrees", units.error().front().message));
    const cost::StageCost cost = cost::stage_cost(*units, slice, stage_.policy);
    const double speed = 1 / static_cast<double>((cost.forward + cost.backward).value());
    known_.emplace(std::pair(island_class, replica.tp), speed);
    return speed;
  }

 private:
  const JobStage& stage_;
  const cluster::IslandLevel& level_;
  const model::Model& model_;
  const cost::ProfileSet* profiles_;
  std::map<std::pair<int, int>, double> known_;
};

void drop_idle(JobStage& stage, std::vector<ReplicaGpus>& gpus) {
  std::vector<Replica> replicas;
  std::vector<ReplicaGpus> kept;
  for (std::size_t r = 0; r < stage.replicas.size(); ++r) {
    if (stage.replicas[r].samples == 0) continue;
    replicas.push_back(std::move(stage.replicas[r]));
    kept.push_back(std::move(gpus[r]));
  }
  stage.replicas = std::move(replicas);
  gpus = std::move(kept);
}

}  // namespace

Diagnostics share_by_speed(Job& job, RankAssignment& assignment, const cluster::IslandLevel& level,
                           const model::Model& model, const cost::ProfileSet* profiles) {
  const plan::GpuPlaces places(level);
  for (std::size_t p = 0; p < job.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < job.pipelines[p].stages.size(); ++s) {
      JobStage& stage = job.pipelines[p].stages[s];
      if (!stage.by_speed) continue;
      Speeds speeds(stage, level, model, profiles);
      std::vector<double> of_replicas;
      for (std::size_t r = 0; r < stage.replicas.size(); ++r) {
        const auto speed = speeds.of(places.of(assignment[p][s][r].front()).island_class, stage.replicas[r]);
        if (!speed) return speed.error();
        of_replicas.push_back(*speed);
      }
      const auto samples = shares(job.pipelines[p].microbatch, of_replicas);
      for (std::size_t r = 0; r < samples.size(); ++r) stage.replicas[r].samples = samples[r];
      drop_idle(stage, assignment[p][s]);
    }
  }
  return {};
}

}  // namespace tangram::importing
