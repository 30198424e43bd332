#include "tangram/calibrate/calibration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cost/profile_anomaly.hpp"
#include "tangram/profiles/detect.hpp"

namespace tangram::calibrate {
namespace {

using cost::RecomputeMode;
using profiles::Note;
using profiles::NoteKind;

constexpr double kNormal = 1.4826;      // median absolute deviation to standard deviation
constexpr std::size_t kLeastRanks = 3;  // of two that differ, neither falls behind

/// Seconds of both passes.
struct Pair {
  double forward = 0;
  double backward = 0;
  [[nodiscard]] double sum() const { return forward + backward; }
};

Pair median_of(const std::vector<Pair>& pairs) {
  std::vector<double> forward;
  std::vector<double> backward;
  for (const Pair& pair : pairs) {
    forward.push_back(pair.forward);
    backward.push_back(pair.backward);
  }
  return {median(std::move(forward)), median(std::move(backward))};
}

/// Ranks of one plan that ran one step together, ascending, each with its median.
using StepTimes = std::vector<std::pair<int, Pair>>;

/// Of tp ranks that follow each other the slowest, pass by pass. A part's ranks follow each other and are a multiple of
/// tp, so that counting starts anew behind each gap.
std::vector<Pair> slowest_of_groups(const StepTimes& step, int tp) {
  std::vector<Pair> groups;
  int members = 0;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool follows = i > 0 && step[i].first == step[i - 1].first + 1;
    if (!follows || members == tp) {
      groups.push_back(step[i].second);
      members = 1;
      continue;
    }
    groups.back().forward = std::max(groups.back().forward, step[i].second.forward);
    groups.back().backward = std::max(groups.back().backward, step[i].second.backward);
    ++members;
  }
  return groups;
}

std::string unit_name(const TimedUnit& unit) {
  switch (unit.unit.kind) {
    case cost::ProfileKind::kBlock: return fmt::format("block \"{}\"", unit.type);
    case cost::ProfileKind::kEmbedding: return "embedding";
    case cost::ProfileKind::kHead: return "head";
  }
  return "block";
}

std::string place_of(const TimedUnit& unit) {
  return fmt::format("{}, {} at tp {}, {} sample{}", unit.device.name, unit_name(unit), unit.degrees.tp, unit.samples,
                     unit.samples == 1 ? "" : "s");
}

std::string times_text(std::int64_t count) { return fmt::format("{} time{}", count, count == 1 ? "" : "s"); }

/// Whatever their rows.
bool is_of(cost::ProfileUnit a, const cost::ProfileUnit& b) {
  a.rows = b.rows;
  return a == b;
}

auto order_of_row(const cost::ProfileRow& row) { return std::tie(row.degrees, row.samples); }

/// What a rank's times are of those of all ranks, unit by unit.
using RankRatios = std::map<int, std::vector<double>>;

/// The times of one unit become a row.
class UnitRow {
 public:
  UnitRow(const TimedUnit& unit, const Timings& timings, const std::vector<std::int64_t>& first_steps,
          std::int64_t skip)
      : unit_(unit), timings_(timings) {
    for (const Observation& o : unit.observations) {
      if (o.step < at(first_steps, o.run) + skip) {
        ++warm_up_;
      } else {
        kept_.push_back(o);
      }
    }
    separate_recompute();
  }

  [[nodiscard]] std::int64_t warm_up() const { return warm_up_; }
  [[nodiscard]] std::int64_t selective_left_out() const { return selective_left_out_; }
  [[nodiscard]] std::int64_t too_short() const { return too_short_; }
  [[nodiscard]] bool selective_shared_out() const { return selective_shared_out_; }
  [[nodiscard]] bool subtracted() const { return subtracted_; }
  [[nodiscard]] bool empty() const { return kept_.empty(); }
  /// Runs whose times count.
  [[nodiscard]] std::set<int> runs() const {
    std::set<int> runs;
    for (const Observation& o : kept_) runs.insert(o.run);
    return runs;
  }

  /// Requires times.
  [[nodiscard]] CalibratedRow row() {
    std::vector<Pair> times = times_of_steps();
    CalibratedRow out;
    out.outliers = drop_outliers(times);
    const Pair middle = median_of(times);
    out.device = unit_.device;
    out.unit = unit_.unit;
    out.type = unit_.type;
    out.modelled = unit_.modelled;
    out.steps = static_cast<std::int64_t>(times.size());
    out.ranks = static_cast<std::int64_t>(by_rank_.size());
    out.spread = spread(times);
    cost::ProfileRow row;
    row.degrees = unit_.degrees;
    row.samples = unit_.samples;
    row.forward = measured_nanoseconds(middle.forward);
    row.backward = measured_nanoseconds(middle.backward);
    out.unit.rows = {row};
    return out;
  }

  /// How each rank's median compares with that of all ranks. After row().
  void add_ratios(RankRatios& ratios) const {
    if (by_rank_.size() < kLeastRanks) return;
    std::vector<double> medians;
    for (const auto& [rank, times] : by_rank_) medians.push_back(median(times));
    const double all = median(medians);
    for (const auto& [rank, times] : by_rank_) ratios[rank].push_back(median(times) / all);
  }

 private:
  void separate_recompute() {
    const bool alone =
        std::ranges::all_of(kept_, [](const Observation& o) { return o.recompute == RecomputeMode::kSelective; });
    const Modelled& m = unit_.modelled;
    for (Observation& o : kept_) {
      if (o.recompute == RecomputeMode::kFull) {
        o.backward -= o.forward;
        subtracted_ = true;
      } else if (o.recompute == RecomputeMode::kSelective && alone) {
        o.backward *= m.backward / (m.backward + m.selective_recompute);
        selective_shared_out_ = true;
      }
    }
    if (!alone) {
      selective_left_out_ = static_cast<std::int64_t>(
          std::erase_if(kept_, [](const Observation& o) { return o.recompute == RecomputeMode::kSelective; }));
    }
    too_short_ = static_cast<std::int64_t>(std::erase_if(kept_, [](const Observation& o) { return o.backward <= 0; }));
    for (Observation& o : kept_) {
      if (o.share.forward > 0) o.forward /= o.share.forward;
      if (o.share.backward > 0) o.backward /= o.share.backward;
    }
  }

  std::vector<Pair> times_of_steps() {
    const auto order = [&](const Observation& o) {
      return std::tuple(std::string_view(at(timings_.runs, o.run).plan), o.step, o.rank);
    };
    std::ranges::sort(kept_, {}, order);
    std::vector<Pair> times;
    for (auto first = kept_.begin(); first != kept_.end();) {
      const auto begins = order(*first);
      const auto last = std::find_if(first, kept_.end(), [&](const Observation& o) {
        const auto other = order(o);
        return std::get<0>(other) != std::get<0>(begins) || std::get<1>(other) != std::get<1>(begins);
      });
      times.push_back(time_of(by_rank(first, last)));
      first = last;
    }
    return times;
  }

  template <class Iterator>
  StepTimes by_rank(Iterator first, Iterator last) {
    StepTimes step;
    while (first != last) {
      const int rank = first->rank;
      std::vector<Pair> repeats;
      for (; first != last && first->rank == rank; ++first) repeats.push_back({first->forward, first->backward});
      step.emplace_back(rank, median_of(repeats));
      by_rank_[rank].push_back(step.back().second.sum());
    }
    return step;
  }

  [[nodiscard]] Pair time_of(const StepTimes& step) const {
    const bool has_waited = unit_.includes_tp_communication || unit_.degrees.tp == 1;
    return median_of(slowest_of_groups(step, has_waited ? 1 : unit_.degrees.tp));
  }

  static std::int64_t drop_outliers(std::vector<Pair>& times) {
    std::vector<double> sums;
    for (const Pair& pair : times) sums.push_back(pair.sum());
    const std::vector<std::size_t> found = profiles::outliers_of_equals(sums);
    for (auto index = found.rbegin(); index != found.rend(); ++index) {
      times.erase(times.begin() + static_cast<std::ptrdiff_t>(*index));
    }
    return static_cast<std::int64_t>(found.size());
  }

  static double spread(const std::vector<Pair>& times) {
    std::vector<double> sums;
    for (const Pair& pair : times) sums.push_back(pair.sum());
    const double middle = median(sums);
    for (double& sum : sums) sum = std::abs(sum - middle);
    return kNormal * median(std::move(sums)) / middle;
  }

  const TimedUnit& unit_;
  const Timings& timings_;
  std::vector<Observation> kept_;
  std::map<int, std::vector<double>> by_rank_;  ///< both passes, step by step
  std::int64_t warm_up_ = 0;
  std::int64_t selective_left_out_ = 0;
  std::int64_t too_short_ = 0;
  bool selective_shared_out_ = false;
  bool subtracted_ = false;
};

/// What all units of one GPU type give.
struct TypeCalibration {
  cost::Profile profile;
  std::set<int> runs;
  RankRatios ratios;
  bool exchanges = false;  ///< rows of tp > 1, which say whether exchanges are in the times
  bool subtracted = false;
  bool selective_shared_out = false;
};

class Calibrator {
 public:
  Calibrator(const Timings& timings, const Options& options) : timings_(timings), options_(options) {
    first_steps_.assign(timings.runs.size(), std::numeric_limits<std::int64_t>::max());
    for (const TimedUnit& unit : timings.units) {
      for (const Observation& o : unit.observations)
        at(first_steps_, o.run) = std::min(at(first_steps_, o.run), o.step);
    }
  }

  Expected<Calibration> calibrated() {
    out_.notes = timings_.notes;
    for (const TimedUnit& unit : timings_.units) {
      if (!options_.gpu.empty() && unit.device.name != options_.gpu) continue;
      if (auto mixed = contradiction(unit)) return fail(std::move(*mixed));
      add(unit);
    }
    if (out_.rows.empty()) return fail(nothing_left());
    for (auto& [name, type] : types_) finish(type);
    std::ranges::stable_sort(out_.rows, {}, [](const CalibratedRow& row) { return row.device.name; });
    note_counts();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::optional<Diagnostic> contradiction(const TimedUnit& unit) const {
    const auto known = types_.find(unit.device.name);
    if (known == types_.end() || !exchanges(unit) || !known->second.exchanges) return std::nullopt;
    if (known->second.profile.includes_tp_communication == unit.includes_tp_communication) return std::nullopt;
    return problem(ErrorKind::kInput, "several-profiles",
                   fmt::format("some times of {} hold the exchanges of tp, others do not", unit.device.name),
                   "calibrate their files one by one");
  }

  static bool exchanges(const TimedUnit& unit) { return unit.degrees.tp * unit.degrees.etp > 1; }

  void add(const TimedUnit& unit) {
    UnitRow times(unit, timings_, first_steps_, options_.skip);
    warm_up_ += times.warm_up();
    selective_ += times.selective_left_out();
    if (times.too_short() > 0) {
      left_out("short-backward", place_of(unit),
               fmt::format("{}: backward with recompute is shorter than forward", times_text(times.too_short())));
    }
    if (times.empty()) return;
    TypeCalibration& type = types_[unit.device.name];
    type.profile.device = unit.device;
    if (exchanges(unit)) {
      type.exchanges = true;
      type.profile.includes_tp_communication = unit.includes_tp_communication;
    }
    CalibratedRow row = times.row();
    if (const auto anomaly = cost::find_anomaly(type.profile, row.unit, row.row())) {
      left_out(anomaly->code, place_of(unit), anomaly->message);
      return;
    }
    type.runs.merge(times.runs());
    type.subtracted = type.subtracted || times.subtracted();
    type.selective_shared_out = type.selective_shared_out || times.selective_shared_out();
    times.add_ratios(type.ratios);
    add_row(type.profile, row.unit);
    out_.rows.push_back(std::move(row));
  }

  static void add_row(cost::Profile& profile, const cost::ProfileUnit& unit) {
    const auto same = std::ranges::find_if(profile.units, [&](const auto& known) { return is_of(known, unit); });
    if (same == profile.units.end()) {
      profile.units.push_back(unit);
      return;
    }
    same->rows.push_back(unit.rows.front());
    std::ranges::sort(same->rows, {}, order_of_row);
  }

  void finish(TypeCalibration& type) {
    if (type.profile.units.empty()) return;
    std::set<std::string> sources;
    for (const int run : type.runs) {
      sources.insert(at(timings_.runs, run).source);
      type.profile.date = std::max(type.profile.date, at(timings_.runs, run).date);
    }
    type.profile.source = fmt::format("{}", fmt::join(sources, "; "));
    if (options_.scale) add_scaled_rows(type.profile);
    if (type.subtracted) {
      corrected(type, "full-recompute", "backward without recompute is backward less forward",
                "times with full recompute: forward was taken off backward");
    }
    if (type.selective_shared_out) {
      corrected(type, "selective-recompute", "backward reduced by the model's share of selective recompute",
                "nothing was timed without selective recompute: backward was reduced by the share that the model gives "
                "it");
    }
    note_slow_ranks(type);
    out_.profiles.push_back(type.profile);
  }

  void add_scaled_rows(cost::Profile& profile) const {
    for (cost::ProfileUnit& unit : profile.units) {
      const Pair ratio = ratio_of(profile, unit);
      for (const TimedUnit& timed : timings_.units) {
        if (timed.device.name == profile.device.name && is_of(timed.unit, unit)) {
          for (const Elsewhere& point : timed.elsewhere) add_scaled_row(profile, unit, point, ratio);
        }
      }
      std::ranges::sort(unit.rows, {}, order_of_row);
    }
  }

  /// Measured over modelled, of the unit's measured rows.
  [[nodiscard]] Pair ratio_of(const cost::Profile& profile, const cost::ProfileUnit& unit) const {
    std::vector<Pair> ratios;
    for (const CalibratedRow& row : out_.rows) {
      if (row.device.name != profile.device.name || !is_of(row.unit, unit)) continue;
      ratios.push_back({to_seconds(row.row().forward) / row.modelled.forward,
                        to_seconds(row.row().backward) / row.modelled.backward});
    }
    return median_of(ratios);
  }

  static void add_scaled_row(const cost::Profile& profile, cost::ProfileUnit& unit, const Elsewhere& point,
                             const Pair& ratio) {
    const bool known = std::ranges::any_of(unit.rows, [&](const cost::ProfileRow& row) {
      return row.samples == point.samples && row.degrees == point.degrees;
    });
    if (known) return;
    const cost::Passes tensor = profile.includes_tp_communication ? point.tensor : cost::Passes{};
    cost::ProfileRow row;
    row.degrees = point.degrees;
    row.samples = point.samples;
    row.forward = measured_nanoseconds(ratio.forward * (point.compute.forward + tensor.forward));
    row.backward = measured_nanoseconds(ratio.backward * (point.compute.backward + tensor.backward));
    row.scaled = true;
    if (!cost::find_anomaly(profile, unit, row)) unit.rows.push_back(row);
  }

  void corrected(TypeCalibration& type, std::string code, const std::string& for_source, std::string message) {
    type.profile.source += "; " + for_source;
    out_.notes.push_back({NoteKind::kCorrected, std::move(code), type.profile.device.name, std::move(message)});
  }

  void note_slow_ranks(const TypeCalibration& type) {
    std::vector<std::string> slow;
    for (const auto& [rank, ratios] : type.ratios) {
      const double ratio = median(ratios);
      if (ratio > kFallsBehind)
        slow.push_back(fmt::format("rank {} takes {:.2f} times as long as the median", rank, ratio));
    }
    if (slow.empty()) return;
    constexpr std::size_t kMostNamed = 4;
    const std::size_t more = slow.size() - std::min(slow.size(), kMostNamed);
    slow.resize(slow.size() - more);
    out_.notes.push_back({NoteKind::kDetected, "slow-rank", type.profile.device.name,
                          fmt::format("{}{}; is its GPU throttled or shared? rows are those of the median",
                                      fmt::join(slow, ", "), more > 0 ? fmt::format(", and {} more", more) : "")});
  }

  void left_out(std::string code, std::string about, std::string message) {
    out_.notes.push_back({NoteKind::kLeftOut, std::move(code), std::move(about), std::move(message)});
  }

  void note_counts() {
    if (warm_up_ > 0) {
      left_out("warm-up", "",
               fmt::format("{} of the first {} step{} of each run", times_text(warm_up_), options_.skip,
                           options_.skip == 1 ? "" : "s"));
    }
    if (selective_ > 0) {
      left_out(
          "selective-recompute", "",
          fmt::format("{} with selective recompute, which cannot be told apart from backward", times_text(selective_)));
    }
  }

  [[nodiscard]] Diagnostics nothing_left() const {
    std::set<std::string> names;
    for (const TimedUnit& unit : timings_.units) names.insert(unit.device.name);
    if (!options_.gpu.empty() && !names.contains(options_.gpu)) {
      return {problem(ErrorKind::kInput, "other-gpu", fmt::format("no times of {}", options_.gpu),
                      names.empty() ? "" : fmt::format("there are times of {}", fmt::join(names, ", ")))};
    }
    Diagnostics why;
    for (const Note& note : out_.notes) {
      if (note.kind != NoteKind::kLeftOut) continue;
      why.push_back(problem(ErrorKind::kInput, note.code, fmt::format("{}: {}", note.file, note.message)));
    }
    if (!why.empty()) return why;
    return {problem(ErrorKind::kInput, "nothing-left",
                    fmt::format("no times are left: all are of the first {} steps of their runs", options_.skip),
                    "train for more steps, or take fewer as warm-up: --skip 0")};
  }

  const Timings& timings_;
  const Options& options_;
  std::vector<std::int64_t> first_steps_;         ///< of each run
  std::map<std::string, TypeCalibration> types_;  ///< by GPU type
  std::int64_t warm_up_ = 0;
  std::int64_t selective_ = 0;
  Calibration out_;
};

}  // namespace

Expected<Calibration> calibrate(const Timings& timings, const Options& options) {
  return Calibrator(timings, options).calibrated();
}

}  // namespace tangram::calibrate
