// Rows for degrees and samples that nobody measured: the model's times, as much longer as the nearest measured rows.
#include "tangram/cost/scaled_rows.hpp"

#include <random>

#include "samples.hpp"
#include "support/catch.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::cost {
namespace {

using namespace samples;

const model::BlockType kScaledBlock = gpt_block(1024, 16, 2048);

model::Model scaled_model() { return model_of(kScaledBlock, 4, 32'000); }

/// The model's time at these degrees, times a factor of each direction.
ProfileRow slower(const ProfileUnit& unit, const Degrees& degrees, std::int64_t samples, double forward,
                  double backward) {
  const BlockTime time = modelled_time(scaled_model(), unit, samples, degrees, one_host(round_gpu(), degrees.gpus()));
  ProfileRow row;
  row.degrees = degrees;
  row.samples = samples;
  row.forward = Nanoseconds(std::llround(forward * time.compute.forward * 1e9));
  row.backward = Nanoseconds(std::llround(backward * time.compute.backward * 1e9));
  return row;
}

ProfileUnit scaled_unit(std::int64_t tokens = 2048) {
  ProfileUnit unit;
  unit.block = kScaledBlock;
  unit.block.name.clear();
  unit.block.tokens = unit.sequence_length = tokens;
  return unit;
}

ProfileSet scaled_set(std::vector<ProfileUnit> units) {
  Profile profile;
  profile.device = round_gpu();
  profile.units = std::move(units);
  ProfileSet set;
  set.add(std::move(profile));
  return set;
}

/// tp 1 with 1 and 4 samples took 1.5 and 1.3 times as long as the model says, tp 4 three times.
ProfileSet slow_at_tp4() {
  ProfileUnit unit = scaled_unit();
  unit.rows = {slower(unit, Degrees{}, 1, 1.5, 1.5), slower(unit, Degrees{}, 4, 1.3, 1.2),
               slower(unit, tensor(4, false), 1, 3, 2.8)};
  return scaled_set({unit});
}

std::optional<Measured> known(const ProfileSet& set, const Degrees& degrees, std::int64_t samples,
                              std::int64_t tokens = 2048) {
  model::BlockType block = kScaledBlock;
  block.tokens = tokens;
  return set.block(block, scaled_model().job, degrees, samples, round_gpu());
}

/// What the set says over what the model says, forward and backward.
std::pair<double, double> ratio_at(const ProfileSet& set, const Degrees& degrees, std::int64_t samples,
                                   std::int64_t tokens = 2048) {
  const auto found = known(set, degrees, samples, tokens);
  REQUIRE(found);
  const BlockTime time =
      modelled_time(scaled_model(), scaled_unit(tokens), samples, degrees, one_host(round_gpu(), degrees.gpus()));
  return {found->time.forward / time.compute.forward, found->time.backward / time.compute.backward};
}

TEST_CASE("scaled rows: the nearest measured rows say how much slower, by tp first") {
  const ProfileSet set = with_scaled_rows(slow_at_tp4(), scaled_model());
  const auto [forward, backward] = ratio_at(set, tensor(4, true), 8);
  CHECK(forward == Approx(3).epsilon(1e-4));
  CHECK(backward == Approx(2.8).epsilon(1e-4));
  CHECK(known(set, tensor(4, true), 8)->provenance == Provenance::kCorrected);
  // tp 8 is nearer to tp 4 than to tp 1; with 64 samples 4 are nearer than 1.
  CHECK(ratio_at(set, tensor(8, false), 1).first == Approx(3).epsilon(1e-4));
  CHECK(ratio_at(set, Degrees{}, 64).first == Approx(1.3).epsilon(1e-4));
  CHECK(ratio_at(set, Degrees{}, 64).second == Approx(1.2).epsilon(1e-4));
}

TEST_CASE("scaled rows: of rows as near the median counts") {
  ProfileUnit unit = scaled_unit();
  unit.rows = {slower(unit, Degrees{}, 1, 1.2, 1.2), slower(unit, tensor(4, false), 1, 2, 2)};
  // tp 2 lies between: measured rows interpolate there. tp 2 under sequence parallelism, too, as tp 1 has both.
  const ProfileSet set = with_scaled_rows(scaled_set({unit}), scaled_model());
  CHECK(known(set, tensor(2, false), 1)->provenance == Provenance::kInterpolated);
  // With 4 samples nobody was measured: tp 1 and tp 4 are as far.
  CHECK(ratio_at(set, tensor(2, false), 4).first == Approx(1.6).epsilon(1e-4));
}

TEST_CASE("scaled rows: a unit that was measured at another sequence length alone has rows at the model's") {
  ProfileUnit unit = scaled_unit(4096);
  unit.rows = {slower(unit, Degrees{}, 1, 1.4, 1.1)};
  CHECK_FALSE(known(scaled_set({unit}), Degrees{}, 1));
  const ProfileSet set = with_scaled_rows(scaled_set({unit}), scaled_model());
  CHECK(ratio_at(set, Degrees{}, 1).first == Approx(1.4).epsilon(1e-4));
  CHECK(ratio_at(set, Degrees{}, 1).second == Approx(1.1).epsilon(1e-4));
  CHECK(known(set, Degrees{}, 1)->provenance == Provenance::kCorrected);
  CHECK(known(set, Degrees{}, 1, 4096)->provenance == Provenance::kMeasured);
}

TEST_CASE("scaled rows: absurd degrees have no say, and absurd times are left out") {
  ProfileUnit unit = scaled_unit();
  unit.rows = {slower(unit, Degrees{}, 1, 1.5, 1.5)};
  ProfileRow vast = unit.rows.front();
  vast.degrees.ep = vast.degrees.etp = 65'536;
  unit.rows.push_back(vast);
  const ProfileSet set = with_scaled_rows(scaled_set({unit}), scaled_model());
  CHECK(ratio_at(set, Degrees{}, 2).first == Approx(1.5).epsilon(1e-4));

  ProfileUnit embedding;
  embedding.kind = ProfileKind::kEmbedding;
  embedding.vocabulary = scaled_model().vocabulary;
  embedding.hidden = scaled_model().hidden;
  embedding.sequence_length = 1;
  ProfileRow slow;
  slow.forward = slow.backward = Nanoseconds(900'000'000'000'000);
  embedding.rows = {slow};
  const ProfileSet slower_yet = with_scaled_rows(scaled_set({embedding}), scaled_model());
  for (const ProfileRow& row : slower_yet.profiles().back().units.front().rows) {
    CHECK(row.forward > Nanoseconds(0));
    CHECK(row.forward <= Nanoseconds(1'000'000'000'000'000));
  }
}

TEST_CASE("scaled rows: other models' units have none") {
  model::Model wider = model_of(gpt_block(2048, 16, 2048), 4, 32'000);
  CHECK(with_scaled_rows(slow_at_tp4(), wider) == slow_at_tp4());
}

TEST_CASE(
    "scaled rows: what was measured, or lies between, stays as it was, and the rest is never faster than its "
    "nearest ratio allows") {
  std::mt19937 random(2711);
  std::uniform_real_distribution<double> factor(1.0, 3.0);
  const auto pick = [&](std::initializer_list<int> of) {
    return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
  };
  int unchanged = 0;
  for (int round = 0; round < 200; ++round) {
    ProfileUnit unit = scaled_unit();
    double least = 3;
    for (const int tp : {1, 2, 4, 8}) {
      for (const std::int64_t samples : {1, 2, 8, 32}) {
        if (random() % 3 != 0) continue;
        const double slow = factor(random);
        least = std::min(least, slow);
        unit.rows.push_back(slower(unit, tensor(tp, tp > 1 && round % 2 == 0), samples, slow, slow));
      }
    }
    if (unit.rows.empty()) continue;
    const ProfileSet before = scaled_set({unit});
    const ProfileSet after = with_scaled_rows(before, scaled_model());
    for (int probe = 0; probe < 20; ++probe) {
      const int tp = pick({1, 2, 4, 8});
      const Degrees degrees = tensor(tp, tp > 1 && random() % 2 == 0);
      const std::int64_t samples = pick({1, 2, 4, 8, 16, 32, 64});
      const auto was = known(before, degrees, samples);
      const auto is = known(after, degrees, samples);
      REQUIRE(is);
      if (was) {
        ++unchanged;
        CHECK(is->time.forward == was->time.forward);
        CHECK(is->time.backward == was->time.backward);
        CHECK(is->provenance == was->provenance);
      } else {
        CHECK(is->provenance == Provenance::kCorrected);
        CHECK(ratio_at(after, degrees, samples).first >= least * (1 - 1e-4));
      }
    }
  }
  CHECK(unchanged > 500);
}

TEST_CASE("scaled rows: measured ones alone forbid the rest") {
  const ProfileSet alone = measured_alone(with_scaled_rows(slow_at_tp4(), scaled_model()));
  CHECK(alone.profiles() == slow_at_tp4().profiles());
  const model::Model model = scaled_model();
  const auto at = [&](const Degrees& degrees, int samples) {
    return unit_costs_of(model, model::signature(model, 0, 4), one_host(round_gpu(), degrees.gpus()), degrees, samples,
                         &alone);
  };
  CHECK(at(Degrees{}, 1));
  CHECK(at(Degrees{}, 2));  // between 1 and 4 samples
  const auto refused = at(tensor(4, true), 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "unsupported-degrees");
  CHECK(refused.error().front().message.find("not measured there") != std::string::npos);
  CHECK_FALSE(at(Degrees{}, 8));
}

}  // namespace
}  // namespace tangram::cost
