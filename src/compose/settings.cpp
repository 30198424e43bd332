#include "settings.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "space.hpp"

namespace tangram::compose {

namespace {

// All classes at first. Others than single members matter to ties of embeddings alone.
std::vector<Reach> reaches_for(const model::Model& model, const cluster::IslandLevel& level, int replicas) {
  std::vector<Reach> reaches = reaches_of(level);
  if (!model.job.allow.pipeline) reaches.resize(1);
  if (model.tied_embeddings) return reaches;
  const auto is_of_use = [&](const Reach& reach) {
    const cluster::IslandClass& first = level.classes[static_cast<std::size_t>(reach.classes.front())];
    return reach.in_one_member && first.gpu_count() / replicas > first.gpus_per_member;
  };
  const auto rest = std::remove_if(reaches.begin() + 1, reaches.end(), std::not_fn(is_of_use));
  reaches.erase(rest, reaches.end());
  return reaches;
}

// Where a member holds what all pipelines have of its class, they reduce gradients inside it: any set of such classes,
// beside which others may be used. Ends of a tied embedding also meet inside a member that holds whole pipelines.
void add_members_of_all(const model::Model& model, const cluster::IslandLevel& level, int replicas,
                        std::vector<Reach>& reaches) {
  if (replicas == 1) return;
  std::vector<std::vector<int>> sets{{}};
  for (const cluster::IslandClass& c : level.classes) {
    if (c.member_count() == 1 || c.gpus_per_member < replicas) continue;
    if (model.tied_embeddings) reaches.push_back({{c.id}, /*in_one_member=*/true, /*with_replicas=*/{c.id}});
    for (std::size_t i = 0, known = sets.size(); i < known; ++i) {
      std::vector<int> larger = sets[i];
      larger.push_back(c.id);
      sets.push_back(std::move(larger));
    }
  }
  const std::vector<int> all = reaches.front().classes;
  for (std::vector<int>& set : std::span(sets).subspan(1)) reaches.push_back({all, false, std::move(set)});
}

std::vector<Reach> all_reaches(const model::Model& model, const cluster::IslandHierarchy& hierarchy, int level,
                               int replicas, const GpuTypes& types) {
  const cluster::IslandLevel& of = at(hierarchy.levels, level);
  std::vector<Reach> reaches = reaches_for(model, of, replicas);
  if (gpu_count(hierarchy.levels.front(), types) <= kSmallFleet) add_members_of_all(model, of, replicas, reaches);
  return reaches;
}

// Of all reaches and numbers of chunks.
void add_settings(const model::Model& model, const SearchOptions& options, const std::vector<Reach>& reaches,
                  Setting setting, std::vector<Setting>& settings) {
  for (const Reach& reach : reaches) {
    for (const int chunks : options.constraints.chunks) {
      if (!can_have_chunks(model, setting.microbatches, chunks)) continue;
      setting.reach = reach;
      setting.chunks = chunks;
      settings.push_back(setting);
    }
  }
}

}  // namespace

bool can_have_chunks(const model::Model& model, std::int64_t microbatches, int chunks) {
  return chunks == 1 || (model.block_count() >= 2 * chunks && microbatches > 1);
}

std::vector<SizeSettings> settings_by_size(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                           const SearchOptions& options) {
  const model::Job& job = model.job;
  const Splitting splitting = splitting_of(hierarchy, options);
  std::map<std::int64_t, std::vector<Setting>> by_size;
  for (std::size_t index = 0; index < hierarchy.levels.size(); ++index) {
    const auto level = static_cast<int>(index);
    for (const int replicas : replica_counts(job, hierarchy.levels[index], options.max_replicas, splitting)) {
      const std::vector<Reach> reaches = all_reaches(model, hierarchy, level, replicas, splitting.types);
      for (const std::int64_t b : microbatch_sizes(job, replicas, splitting)) {
        const Setting setting{level, replicas, b, microbatches_of(job, replicas, b), {}, 1};
        add_settings(model, options, reaches, setting, by_size[b]);
      }
    }
  }
  std::vector<SizeSettings> sizes;
  for (auto& [b, settings] : by_size) {
    if (!settings.empty()) sizes.push_back({b, std::move(settings)});
  }
  const auto oddity = [&](const SizeSettings& size) {
    const double microbatches = static_cast<double>(job.global_batch) / static_cast<double>(size.microbatch);
    return std::abs(std::log2(microbatches / options.tuning.programs.usual_microbatches));
  };
  std::ranges::stable_sort(sizes, {}, oddity);
  return sizes;
}

namespace {

// Of an ascending list, the last number before the setting's and the first one behind it that may take its place.
template <class Number, class MayReplace>
std::vector<Number> numbers_beside(const std::vector<Number>& listed, Number own, MayReplace&& may_replace) {
  std::vector<Number> beside;
  for (const Number number : listed) {
    if (number == own || !may_replace(number)) continue;
    if (number < own) {
      beside.assign(1, number);
    } else {
      beside.push_back(number);
      break;
    }
  }
  return beside;
}

// Over the same classes, where there are any.
std::vector<Reach> reaches_like(const Reach& own, std::vector<Reach> reaches) {
  const auto is_other = [&](const Reach& reach) { return reach.classes != own.classes; };
  if (std::ranges::all_of(reaches, is_other)) return {reaches.front()};
  std::erase_if(reaches, is_other);
  return reaches;
}

// As many samples as before, or as many more as stages get GPUs.
std::vector<std::int64_t> sizes_of_other_replicas(const Setting& setting, int replicas) {
  std::vector<std::int64_t> sizes{setting.microbatch};
  const std::int64_t samples = setting.microbatch * setting.replicas;
  if (samples % replicas == 0) sizes.push_back(samples / replicas);
  return sizes;
}

}  // namespace

std::vector<Setting> settings_beside(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                     const SearchOptions& options, const Setting& setting) {
  const model::Job& job = model.job;
  const Splitting splitting = splitting_of(hierarchy, options);
  const cluster::IslandLevel& level = at(hierarchy.levels, setting.level);
  std::vector<Setting> beside;
  const auto add = [&](int replicas, std::int64_t b, const Reach& reach) {
    const Setting other{setting.level, replicas, b, microbatches_of(job, replicas, b), reach, setting.chunks};
    if (can_have_chunks(model, other.microbatches, other.chunks)) beside.push_back(other);
  };
  const std::vector<std::int64_t> own_sizes = microbatch_sizes(job, setting.replicas, splitting);
  for (const std::int64_t b : numbers_beside(own_sizes, setting.microbatch, [](std::int64_t) { return true; })) {
    add(setting.replicas, b, setting.reach);
  }
  const auto divides = [&](int r) { return r % setting.replicas == 0 || setting.replicas % r == 0; };
  const std::vector<int> counts = replica_counts(job, level, options.max_replicas, splitting);
  for (const int replicas : numbers_beside(counts, setting.replicas, divides)) {
    const std::vector<std::int64_t> listed = microbatch_sizes(job, replicas, splitting);
    const auto reaches =
        reaches_like(setting.reach, all_reaches(model, hierarchy, setting.level, replicas, splitting.types));
    for (const std::int64_t b : sizes_of_other_replicas(setting, replicas)) {
      if (!std::ranges::binary_search(listed, b)) continue;
      for (const Reach& reach : reaches) add(replicas, b, reach);
    }
  }
  return beside;
}

}  // namespace tangram::compose
