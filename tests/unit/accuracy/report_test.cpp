// Errors, rank correlation and groups.
#include "tangram/accuracy/report.hpp"

#include <cmath>
#include <random>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "unit/accuracy/fixtures.hpp"

using namespace tangram;
using namespace tangram::accuracy;

namespace {

Line line(const std::string& dataset, const std::string& quality, double measured, double predicted) {
  Line result;
  result.measurement.dataset = dataset;
  result.measurement.quality = quality;
  result.measurement.iteration_s = measured;
  result.measurement.gpus = {{"A100-80GB-SXM (p4de)", 8, 8}};
  result.prediction.iteration_s = predicted;
  return result;
}

/// Ranks by counting: those below, and half of the other equals.
double rank_of(const std::vector<double>& values, double value) {
  double rank = -0.5;
  for (const double other : values) rank += other < value ? 1 : (other == value ? 0.5 : 0);
  return rank;
}

double brute_spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = rank_of(a, a[i]), y = rank_of(b, b[i]);
    sa += x, sb += y, saa += x * x, sbb += y * y, sab += x * y;
  }
  const double va = saa - sa * sa / n, vb = sbb - sb * sb / n;
  return va > 1e-9 && vb > 1e-9 ? (sab - sa * sb / n) / std::sqrt(va * vb) : 0;
}

}  // namespace

TEST_CASE("errors of an odd and an even number") {
  const Errors odd = errors_of({0.1, -0.3, 0.2});
  CHECK(odd.count == 3);
  CHECK(odd.median == Approx(0.2));
  CHECK(odd.mean == Approx(0.2));
  CHECK(odd.p90 == Approx(0.3));
  CHECK(odd.largest == Approx(0.3));
  CHECK(odd.bias == Approx(0).margin(1e-12));
  const Errors even = errors_of({-0.1, -0.2, -0.3, -0.6});
  CHECK(even.median == Approx(0.25));
  CHECK(even.bias == Approx(-0.3));
  CHECK(even.mean == Approx(0.3));
  CHECK(errors_of({}).count == 0);
  CHECK(errors_of({}).median == 0);
  CHECK(errors_of({-0.5}).median == 0.5);
}

TEST_CASE("the 90th percentile is the nearest rank") {
  std::vector<double> errors;
  for (int i = 1; i <= 100; ++i) {
    errors.push_back(i);
    // ceil(0.9 n) in whole numbers.
    INFO(i);
    CHECK(errors_of(errors).p90 == (9 * i + 9) / 10);
  }
}

TEST_CASE("rank correlation of known orders") {
  CHECK(spearman({1, 2, 3}, {10, 20, 1000}) == Approx(1));
  CHECK(spearman({1, 2, 3}, {3, 2, 1}) == Approx(-1));
  CHECK(spearman({1, 2}, {1, 2}) == 0);
  CHECK(spearman({1, 2, 3}, {1, 2}) == 0);
  CHECK(spearman({1, 1, 1}, {1, 2, 3}) == 0);
  // 1 - 6 sum d^2 / (n (n^2 - 1)) = 1 - 6 * 2 / 60.
  CHECK(spearman({1, 2, 3, 4}, {2, 1, 3, 4}) == Approx(0.8));
}

TEST_CASE("rank correlation with ties equals brute force") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> a(3 + random() % 10), b(a.size());
    for (double& value : a) value = static_cast<double>(random() % 5);
    for (double& value : b) value = static_cast<double>(random() % 5);
    CHECK(spearman(a, b) == Approx(brute_spearman(a, b)).margin(1e-9));
  }
}

TEST_CASE("what a measurement combined") {
  Measurement m;
  CHECK(parallelism_of(m) == "single");
  m.tp = 2;
  m.dp = 4;
  CHECK(parallelism_of(m) == "tp+dp");
  m.pp = 2;
  m.cp = 2;
  m.ep = 8;
  CHECK(parallelism_of(m) == "tp+pp+cp+ep+dp");
  m.zero = 3;
  CHECK(parallelism_of(m) == "tp+pp+cp+ep+FSDP");
  m = {};
  m.tp = m.pp = m.cp = m.dp = 1;
  CHECK(parallelism_of(m) == "single");
  m.sharding_group = 8;
  CHECK(parallelism_of(m) == "FSDP");
  m = {};
  m.stage_gpus = {1};
  CHECK(parallelism_of(m) == "uneven");
}

TEST_CASE("runs that ran out of memory are counted, and those that are predicted to") {
  std::vector<Line> lines(6, line("a", "A", 1, 1));
  lines[0].measurement.out_of_memory = lines[1].measurement.out_of_memory = lines[2].measurement.out_of_memory = true;
  lines[0].prediction.usable_share = 1.2;
  lines[1].prediction.usable_share = 1;
  lines[2].reason = "why not";
  lines[3].prediction.usable_share = 1.1;
  const MemoryVerdicts verdicts = verdicts_of(lines);
  CHECK(verdicts.ran_out == 2);
  CHECK(verdicts.ran_out_found == 1);
  CHECK(verdicts.ran == 3);
  CHECK(verdicts.ran_refused == 1);
}

TEST_CASE("what a run had when it ran out of memory is no peak to compare with") {
  Line ran = line("a", "A", 1, 1);
  ran.measurement.peak_memory = 4e9;
  CHECK(ran.weighed());
  ran.measurement.out_of_memory = true;
  CHECK_FALSE(ran.weighed());
}

TEST_CASE("lines are grouped by grade, dataset, GPU and parallelism") {
  std::vector<Line> lines = {line("b", "A", 1, 1.1), line("a", "A-", 2, 1.8), line("a", "B", 4, 6),
                             line("a", "B", 0, 5), line("b", "A", 3, 9)};
  lines[4].reason = "why not";
  lines[1].measurement.peak_memory = 100;
  lines[1].prediction.peak_memory = 130;
  lines[1].prediction.peak_allocated = 120;
  lines[0].measurement.gpus = {{"A100", 4, 4}, {"V100", 4, 4}};
  const auto groups = summarize(lines);
  REQUIRE(groups.size() == 7);
  const auto check = [&](std::size_t i, const char* kind, const char* name, int timed, double median, int refused) {
    CHECK(groups[i].kind == kind);
    CHECK(groups[i].name == name);
    CHECK(groups[i].time.count == timed);
    CHECK(groups[i].time.median == Approx(median));
    CHECK(groups[i].not_expressible == refused);
  };
  check(0, "grade", "all", 3, 0.1, 1);
  check(1, "grade", "A and A-", 2, 0.1, 1);
  check(2, "dataset", "a", 2, 0.3, 0);
  check(3, "dataset", "b", 1, 0.1, 1);
  check(4, "GPU", "A100 + V100", 1, 0.1, 0);
  check(5, "GPU", "A100-80GB-SXM", 2, 0.3, 1);
  check(6, "parallelism", "single", 3, 0.1, 1);
  CHECK(groups[0].spearman == Approx(1));
  CHECK(groups[1].spearman == 0);
  CHECK(groups[0].memory.count == 1);
  CHECK(groups[0].memory.median == Approx(0.3));
  CHECK(summarize({}).empty());
  // Allocated memory is compared with allocated memory.
  lines[1].measurement.of_allocator = true;
  CHECK(lines[1].memory_error() == Approx(0.2));
}

TEST_CASE("each measurement gets a prediction or a reason") {
  Measurement good = fixtures::complete();
  good.iteration_s = 1;
  Measurement none = good;
  none.gpus = {{"TPU-v4", 8, 8}};
  Measurement unsupported = good;  // 16 heads in 3 parts
  unsupported.gpus = {{"A100", 3, 8}};
  unsupported.tp = 3;
  const auto lines = judge({good, none, unsupported}, cluster::catalogue(), {});
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].timed());
  CHECK_FALSE(lines[0].weighed());
  CHECK(lines[0].prediction.iteration_s > 0);
  CHECK(lines[1].reason == "no GPU type of the catalogue is a \"TPU-v4\"");
  CHECK_FALSE(lines[1].timed());
  CHECK_FALSE(lines[2].reason.empty());
}
