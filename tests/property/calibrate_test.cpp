// Timings that are made from a profile, with noise, warm-up and steps that were disturbed, give the profile back.
#include <algorithm>
#include <cmath>
#include <random>

#include "support/property.hpp"
#include "support/timings.hpp"
#include "tangram/calibrate/calibration.hpp"
#include "tangram/cluster/fleet.hpp"

using namespace tangram;
using tangram::testing::holds;
using tangram::testing::TimingJson;
using tangram::testing::TimingLine;

namespace {

constexpr double kNoise = 0.01;  // standard deviation, relative
constexpr int kWarmUp = 2;

int pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

const cluster::GpuType& drawn_device() {
  static const std::vector<cluster::GpuType> devices = cluster::catalogue();
  return *std::ranges::find(devices, "A100-80GB-SXM", &cluster::GpuType::name);
}

model::Model drawn_model() {
  model::Model model;
  model.vocabulary = 32'000;
  model.hidden = 2048;
  model::set_precision(model.job, DType::kBf16);
  model.job.sequence_length = 1024 << pick(0, 2);
  model::BlockType block;
  block.name = "dense";
  block.hidden = model.hidden;
  block.tokens = model.job.sequence_length;
  block.attention.heads = 16;
  block.attention.kv_heads = 16;
  block.attention.head_dim = 128;
  block.feed_forward.hidden = 8192;
  model.types = {block};
  return model;
}

/// Rows that can be true of the device: between a third and the whole of what its products reach.
std::vector<cost::ProfileRow> drawn_rows(const model::Model& model) {
  std::vector<cost::ProfileRow> rows;
  const double flops = model::forward_flops(model.types.front()).value();
  for (const int tp : {1, 2, 4}) {
    for (const int samples : {1, 2, 4}) {
      if (pick(0, 1) == 0) continue;
      cost::ProfileRow row;
      row.degrees.tp = tp;
      row.degrees.sequence_parallel = tp > 1 && pick(0, 1) == 1;
      row.samples = samples;
      const double rate = 312e12 * pick(30, 90) / 100;
      const double forward = flops * samples / tp / rate;
      row.forward = Nanoseconds(std::llround(1e9 * forward));
      row.backward = Nanoseconds(std::llround(1e9 * forward * pick(18, 30) / 10));
      rows.push_back(row);
    }
  }
  return rows;
}

/// With a step that was disturbed, unless there are few.
std::string timings_text(const model::Model& model, const std::vector<cost::ProfileRow>& rows,
                         std::mt19937_64& random) {
  const int steps = kWarmUp + pick(5, 12);
  std::normal_distribution<double> noise(1, kNoise);
  std::string text = testing::timings_header(model, true).dump() + "\n";
  for (const cost::ProfileRow& row : rows) {
    const int ranks = row.degrees.tp * pick(1, 2);
    for (int step = 0; step < steps; ++step) {
      const double disturbed = step < kWarmUp ? 5 : step == kWarmUp + 1 ? 3 : 1;
      for (int rank = 0; rank < ranks; ++rank) {
        TimingLine line;
        line.step = step;
        line.rank = rank;
        line.gpu = drawn_device().name;
        line.type = model.types.front().name;
        line.degrees = row.degrees;
        line.samples = row.samples;
        line.forward = to_seconds(row.forward) * disturbed * noise(random);
        line.backward = to_seconds(row.backward) * disturbed * noise(random);
        text += testing::timings_row(line).dump() + "\n";
      }
    }
  }
  return text;
}

bool near(Nanoseconds a, Nanoseconds b) { return std::abs(a.as_double() / b.as_double() - 1) < 3 * kNoise; }

}  // namespace

TEST_CASE("timings that a profile made give it back") {
  holds(200, [] {
    const model::Model model = drawn_model();
    const std::vector<cost::ProfileRow> rows = drawn_rows(model);
    if (rows.empty()) return;
    std::mt19937_64 random(static_cast<std::uint64_t>(pick(0, 1'000'000)));
    const auto timings =
        calibrate::read_timings({{"drawn.jsonl", timings_text(model, rows, random)}}, std::span(&drawn_device(), 1));
    RC_ASSERT(timings.has_value());
    const auto calibration = calibrate::calibrate(*timings, {.skip = kWarmUp, .gpu = {}, .scale = false});
    RC_ASSERT(calibration.has_value());
    RC_ASSERT(calibration->profiles.size() == 1U);
    const cost::Profile& profile = calibration->profiles.front();
    RC_ASSERT(profile.units.size() == 1U);
    RC_ASSERT(profile.units.front().rows.size() == rows.size());
    for (const cost::ProfileRow& row : rows) {
      const auto found = std::ranges::find_if(profile.units.front().rows, [&](const cost::ProfileRow& r) {
        return r.degrees == row.degrees && r.samples == row.samples;
      });
      RC_ASSERT(found != profile.units.front().rows.end());
      RC_ASSERT(near(found->forward, row.forward));
      RC_ASSERT(near(found->backward, row.backward));
    }
    for (const calibrate::CalibratedRow& row : calibration->rows) {
      RC_ASSERT(row.outliers == 1);
      RC_ASSERT(row.spread < 4 * kNoise);
    }
  });
}
