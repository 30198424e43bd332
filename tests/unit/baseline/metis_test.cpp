// The layouts and the formula of Metis, against what the published program printed for its own sample profile: ten
// layers (embedding, eight blocks, head) on A100, sequences of 1,024, hidden size 4,096, vocabulary 51,200, batch 128.
#include "metis.hpp"

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::baseline;

namespace {

/// Profiled seconds and parameters, embedding, block, head; and what of forward and backward no layer has.
struct Row {
  int tp;
  std::int64_t samples;
  double embedding_ms, block_ms, head_ms, all_ms, optimizer_ms;
};

// SamsungLabs/Metis, profile_data_samples, DeviceType.A100: the rows that the printed plans need.
constexpr Row kRows[] = {{1, 1, 0.289, 29.508, 0.410, 292.80, 39.31},
                         {2, 1, 1.163, 16.838, 0.353, 167.60, 20.27},
                         {2, 4, 2.507, 63.252, 0.670, 611.70, 20.45},
                         {4, 1, 1.026, 10.217, 0.338, 99.92, 10.81},
                         {4, 4, 2.949, 35.824, 0.679, 335.29, 10.96}};
constexpr double kParameters[] = {393216000, 202383360, 393220096};
// Its bandwidths are GB/s of 1024^2 bytes a millisecond.
constexpr double kInside = 46.0 * 1024 * 1024 * 1000;

GridPoint point_of(const Row& row) {
  GridPoint point;
  double sum = 0;
  for (int u = 0; u < 10; ++u) {
    const int kind = u == 0 ? 0 : u == 9 ? 2 : 1;
    UnitProfile unit;
    unit.forward = (kind == 0 ? row.embedding_ms : kind == 1 ? row.block_ms : row.head_ms) * 1e-3;
    unit.parameters = kParameters[kind];
    sum += unit.forward;
    point.units.push_back(unit);
  }
  point.fixed = row.all_ms * 1e-3 - sum;
  point.optimizer = row.optimizer_ms * 1e-3;
  return point;
}

PlannerInput sample() {
  PlannerInput input;
  input.blocks = 8;
  input.batch = 128;
  input.parameter_bytes = 1;  // it moves as many bytes as there are values
  input.activation = 1024.0 * 4096;
  input.activation_last = 1024.0 * 51200;
  input.per_microbatch = 0.915e-3;
  for (const char* name : {"T4", "A100"}) {
    GpuKind kind;
    kind.name = name;
    kind.gpus = 8;
    kind.per_node = 4;
    kind.memory = 80e9;
    kind.inside = kInside;
    kind.outside = kInside / 5;
    input.kinds.push_back(kind);
  }
  for (int k = 0; k < 2; ++k) {
    for (const Row& row : kRows) input.grid.emplace(std::tuple(k, row.tp, row.samples), point_of(row));
  }
  return input;
}

MetisLayout layout_of(DeviceGroups groups, std::int64_t batches, int costed) {
  MetisLayout layout{{0, 1}, {}, std::move(groups), batches, costed};
  layout.row.assign(8, 0);
  layout.row.insert(layout.row.end(), 8, 1);
  return layout;
}

double milliseconds(const MetisLayout& layout, const std::vector<MetisStrategy>& strategies,
                    const std::vector<int>& cuts) {
  const PlannerInput input = sample();
  const Metis metis(input, Mode::kFaithful);
  // The printed file was made with a T4 profile that is a copy of the A100's, so that all stages are of one kind.
  auto stages = metis.stages(layout, strategies);
  return stages.empty() ? -1 : 1e3 * metis.cost(layout, stages, cuts);
}

/// GPT-Neo 2.7B on A100 and V100, one sample without tensor parallelism: embedding, sixteen pairs of blocks with global
/// and local attention, head.
PlannerInput neo() {
  constexpr double kMilliseconds[2][4] = {{0.068, 5.680, 5.073, 10.767}, {0.111, 14.369, 12.677, 24.794}};
  PlannerInput input;
  input.blocks = 32;
  input.batch = 1;
  for (int k = 0; k < 2; ++k) {
    GpuKind kind;
    kind.memory = 16e9;
    input.kinds.push_back(kind);
    GridPoint point;
    for (int u = 0; u < input.units(); ++u) {
      const int which = u == 0 ? 0 : u == input.units() - 1 ? 3 : u % 2 == 1 ? 1 : 2;
      UnitProfile unit;
      unit.forward = kMilliseconds[k][which] * 1e-3;
      point.units.push_back(unit);
    }
    input.grid.emplace(std::tuple(k, 1, std::int64_t{1}), point);
  }
  return input;
}

/// Of stages of one GPU each; A100 are of kind 0.
std::vector<int> cuts_of_neo(const std::vector<int>& kinds) {
  const PlannerInput input = neo();
  const Metis metis(input, Mode::kFaithful);
  const MetisLayout layout{{0, 1}, kinds, DeviceGroups(kinds.size(), 1), 1, static_cast<int>(kinds.size())};
  int attempts = 0;
  std::vector<double> headroom;
  return metis.partition(layout, metis.stages(layout, std::vector<MetisStrategy>(kinds.size())), attempts, headroom);
}

std::int64_t layouts(int gpus, int layers, double variance, int permute_length) {
  std::int64_t count = 0;
  for (int stages = 1; stages <= std::min(gpus, layers); ++stages) {
    for_device_groups(gpus, stages, {variance, permute_length}, [&](const DeviceGroups&) { return ++count > 0; });
  }
  return count;
}

}  // namespace

TEST_CASE("the layouts of GPUs are those that Metis enumerates") {
  // Counted with its published code: GPUs; 10, 34 and 82 layers at variance 1 and permutations of 4.
  CHECK(layouts(8, 10, 1, 4) == 24);
  CHECK(layouts(16, 10, 1, 4) == 79);
  CHECK(layouts(16, 34, 1, 4) == 146);
  CHECK(layouts(32, 10, 1, 4) == 8);
  CHECK(layouts(32, 34, 1, 4) == 1013);
  CHECK(layouts(64, 10, 1, 4) == 4);
  CHECK(layouts(64, 34, 1, 4) == 1985);
  CHECK(layouts(64, 82, 1, 4) == 8252);
  CHECK(layouts(128, 34, 1, 4) == 78);
  CHECK(layouts(256, 34, 1, 4) == 22);
  CHECK(layouts(256, 82, 1, 4) == 283);
  // Permutations of 6: the settings of its published results.
  CHECK(layouts(8, 34, 1, 6) == 41);
  CHECK(layouts(16, 34, 1, 6) == 389);
  CHECK(layouts(32, 34, 1, 6) == 5007);
  CHECK(layouts(64, 34, 1, 6) == 17741);
  CHECK(layouts(64, 82, 1, 6) == 77175);
  CHECK(layouts(128, 34, 1, 6) == 222);
  CHECK(layouts(256, 34, 1, 6) == 38);
  CHECK(layouts(256, 82, 1, 6) == 1055);
  // The paper's settings: variance 0.5, permutations of 10.
  CHECK(layouts(8, 34, 0.5, 10) == 56);
  CHECK(layouts(16, 10, 0.5, 10) == 3222);
  CHECK(layouts(16, 34, 0.5, 10) == 3595);
  CHECK(layouts(32, 10, 0.5, 10) == 3072);
  CHECK(layouts(64, 10, 0.5, 10) == 2722);
}

TEST_CASE("eight GPUs are cut as in the published list") {
  // het_search_space: 1, 1, 3, 1, 7, 6, 4 and 1 layouts of 1 to 8 stages.
  const std::int64_t expected[] = {1, 1, 3, 1, 7, 6, 4, 1};
  for (int stages = 1; stages <= 8; ++stages) {
    std::int64_t count = 0;
    for_device_groups(8, stages, {1, 4}, [&](const DeviceGroups&) { return ++count > 0; });
    CHECK(count == expected[stages - 1]);
  }
}

TEST_CASE("the formula gives the published times") {
  // One stage of 16 GPUs, dp 4, tp 4, 8 batches of 4 samples a replica. Layers 2.949 + 8 x 35.824 + 0.679 = 290.22 ms;
  // 8 x (290.22 + 45.07 fixed + 0.915) + 2 x 39.31 / 4 + 2 x 3/4 x 2405.5e6 / 4 / (46 x 1024^2) = 2728.0.
  CHECK(milliseconds(layout_of({16}, 8, 1), {{4, 4}}, {0, 10}) == Approx(2728.03).epsilon(1e-4));
  // Two stages of 8, dp 4, tp 2: rank 11 of the published list.
  CHECK(milliseconds(layout_of({8, 8}, 8, 2), {{4, 2}, {4, 2}}, {0, 4, 10}) == Approx(3600.83).epsilon(1e-4));
  // The same plan, of which the first stage alone is counted: rank 1 of the list.
  CHECK(milliseconds(layout_of({8, 8}, 8, 1), {{4, 2}, {4, 2}}, {0, 4, 10}) == Approx(2396.74).epsilon(1e-4));
}

TEST_CASE("logits cross the boundary in front of the head") {
  // Two stages of 8, dp 4, tp 2, 8 batches of 4 samples a replica: all layers but the head, 2.507 + 8 x 63.252 =
  // 508.523 ms, and the head, 0.670. 8 x 508.523 + 0.670 + 8 x (102.507 fixed + 0.915) + 2 x 39.31 / 2 x 9 / 10
  // + 2 x 3/4 x (393216000 + 8 x 202383360) / 2 / (46 x 1024^2) + 4 x 1024 x 51200 / 2 / (46 x 1024^2) = 4965.07.
  CHECK(milliseconds(layout_of({8, 8}, 8, 2), {{4, 2}, {4, 2}}, {0, 9, 10}) == Approx(4965.07).epsilon(2e-6));
  // Behind all layers, where the last stage is empty, samples of hidden values: 4 x 1024 x 4096 / (46 x 1024^2) = 0.348
  // ms. One stage of all layers, 509.193, nothing in the other; P = 2405.5e6, all of the step: 4977.98.
  CHECK(milliseconds(layout_of({8, 8}, 8, 2), {{4, 2}, {4, 2}}, {0, 10, 10}) == Approx(4977.98).epsilon(2e-6));
}

TEST_CASE("sevenths of layers go where most of them fit") {
  // A tenth of the weight each; shares 0.2 and 0.8: the first stage takes 14 of 70 sevenths, two layers.
  CHECK(balance_by_sevenths(std::vector<double>(10, 0.1), {0.2, 0.8}) == std::vector{0, 2, 10});
  // The published run on 8 T4 at a quarter of the speed of 8 A100: the T4 take the embedding and two blocks.
  std::vector<double> weights(10, 29.508);
  weights.front() = 0.289;
  weights.back() = 0.410;
  for (double& weight : weights) weight /= 8 * 29.508 + 0.699;
  CHECK(balance_by_sevenths(weights, {0.2, 0.8}) == std::vector{0, 3, 10});
}

TEST_CASE("sevenths are lost, kept and moved as by the original") {
  // Answers of the published LayerComputeBalancer to layers of equal weight.
  const auto cuts = [](std::size_t layers, const std::vector<double>& shares) {
    return balance_by_sevenths(std::vector<double>(layers, 1.0 / static_cast<double>(layers)), shares);
  };
  CHECK(cuts(10, {0.33, 0.33, 0.34}) == std::vector{0, 3, 6, 10});
  CHECK(cuts(7, {0.3, 0.3, 0.2, 0.2}) == std::vector{0, 2, 4, 5, 7});
  CHECK(cuts(10, {0.45, 0.05, 0.5}) == std::vector{0, 4, 5, 10});
  // Stages too small for most of a layer hold none, and layers are lost.
  CHECK(cuts(10, {0.05, 0.9, 0.05}) == std::vector{0, 0, 9, 10});
  CHECK(cuts(10, {0.05, 0.05, 0.05, 0.85}) == std::vector{0, 1, 1, 1, 9});
  CHECK(cuts(6, {0.4, 0.05, 0.05, 0.5}) == std::vector{0, 2, 2, 2, 5});
  CHECK(cuts(12, {0.02, 0.02, 0.96}) == std::vector{0, 0, 0, 11});
}

TEST_CASE("where stages are alike the roundings of milliseconds decide") {
  // Answers of the published LayerComputeBalancer. To the same times in seconds it answers with other third, second and
  // third cuts: 7, 11 and 16.
  CHECK(cuts_of_neo({1, 1, 1, 0, 0, 0}) == std::vector{0, 4, 8, 11, 19, 27, 34});
  CHECK(cuts_of_neo({0, 0, 0, 0, 1, 1, 1, 1, 1, 1}) == std::vector{0, 6, 12, 17, 22, 25, 27, 29, 31, 33, 34});
  CHECK(cuts_of_neo({0, 1, 1, 1, 1, 1, 1, 1, 1}) == std::vector{0, 9, 12, 15, 19, 22, 26, 29, 32, 34});
}

TEST_CASE("samples are shared by speed, largest remainders first") {
  // Speeds 1, 1/4: 8 samples are 6.4 and 1.6.
  CHECK(split_samples(8, {1, 4}) == std::vector<std::int64_t>{6, 2});
  CHECK(split_samples(1, {1, 1}) == std::vector<std::int64_t>{1, 0});
}
