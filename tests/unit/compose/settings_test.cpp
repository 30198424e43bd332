// What programs are searched, in what order, and which are one step from each other.
#include "settings.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

// Replicas and samples of a microbatch, of the settings beside one.
using Steps = std::vector<std::pair<int, std::int64_t>>;

Steps steps_from(const model::Model& model, const cluster::IslandHierarchy& hierarchy, const Setting& setting) {
  Steps steps;
  for (const Setting& other : settings_beside(model, hierarchy, {}, setting)) {
    CHECK(other.level == setting.level);
    CHECK(other.chunks == setting.chunks);
    CHECK(other.microbatches * other.microbatch * other.replicas >= model.job.global_batch);
    steps.emplace_back(other.replicas, other.microbatch);
  }
  return steps;
}

}  // namespace

TEST_CASE("settings are of every level and replica count, sizes of about 64 microbatches first") {
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(2, 1, 1), class_of(1, 1, 1)}), level_of({class_of(2, 1, 1)})};
  model::Model model = model_of(2);
  model.job.global_batch = 256;
  SearchOptions options;
  options.max_replicas = 2;
  const std::vector<SizeSettings> sizes = settings_by_size(model, hierarchy, options);
  std::vector<std::int64_t> order;
  for (const SizeSettings& size : sizes) order.push_back(size.microbatch);
  CHECK(order ==
        std::vector<std::int64_t>{4, 2, 8, 1, 16, 32, 64, 128, 256});  // 64 microbatches, 128 and 32, 256 and 16 ...
  const auto settings_of = [&](std::size_t at) {
    std::vector<std::vector<std::int64_t>> listed;
    for (const Setting& s : sizes[at].settings) listed.push_back({s.level, s.replicas, s.microbatch, s.microbatches});
    return listed;
  };
  CHECK(settings_of(0) ==
        std::vector<std::vector<std::int64_t>>{{0, 1, 4, 64}, {0, 2, 4, 32}, {1, 1, 4, 64}, {1, 2, 4, 32}});
  CHECK(settings_of(8) == std::vector<std::vector<std::int64_t>>{{0, 1, 256, 1}, {1, 1, 256, 1}});  // R = 2: 128 each
  model.tied_embeddings = true;  // pipelines on all classes, on either of the first level's
  CHECK(settings_by_size(model, hierarchy, options)[8].settings.size() == 4);
}

TEST_CASE("all replicas may be in one member of a small fleet") {
  // Two members of 4 GPUs: four replicas have room in one, eight have not. A single pipeline needs no such setting.
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(4, 2, 1)})};
  const model::Model model = model_of(2);
  std::vector<int> together;
  for (const SizeSettings& size : settings_by_size(model, hierarchy, {})) {
    if (size.microbatch != 1) continue;
    for (const Setting& setting : size.settings) {
      if (!setting.reach.with_replicas.empty()) together.push_back(setting.replicas);
    }
  }
  CHECK(together == std::vector<int>{2, 3, 4});
}

TEST_CASE("members that hold what all replicas have of their classes may be of any set of these") {
  // A class of one member has no other, and the members of the last have too few GPUs for two replicas.
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(2, 2, 1), class_of(4, 1, 1), class_of(2, 2, 1), class_of(1, 2, 1)})};
  const std::vector<std::vector<int>> sets{{0}, {2}, {0, 2}};
  std::vector<std::vector<int>> found;
  for (const SizeSettings& size : settings_by_size(model_of(2), hierarchy, {})) {
    if (size.microbatch != 1) continue;
    for (const Setting& setting : size.settings) {
      if (setting.replicas == 2 && !setting.reach.with_replicas.empty()) found.push_back(setting.reach.with_replicas);
    }
  }
  std::ranges::sort(found,
                    [&](const auto& a, const auto& b) { return std::pair(a.size(), a) < std::pair(b.size(), b); });
  CHECK(found == sets);
}

TEST_CASE("beside a setting are the next microbatches and the next numbers of pipelines") {
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(4, 1, 1), class_of(4, 1, 1)})};
  model::Model model = model_of(2);
  model.job.global_batch = 16;
  const Reach all{{0, 1}};
  // As many samples, and as many more as the stages of one of two pipelines have more GPUs. Three and two do not divide
  // each other.
  CHECK(steps_from(model, hierarchy, {0, 2, 2, 4, all}) == Steps{{2, 1}, {2, 3}, {1, 2}, {1, 4}, {4, 2}, {4, 1}});
  CHECK(steps_from(model, hierarchy, {0, 3, 3, 2, all}) == Steps{{3, 2}, {3, 6}, {1, 3}});
  // The smallest and the largest of them have fewer.
  CHECK(steps_from(model, hierarchy, {0, 1, 16, 1, all}) == Steps{{1, 8}, {2, 8}});
  CHECK(steps_from(model, hierarchy, {0, 4, 1, 4, all}) == Steps{{4, 2}, {2, 1}, {2, 2}});
  // Chunks take two microbatches, and four blocks.
  model = model_of(4);
  model.job.global_batch = 4;
  CHECK(steps_from(model, hierarchy, {0, 1, 2, 2, all, 2}) == Steps{{1, 1}, {2, 1}});
  model.job.microbatch = 2;
  CHECK(steps_from(model, hierarchy, {0, 1, 2, 2, all}) == Steps{{2, 2}});
  model.job.allow.replicas = false;
  CHECK(steps_from(model, hierarchy, {0, 1, 2, 2, all}).empty());
}

TEST_CASE("beside a setting pipelines lie in any way among the same classes") {
  // Two members of 4 GPUs, and another class.
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(4, 2, 1), class_of(2, 1, 1)})};
  model::Model model = model_of(2);
  model.job.global_batch = 1 << 10;
  const auto reaches_of_two = [&](const Reach& reach) {
    std::vector<Reach> reaches;
    for (const Setting& other : settings_beside(model, hierarchy, {}, {0, 1, 4, 256, reach})) {
      if (other.replicas == 2 && other.microbatch == 2) reaches.push_back(other.reach);
      if (other.replicas == 1) CHECK(other.reach == reach);
    }
    return reaches;
  };
  const Reach anywhere{{0, 1}};
  const Reach with_replicas{{0, 1}, false, {0}};
  CHECK(reaches_of_two(anywhere) == std::vector<Reach>{anywhere, with_replicas});
  // Two pipelines have a member each of the first class: a setting of their own is for ties of embeddings alone.
  CHECK(reaches_of_two({{0}, true}) == std::vector<Reach>{anywhere});
}
