// How many times become one row, and what is left out and said.
#include <algorithm>

#include "fixtures.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"

using namespace tangram;
using namespace tangram::calibrate;
using namespace tangram::calibrate::fixtures;
using profiles::NoteKind;

namespace {

const cost::ProfileRow& only_row(const Calibration& calibration) {
  REQUIRE(calibration.rows.size() == 1);
  REQUIRE(calibration.profiles.size() == 1);
  REQUIRE(calibration.profiles.front().units.size() == 1);
  REQUIRE(calibration.profiles.front().units.front().rows.size() == 1);
  CHECK(calibration.profiles.front().units.front().rows.front() == calibration.rows.front().row());
  return calibration.rows.front().row();
}

TimingLine recomputed(TimingLine line, const std::string& how) {
  line.recompute = how;
  return line;
}

TimingLine with_tp(TimingLine line, int tp) {
  line.degrees.tp = tp;
  return line;
}

}  // namespace

TEST_CASE("calibration: the first steps of each run are left out and counted") {
  Lines lines;
  for (const int step : {10, 11, 12, 13}) lines.add(block(step, 0, step < 12 ? 60 : 6, step < 12 ? 120 : 12));
  const Calibration calibration = calibrated(lines, 2);
  CHECK(ms(only_row(calibration).forward) == 6);
  CHECK(calibration.rows.front().steps == 2);
  CHECK(noted(calibration, NoteKind::kLeftOut, "warm-up"));
}

TEST_CASE("calibration: steps that stand out do not count, and the rest says how it spreads") {
  Lines lines;
  for (int step = 0; step < 9; ++step) lines.add(block(step, 0, 6 + 0.01 * step, 12));
  lines.add(block(9, 0, 60, 120));
  const Calibration calibration = calibrated(lines);
  CHECK(ms(only_row(calibration).forward) == 6.04);
  CHECK(calibration.rows.front().steps == 9);
  CHECK(calibration.rows.front().outliers == 1);
  CHECK(calibration.rows.front().spread > 0.001);
  CHECK(calibration.rows.front().spread < 0.003);
}

TEST_CASE("calibration: what a rank times several times in a step is its median") {
  const Calibration calibration = calibrated(Lines().add(block(0, 0, 6)).add(block(0, 0, 9)).add(block(0, 0, 5.5)));
  CHECK(ms(only_row(calibration).forward) == 6);
  CHECK(calibration.rows.front().steps == 1);
}

TEST_CASE("calibration: with exchanges in the times the ranks' median counts, and who falls behind is named") {
  Lines lines;
  for (int step = 0; step < 4; ++step) {
    for (int rank = 0; rank < 8; ++rank)
      lines.add(with_tp(block(step, rank, rank == 5 ? 9 : 6, rank == 5 ? 18 : 12), 2));
  }
  const Calibration calibration = calibrated(lines);
  CHECK(ms(only_row(calibration).forward) == 6);
  CHECK(calibration.rows.front().ranks == 8);
  REQUIRE(noted(calibration, NoteKind::kDetected, "slow-rank"));
  const auto note = std::ranges::find(calibration.notes, "slow-rank", &profiles::Note::code);
  CHECK(note->message.starts_with("rank 5 takes 1.50 times as long as the median;"));
}

TEST_CASE("calibration: without exchanges in the times a group is as fast as its slowest rank") {
  Lines lines(false);
  // Groups of two: 0 1, 2 3, then 8 9. Their slowest ranks take 7, 6.5 and 9.
  const std::vector<std::pair<int, double>> ranks{{0, 6}, {1, 7}, {2, 6.5}, {3, 6}, {8, 9}, {9, 6}};
  for (const auto& [rank, time] : ranks) lines.add(with_tp(block(0, rank, time, 2 * time), 2));
  const cost::ProfileRow row = only_row(calibrated(lines));
  CHECK(ms(row.forward) == 7);
  CHECK(ms(row.backward) == 14);
}

TEST_CASE("calibration: full recompute is a forward pass that is taken off backward") {
  const Calibration calibration = calibrated(Lines().add(recomputed(block(0, 0, 6, 18.5), "full")));
  CHECK(ms(only_row(calibration).backward) == 12.5);
  CHECK(noted(calibration, NoteKind::kCorrected, "full-recompute"));
  CHECK(calibration.profiles.front().source.find("less forward") != std::string::npos);
}

TEST_CASE("calibration: selective recompute is left out where there are other times") {
  const Calibration calibration =
      calibrated(Lines().add(recomputed(block(0, 0, 6, 13), "selective")).add(block(1, 0, 6, 12)));
  CHECK(ms(only_row(calibration).backward) == 12);
  CHECK(noted(calibration, NoteKind::kLeftOut, "selective-recompute"));
}

TEST_CASE("calibration: where all was recomputed selectively the model says what share that is") {
  const Lines lines = Lines().add(recomputed(block(0, 0, 6, 13), "selective"));
  const Timings timings = timings_of({lines.file()});
  const Modelled& model = timings.units.front().modelled;
  const Calibration calibration = calibrated(timings);
  const double share = model.backward / (model.backward + model.selective_recompute);
  CHECK(share < 1);
  CHECK(std::abs(ms(only_row(calibration).backward) - 13 * share) < 1e-5);
  CHECK(noted(calibration, NoteKind::kCorrected, "selective-recompute"));
}

TEST_CASE("calibration: a backward with recompute that is shorter than forward is left out") {
  const Calibration calibration =
      calibrated(Lines().add(recomputed(block(0, 0, 6, 5), "full")).add(recomputed(block(1, 0, 6, 18), "full")));
  CHECK(ms(only_row(calibration).backward) == 12);
  CHECK(noted(calibration, NoteKind::kLeftOut, "short-backward"));
}

TEST_CASE("calibration: every GPU type has its profile, and one may be chosen") {
  TimingLine other = block(0, 1);
  other.gpu = "H100-80GB-SXM";
  const Timings timings = timings_of({Lines().add(other).add(block(0, 0)).file()});
  const Calibration all = calibrated(timings);
  REQUIRE(all.profiles.size() == 2);
  CHECK(all.profiles.front().device.name == kGpu);
  CHECK(all.rows.front().device.name == kGpu);
  const auto one = calibrate::calibrate(timings, {.skip = 0, .gpu = "H100-80GB-SXM"});
  REQUIRE(one);
  REQUIRE(one->profiles.size() == 1);
  CHECK(one->profiles.front().device.name == "H100-80GB-SXM");
  CHECK(refusal_of(calibrate::calibrate(timings, {.skip = 0, .gpu = "T4-16GB"})).find("no times of T4-16GB") !=
        std::string::npos);
}

TEST_CASE("calibration: the profile is one that the program reads") {
  TimingJson header = timings_header(small_model(), true);
  header["date"] = "2026-01-31";
  header["source"] = "a rack in a cellar";
  TimingLine head = block(0, 0, 12, 24);
  head.kind = cost::ProfileKind::kHead;
  TimingLine few = block(0, 0, 3.2, 6.4);
  few.samples = 2;
  const Calibration calibration = calibrated(Lines(header).add(block(0, 0)).add(few).add(head));
  const cost::Profile& profile = calibration.profiles.front();
  CHECK(profile.source == "test 1, plan made-up: a rack in a cellar");
  CHECK(profile.date == "2026-01-31");
  const auto again =
      cost::read_profile(io::write_canonical(cost::profile_json(profile)), "again.json", cluster::catalogue());
  if (!again) FAIL(render(again.error()));
  CHECK(*again == profile);
}

TEST_CASE("calibration: what cannot be true of the GPU is left out, and refused where nothing else is there") {
  TimingLine few = block(0, 0, 0.006, 0.012);
  few.samples = 2;
  CHECK(noted(calibrated(Lines().add(few).add(block(0, 0))), NoteKind::kLeftOut, "implausible-rate"));
  const Timings timings = timings_of({Lines().add(few).file()});
  CHECK(refusal_of(calibrate::calibrate(timings, {.skip = 0, .gpu = {}})).find("TFLOP/s") != std::string::npos);
}

TEST_CASE("calibration: where all steps warm up nothing is left") {
  const Timings timings = timings_of({Lines().add(block(0, 0)).add(block(1, 0)).file()});
  CHECK(refusal_of(calibrate::calibrate(timings)).find("--skip 0") != std::string::npos);
}

TEST_CASE("calibration: times with and without exchanges are not one profile") {
  const Timings timings = timings_of({Lines(true).add(with_tp(block(0, 0), 2)).file("with.jsonl"),
                                      Lines(false).add(with_tp(block(0, 0), 2)).file("without.jsonl")});
  CHECK(refusal_of(calibrate::calibrate(timings, {.skip = 0, .gpu = {}})).find("one by one") != std::string::npos);
}

TEST_CASE("calibration: without tensor parallelism times have no exchanges, whatever a header says") {
  const Timings timings = timings_of(
      {Lines(true).add(block(0, 0)).file("with.jsonl"), Lines(false).add(block(0, 0)).file("without.jsonl")});
  CHECK_FALSE(calibrated(timings).profiles.front().includes_tp_communication);
}

TEST_CASE("calibration: where nothing was timed the profile has the model's times, as much slower as the unit was") {
  const Timings timings = timings_of({Lines().add(block(0, 0)).file()});
  const Modelled& model = timings.units.front().modelled;
  const Calibration calibration = calibrated(timings, 0, true);
  REQUIRE(calibration.rows.size() == 1);
  const cost::Profile& profile = calibration.profiles.front();
  const auto again =
      cost::read_profile(io::write_canonical(cost::profile_json(profile)), "again.json", cluster::catalogue());
  if (!again) FAIL(render(again.error()));
  CHECK(*again == profile);

  const auto& elsewhere = timings.units.front().elsewhere;
  const std::vector<cost::ProfileRow>& rows = profile.units.front().rows;
  CHECK(std::ranges::count(rows, false, &cost::ProfileRow::scaled) == 1);
  CHECK(rows.size() > 100);
  for (const cost::ProfileRow& row : rows) {
    if (!row.scaled) continue;
    const auto point = std::ranges::find_if(
        elsewhere, [&](const Elsewhere& e) { return e.degrees == row.degrees && e.samples == row.samples; });
    REQUIRE(point != elsewhere.end());
    CHECK(std::abs(to_seconds(row.forward) - point->compute.forward * 0.006 / model.forward) < 2e-9);
    CHECK(std::abs(to_seconds(row.backward) - point->compute.backward * 0.012 / model.backward) < 2e-9);
  }

  cost::ProfileSet set;
  set.add(profile);
  const model::Model of_run = small_model();
  const auto provenance_at = [&](int tp, std::int64_t samples) {
    cost::Degrees degrees;
    degrees.tp = tp;
    const auto found = set.block(of_run.types.front(), of_run.job, degrees, samples, profile.device);
    REQUIRE(found);
    return found->provenance;
  };
  CHECK(provenance_at(1, 4) == cost::Provenance::kMeasured);
  CHECK(provenance_at(2, 4) == cost::Provenance::kCorrected);
  CHECK(provenance_at(1, 8) == cost::Provenance::kCorrected);
}
