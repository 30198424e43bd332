// Sailor's equations and search, against published runs of its planner: the 350M GPT in 32 bits, batch 1,024, on nodes
// of four A100-40 and of four V100-16 in one zone.
#include "sailor.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::baseline;

namespace {

// Figures of github.com/eth-easl/sailor (planner/profiles/OPT-350, llm_info.json, providers/): milliseconds of forward
// and backward together of the embedding, the first block, the other 23, the head; and of the optimizer's step.
struct Times {
  int kind;
  std::int64_t samples;
  int tp;
  double embedding, first, block, head, update;
};
constexpr Times kTimes[] = {
    {0, 1, 1, 0.403, 8.692, 8.223, 8.497, 2.938},      {0, 1, 2, 0.828, 5.241, 5.306, 4.923, 1.504},
    {0, 1, 4, 0.965, 4.337, 4.412, 4.289, 0.976},      {0, 2, 1, 0.429, 16.226, 15.797, 15.755, 2.930},
    {0, 2, 2, 0.883, 9.154, 8.949, 8.820, 1.511},      {0, 2, 4, 0.988, 6.317, 6.417, 5.987, 0.947},
    {0, 4, 1, 0.511, 31.314, 30.919, 30.984, 2.941},   {0, 4, 2, 1.022, 17.305, 17.032, 16.333, 1.512},
    {0, 4, 4, 1.049, 10.169, 9.855, 9.218, 0.955},     {0, 8, 1, 0.688, 61.583, 61.165, 61.986, 2.947},
    {0, 8, 2, 1.441, 33.470, 33.165, 31.901, 1.515},   {0, 8, 4, 1.563, 19.267, 19.017, 17.037, 0.938},
    {1, 1, 1, 0.448, 24.987, 24.516, 48.762, 4.854},   {1, 1, 2, 0.863, 14.248, 13.734, 24.824, 2.479},
    {1, 1, 4, 0.937, 9.030, 8.931, 13.037, 1.297},     {1, 2, 1, 0.530, 48.674, 48.032, 96.060, 4.843},
    {1, 2, 2, 1.152, 27.300, 26.936, 50.535, 2.471},   {1, 2, 4, 1.170, 15.643, 15.434, 25.761, 1.300},
    {1, 4, 1, 0.521, 99.558, 100.553, 196.945, 4.853}, {1, 4, 2, 1.606, 52.138, 51.798, 97.264, 2.492},
    {1, 4, 4, 1.746, 29.535, 29.392, 50.596, 1.298},   {1, 8, 2, 2.572, 106.117, 106.155, 204.469, 2.491},
    {1, 8, 4, 3.176, 58.440, 58.495, 101.282, 1.292},
};
/// Values on one of tp GPUs: parameters and saved activations of embedding, block, head.
struct Sizes {
  int tp;
  double parameters[3];
  double saved[3];
};
constexpr Sizes kSizes[] = {
    {1, {53608448, 12596224, 51513344}, {2097152, 90181632, 208673536}},
    {2, {27918336, 6301184, 25823232}, {2101760, 48238592, 105913088}},
    {4, {15073280, 3153664, 12978176}, {2101760, 27267072, 54532864}},
};
/// GB/s at x = log2(MB): a x^2 + b x + c, by the GPUs of a node that take part.
struct Polynomial {
  double a, b, c;
};
constexpr Polynomial kA100[] = {
    {-0.0024414, 0.1408627, 1.1168228}, {-0.0071965, 0.2316853, 2.1127138}, {-0.0366790, 0.4773282, 4.5592610}};
constexpr Polynomial kV100[] = {
    {0.0044084, 0.0465800, 0.8793575}, {-0.0115321, 0.1056177, 1.7758034}, {-0.0084509, 0.3234541, 3.4469372}};

double message_seconds(double bytes, int from, int from_gpus, int to, int to_gpus) {
  const auto index = [](int gpus) { return gpus >= 4 ? 2 : gpus - 1; };
  // The side with fewer GPUs decides; of equally many, V100.
  const bool volta = (from == 1 && from_gpus <= to_gpus) || (to == 1 && to_gpus <= from_gpus);
  const Polynomial& p = (volta ? kV100 : kA100)[index(std::min(from_gpus, to_gpus))];
  const double x = std::log2(bytes / 1e6);
  return bytes / 1e9 / (p.a * x * x + p.b * x + p.c);
}

GridPoint point_of(const Times& times) {
  const Sizes& sizes =
      *std::find_if(std::begin(kSizes), std::end(kSizes), [&](const Sizes& s) { return s.tp == times.tp; });
  GridPoint point;
  for (int u = 0; u < 26; ++u) {
    const int kind = u == 0 ? 0 : u == 25 ? 2 : 1;
    UnitProfile unit;
    unit.forward = 1e-3 * (u == 0 ? times.embedding : u == 1 ? times.first : u == 25 ? times.head : times.block);
    unit.parameters = sizes.parameters[kind];
    unit.activation = sizes.saved[kind] * 4 * static_cast<double>(times.samples);
    point.units.push_back(unit);
  }
  point.optimizer = times.update * 1e-3;
  return point;
}

PlannerInput cluster_of(int a100, int v100) {
  PlannerInput input;
  input.blocks = 24;
  input.batch = 1024;
  input.parameter_bytes = 4;
  input.gradient_bytes = 4;
  input.activation = 2097152.0 * 4;
  input.message = message_seconds;
  const auto add = [&](const char* name, int gpus, double gib, int profile) {
    if (gpus == 0) return;
    GpuKind kind;
    kind.name = name;
    kind.gpus = gpus;
    kind.per_node = 4;
    kind.memory = gib * 1024 * 1024 * 1024;
    for (const Times& times : kTimes) {
      if (times.kind != profile) continue;
      input.grid.emplace(std::tuple(static_cast<int>(input.kinds.size()), times.tp, times.samples), point_of(times));
    }
    input.kinds.push_back(kind);
  };
  add("A100-40", a100, 40, 0);
  add("V100-16", v100, 16, 1);
  return input;
}

/// The best claim of the planner.
double planned(int a100, int v100) {
  const Proposals proposals = make_planner("sailor")->propose(cluster_of(a100, v100), Mode::kFaithful, {});
  REQUIRE_FALSE(proposals.drafts.empty());
  CHECK_FALSE(proposals.effort.cut);
  return proposals.drafts.front().claimed;
}

}  // namespace

TEST_CASE("the equations give what Sailor's planner claimed for its own plans") {
  const PlannerInput input = cluster_of(32, 96);
  const Sailor sailor(input, Mode::kFaithful);
  // 4 A100 alone and 3 x 4 V100 in one stage, 74 microbatches of 7 x 2: 74 x 397.6 ms + 1493 ms + 26 x 2.93 ms.
  CHECK(sailor.iteration({{0, 26, {{0, 1, 4}, {1, 4, 3}}}}, 2, 7) == Approx(30.988).epsilon(0.001));
  CHECK(sailor.iteration({{0, 26, {{0, 1, 8}, {1, 4, 6}}}}, 2, 14) == Approx(16.508).epsilon(0.001));
  CHECK(sailor.iteration({{0, 13, {{0, 1, 2}, {1, 4, 12}}}, {13, 26, {{0, 1, 14}}}}, 2, 14) ==
        Approx(9.044).epsilon(0.01));
  CHECK(sailor.iteration({{0, 13, {{0, 1, 3}, {1, 4, 24}}}, {13, 26, {{0, 1, 27}}}}, 2, 27) ==
        Approx(5.260).epsilon(0.01));
  CHECK(sailor.iteration({{0, 26, {{0, 2, 8}}}}, 2, 8) == Approx(15.307).epsilon(0.001));
}

TEST_CASE("the search ends at the published claims") {
  // A100 and V100 of the published runs, and seconds of an iteration that the planner printed for its best plan.
  CHECK(planned(4, 12) == Approx(30.988).epsilon(0.005));
  CHECK(planned(8, 24) == Approx(16.508).epsilon(0.005));
  CHECK(planned(16, 48) == Approx(9.044).epsilon(0.005));
  CHECK(planned(32, 96) == Approx(5.260).epsilon(0.005));
  CHECK(planned(64, 192) == Approx(3.278).epsilon(0.005));
  CHECK(planned(8, 8) == Approx(22.367).epsilon(0.005));
  CHECK(planned(16, 16) == Approx(12.154).epsilon(0.005));
  CHECK(planned(32, 32) == Approx(6.726).epsilon(0.005));
  CHECK(planned(64, 64) == Approx(4.022).epsilon(0.005));
  CHECK(planned(16, 0) == Approx(15.307).epsilon(0.005));
  CHECK(planned(32, 0) == Approx(8.097).epsilon(0.005));
  CHECK(planned(128, 0) == Approx(2.467).epsilon(0.005));
  CHECK(planned(0, 16) == Approx(49.004).epsilon(0.005));
  CHECK(planned(0, 32) == Approx(24.853).epsilon(0.005));
}
