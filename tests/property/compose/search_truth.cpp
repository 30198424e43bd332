#include "search_truth.hpp"

#include <algorithm>

#include "brute_force.hpp"
#include "closed_form.hpp"

namespace tangram::tests {

namespace {

using cluster::IslandClass;
using cluster::IslandLevel;
using cluster::Link;
using Part = SearchTruth::Part;
using Parts = SearchTruth::Parts;

bool is_power_of_two(std::int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

const IslandClass& class_of(const IslandLevel& level, const Part& part) {
  return level.classes[static_cast<std::size_t>(part.island_class)];
}

// Inside a member: powers of two that divide it. Inside an island: powers of two of members, which divide the island
// where there are several. Beyond: powers of two of islands, and all of the class.
bool is_shape(const IslandClass& c, int gpus) {
  if (gpus < c.gpus_per_member) return is_power_of_two(gpus) && c.gpus_per_member % gpus == 0;
  if (gpus % c.gpus_per_member != 0) return false;
  const int members = gpus / c.gpus_per_member;
  if (members < c.members_per_island) {
    return is_power_of_two(members) && (c.islands.size() == 1 || c.members_per_island % members == 0);
  }
  if (members % c.members_per_island != 0) return false;
  return is_power_of_two(members / c.members_per_island) || members == c.member_count();
}

int members(const IslandLevel& level, const Part& part) {
  return std::max(1, part.gpus / class_of(level, part).gpus_per_member);
}

Link slower(const Link& a, const Link& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency)};
}

Link link(const IslandLevel& level, const Part& a, const Part& b) {
  const IslandClass& from = class_of(level, a);
  const IslandClass& to = class_of(level, b);
  Link result = level.link(a.island_class, b.island_class);
  if (a.island_class == b.island_class) {
    if (from.member_count() == 1) {
      // Both live in the one member; its links are per GPU, and the smaller side has the fewer.
      result = from.inside_member;
      result.bandwidth = BytesPerSecond(result.bandwidth.value() * std::min(a.gpus, b.gpus));
      return result;
    }
    result = from.islands.size() == 1 ? from.between_members : from.between_islands;
  }
  double share = 1;
  if (a.gpus < from.gpus_per_member) share = std::min(share, static_cast<double>(a.gpus) / from.gpus_per_member);
  if (b.gpus < to.gpus_per_member) share = std::min(share, static_cast<double>(b.gpus) / to.gpus_per_member);
  result.bandwidth = BytesPerSecond(result.bandwidth.value() * share);
  if (a.island_class != b.island_class || a.gpus > from.gpus_per_member - b.gpus) return result;
  // There is room for both in one member.
  Link inside = from.inside_member;
  inside.bandwidth = BytesPerSecond(inside.bandwidth.value() * std::min(a.gpus, b.gpus));
  return slower(result, inside);
}

bool better(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) { return a && (!b || *a < *b); }

}  // namespace

std::vector<parallelizer::PartialPlan> SearchTruth::plans(std::size_t at, const Part& part, int first, int last) const {
  const cluster::DeviceShape shape = cluster::make_shape(class_of(level(at), part), part.gpus);
  return job_.parallelizer.plans(model::signature(model_, first, last), shape, part.samples);
}

// Fastest time of any block between the first and the last one, or of any block where there is none between.
std::int64_t SearchTruth::one_block(std::size_t at, const Part& part) const {
  const int blocks = model_.block_count();
  const int from = blocks > 2 ? 1 : 0;
  const int to = blocks > 2 ? blocks - 1 : blocks;
  std::int64_t fastest = 0;
  for (int i = from; i < to; ++i) {
    for (const parallelizer::PartialPlan& plan : plans(at, part, i, i + 1)) {
      const std::int64_t time = (plan.cost.forward + plan.cost.backward).value();
      if (fastest == 0 || time < fastest) fastest = time;
    }
  }
  return fastest;
}

// Samples in proportion to speed, rounded half up to eighths of the microbatch.
std::optional<Parts> SearchTruth::mixed(std::size_t at, Part a, Part b) const {
  const std::int64_t time_a = one_block(at, a);
  const std::int64_t time_b = one_block(at, b);
  if (time_a == 0 || time_b == 0 || time_a > 8 * time_b || time_b > 8 * time_a) return std::nullopt;
  const int whole = a.samples;
  const int step = std::max(1, whole / 8);
  const std::int64_t sum = (time_a + time_b) * step;
  a.samples = static_cast<int>((2 * time_b * whole + sum) / (2 * sum)) * step;
  b.samples = whole - a.samples;
  if (a.samples <= 0 || b.samples <= 0) return std::nullopt;
  return Parts{a, b};
}

std::vector<Parts> SearchTruth::options(std::size_t at, int replicas, std::int64_t microbatch,
                                        const compose::SearchOptions& options) const {
  std::vector<Parts> result;
  const int classes = static_cast<int>(level(at).classes.size());
  for (int k = 0; k < classes; ++k) {
    const IslandClass& c = level(at).classes[static_cast<std::size_t>(k)];
    for (int gpus = 1; gpus <= c.gpu_count() / replicas; ++gpus) {
      if (is_shape(c, gpus)) result.push_back({{k, gpus, static_cast<int>(microbatch)}});
    }
  }
  if (!model_.job.allow.mixed_stages || options.max_parts < 2) return result;
  const std::vector<Parts> singles = result;
  for (const Parts& a : singles) {
    for (const Parts& b : singles) {
      if (a.front().island_class >= b.front().island_class) continue;
      if (const auto both = mixed(at, a.front(), b.front())) result.push_back(*both);
    }
  }
  return result;
}

// Replicas and parts of a mixed stage all hold the slice: each of them gets every other one's gradients. The other end
// of a tied embedding may be anywhere.
Nanoseconds SearchTruth::crossing(std::size_t at, int replicas, const Parts& parts, int first, int last,
                                  Bytes volume) const {
  const IslandLevel& here = level(at);
  int narrowest = members(here, parts.front());
  for (const Part& part : parts) narrowest = std::min(narrowest, members(here, part));
  Nanoseconds total{0};
  const int holders = replicas * static_cast<int>(parts.size());
  if (holders > 1) {
    Link meeting = link(here, parts.front(), parts.back());
    if (replicas > 1) {
      for (const Part& part : parts) meeting = slower(meeting, link(here, part, part));
    }
    total += cost::replica_sync(volume, holders, meeting, narrowest);
  }
  const bool first_end = first == 0;
  const bool last_end = last == model_.block_count();
  if (model_.tied_embeddings && first_end != last_end) {
    Link worst = link(here, parts.front(), parts.front());
    for (const Part& part : parts) {
      worst = slower(worst, link(here, part, part));
      for (int k = 0; k < static_cast<int>(here.classes.size()); ++k) {
        const Part other{k, here.classes[static_cast<std::size_t>(k)].gpus_per_member, 0};
        if (k != part.island_class) worst = slower(worst, link(here, part, other));
      }
    }
    const Bytes table(model_.vocabulary * model_.hidden * model_.job.gradient_bytes);
    total += cost::replica_sync(table, 2, worst, narrowest);
  }
  return total;
}

compose::Candidate SearchTruth::alone(std::size_t at, int replicas, const Parts& parts, int first, int last,
                                      const parallelizer::PartialPlan& plan) const {
  const Nanoseconds sync =
      plan.cost.gradient_sync + crossing(at, replicas, parts, first, last, plan.cost.gradient_volume);
  const Nanoseconds exposed = cost::exposed_sync(sync, plan.cost.backward);
  compose::Candidate stage;
  stage.F = plan.cost.forward.value();
  stage.T = stage.F + plan.cost.backward.value();
  stage.A = stage.T + exposed.value();
  stage.o = plan.cost.optimizer_step.value();
  stage.n_max = plan.n_max;
  return stage;
}

// Every plan, and for a mixed stage every pair of plans; nothing is pruned.
std::vector<compose::Candidate> SearchTruth::stages(std::size_t at, int replicas, const Parts& parts, int first,
                                                    int last) const {
  std::vector<compose::Candidate> result;
  for (const Part& part : parts) {
    std::vector<compose::Candidate> own;
    for (const parallelizer::PartialPlan& plan : plans(at, part, first, last)) {
      own.push_back(alone(at, replicas, parts, first, last, plan));
    }
    if (&part == &parts.front()) {
      result = own;
      continue;
    }
    std::vector<compose::Candidate> together;
    for (const compose::Candidate& x : result) {
      for (const compose::Candidate& y : own) {
        together.push_back({std::max(x.T, y.T), std::max(x.F, y.F), std::max(x.A, y.A), std::max(x.o, y.o),
                            std::min(x.n_max, y.n_max), -1});
      }
    }
    result = together;
  }
  return result;
}

// Every part may have to send to every other: the dearest pair counts.
compose::Price SearchTruth::boundary(std::size_t at, const Parts& from, const Parts& to, int cut,
                                     std::int64_t microbatch) const {
  const Bytes bytes(model::cut_bytes(model_, cut) * microbatch);
  compose::Price dearest;
  for (const Part& a : from) {
    for (const Part& b : to) {
      const cost::BoundaryCost cost = cost::boundary_cost(bytes, link(level(at), a, b), members(level(at), a), a.gpus,
                                                          members(level(at), b), b.gpus);
      if (std::pair(cost.latency.value(), cost.occupancy.value()) > std::pair(dearest.latency, dearest.occupancy)) {
        dearest = {cost.latency.value(), cost.occupancy.value()};
      }
    }
  }
  return dearest;
}

// Everything of one (level, R, b), written down as a program for the enumeration of brute_force.cpp.
std::optional<std::int64_t> SearchTruth::best_of(std::size_t at, int replicas, std::int64_t microbatch,
                                                 const compose::SearchOptions& limits, std::int64_t below) const {
  const std::vector<Parts> all = options(at, replicas, microbatch, limits);
  compose::Program program;
  program.blocks = model_.block_count();
  program.microbatches = model_.job.global_batch / replicas / microbatch;
  for (const IslandClass& c : level(at).classes) program.inventory.push_back(c.gpu_count() / replicas);
  if (limits.spend) {
    const bool counts_gpus = limits.spend->currency == compose::Currency::kGpus;
    for (const IslandClass& c : level(at).classes) {
      program.unit_spend.push_back(
          counts_gpus ? 1 : static_cast<std::int64_t>(c.device.price_per_hour.value() * 1e6 + 0.5));
    }
    program.most_spend = limits.spend->most / replicas;
  }
  const auto stride = static_cast<std::size_t>(program.blocks) + 1;
  program.signature.assign(stride * stride, -1);
  std::vector<std::pair<int, int>> slices;
  for (int first = 0; first < program.blocks; ++first) {
    for (int last = first + 1; last <= program.blocks; ++last) {
      const auto cell = static_cast<std::size_t>(first) * stride + static_cast<std::size_t>(last);
      program.signature[cell] = static_cast<int>(slices.size());
      slices.emplace_back(first, last);
    }
  }
  program.signatures = static_cast<int>(slices.size());
  for (const Parts& parts : all) {
    compose::Option option;
    option.key = program.keys++;
    for (const Part& part : parts) option.uses.push_back({part.island_class, part.gpus});
    program.options.push_back(option);
    for (const auto& [first, last] : slices) {
      const bool allowed = model_.job.allow.pipeline || last - first == program.blocks;
      program.frontiers.push_back(allowed ? stages(at, replicas, parts, first, last)
                                          : std::vector<compose::Candidate>{});
    }
  }
  program.cut_kinds = program.blocks + 1;
  for (int cut = 0; cut <= program.blocks; ++cut) {
    program.cut_kind.push_back(cut);
    for (const Parts& from : all) {
      for (const Parts& to : all) {
        const bool inside = cut > 0 && cut < program.blocks;
        program.prices.push_back(inside ? boundary(at, from, to, cut, microbatch) : compose::Price{});
      }
    }
  }
  return brute_force(program, below).time;
}

std::optional<std::int64_t> SearchTruth::best(const compose::SearchOptions& limits) const {
  std::optional<std::int64_t> result;
  const std::int64_t batch = model_.job.global_batch;
  for (std::size_t at = 0; at < job_.hierarchy.levels.size(); ++at) {
    for (int replicas = 1; replicas <= std::min<std::int64_t>(batch, limits.max_replicas); replicas *= 2) {
      if (batch % replicas != 0 || (replicas > 1 && !model_.job.allow.replicas)) continue;
      const std::int64_t own = batch / replicas;
      for (std::int64_t b = 1; b <= own; ++b) {
        if (own % b != 0 || (model_.job.microbatch > 0 && b != model_.job.microbatch)) continue;
        const bool listed = is_power_of_two(b) || (b % 3 == 0 && is_power_of_two(b / 3)) || b == own;
        if (!listed && model_.job.microbatch == 0) continue;
        const auto time = best_of(at, replicas, b, limits, result.value_or(INT64_MAX));
        if (better(time, result)) result = time;
      }
    }
  }
  return result;
}

std::optional<std::int64_t> SearchTruth::price(const compose::Composition& composition) const {
  const auto at = static_cast<std::size_t>(composition.level);
  const IslandLevel& here = level(at);
  if (composition.replicas * composition.microbatch * composition.microbatches != model_.job.global_batch) return {};
  std::vector<int> used(here.classes.size(), 0);
  std::vector<compose::Candidate> chain;
  std::vector<compose::Price> hops;
  Parts previous;
  int next_block = 0;
  for (const compose::StageChoice& stage : composition.stages) {
    if (stage.first != next_block || stage.last <= stage.first) return {};
    next_block = stage.last;
    Parts parts;
    std::int64_t samples = 0;
    for (const compose::PartChoice& part : stage.parts) {
      parts.push_back({part.island_class, part.gpus, part.samples});
      samples += part.samples;
      used[static_cast<std::size_t>(part.island_class)] += part.gpus * composition.replicas;
      if (!is_shape(class_of(here, parts.back()), part.gpus)) return {};
    }
    if (samples != composition.microbatch) return {};
    compose::Candidate together{0, 0, 0, 0, INT64_MAX, -1};
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const auto offered = plans(at, parts[p], stage.first, stage.last);
      const auto same = std::find_if(offered.begin(), offered.end(), [&](const parallelizer::PartialPlan& plan) {
        return plan.opaque == stage.parts[p].plan.opaque && plan.cost == stage.parts[p].plan.cost &&
               plan.n_max == stage.parts[p].plan.n_max;
      });
      if (same == offered.end()) return {};
      const compose::Candidate own = alone(at, composition.replicas, parts, stage.first, stage.last, *same);
      together = {std::max(together.T, own.T), std::max(together.F, own.F),         std::max(together.A, own.A),
                  std::max(together.o, own.o), std::min(together.n_max, own.n_max), -1};
    }
    if (!chain.empty()) hops.push_back(boundary(at, previous, parts, stage.first, composition.microbatch));
    chain.push_back(together);
    previous = parts;
  }
  if (next_block != model_.block_count()) return {};
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k] > here.classes[k].gpu_count()) return {};
  }
  return closed_form(chain, hops, composition.microbatches);
}

}  // namespace tangram::tests
