#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "raw.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/profile_anomaly.hpp"

namespace tangram::profiles {
namespace {

const char* noun(cost::ProfileKind kind) {
  switch (kind) {
    case cost::ProfileKind::kBlock: return "block";
    case cost::ProfileKind::kEmbedding: return "embedding";
    case cost::ProfileKind::kHead: return "head";
  }
  return "block";
}

std::string where(const RawRow& row) {
  return fmt::format("{} at tp {}, {} sample{}", noun(row.kind), row.tp, row.samples, row.samples == 1 ? "" : "s");
}

/// The unit a row belongs to.
cost::ProfileUnit unit_of(const Dimensions& dimensions, const RawRow& row) {
  cost::ProfileUnit unit;
  unit.kind = row.kind;
  unit.dtype = dimensions.dtype;
  unit.sequence_length = row.sequence_length;
  unit.flash_attention = true;
  if (row.kind == cost::ProfileKind::kBlock) {
    unit.block = dimensions.block;
    unit.block.name.clear();
    unit.block.tokens = row.sequence_length;
    unit.flash_attention = dimensions.flash_attention;
  } else {
    unit.vocabulary = dimensions.vocabulary;
    unit.hidden = dimensions.hidden;
  }
  return unit;
}

cost::ProfileRow row_of(const RawRow& raw, double seconds_per_unit) {
  cost::ProfileRow row;
  row.degrees.tp = raw.tp;
  row.degrees.sequence_parallel = raw.sequence_parallel;
  row.samples = raw.samples;
  row.forward = measured_nanoseconds(raw.forward * seconds_per_unit);
  row.backward = measured_nanoseconds(raw.backward * seconds_per_unit);
  row.activation = Bytes(std::llround(raw.activation));
  return row;
}

double highest_peak(const cluster::GpuType& device) {
  double peak = 0;
  for (const DType type : {DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16}) {
    peak = std::max(peak, device.peak_of(type).value());
  }
  return peak;
}

/// One step a function, in the order of normalized().
class Normalizer {
 public:
  Normalizer(RawProfile raw, const cluster::GpuType& device, Notes& notes)
      : raw_(std::move(raw)), device_(device), notes_(notes) {}

  cost::Profile normalized() {
    drop_sentinels();
    find_time_units();
    drop_impossible();
    drop_outliers();
    find_dtype();
    add_weight_gradient();
    return profile();
  }

 private:
  /// FLOPs of one GPU in one forward pass.
  [[nodiscard]] double work(const RawRow& row) const {
    return cost::forward_work(device_, unit_of(raw_.dimensions, row), row_of(row, 1)).amount;
  }

  void drop_sentinels() {
    std::map<std::string, int> dropped;
    std::erase_if(raw_.rows, [&](const RawRow& row) {
      const bool none =
          is_sentinel(row.forward) || is_sentinel(row.backward) || !(row.forward > 0) || !(row.backward > 0);
      if (none) ++dropped[row.file];
      return none;
    });
    for (const auto& [file, count] : dropped) {
      notes_.left_out(
          "no-measurement", file,
          fmt::format("{} row{} hold no time: out of memory (1e9), zero, or no number", count, count == 1 ? "" : "s"));
    }
  }

  /// Of one file all rows are in one unit. Rows of blocks without tensor parallelism decide, if there are any: others
  /// hold exchanges or launches.
  void find_time_units() {
    std::set<std::string> files;
    for (const RawRow& row : raw_.rows) files.insert(row.file);
    for (const std::string& file : files) find_time_unit(file);
  }

  [[nodiscard]] std::vector<const RawRow*> informative_rows(const std::string& file) const {
    std::vector<const RawRow*> rows;
    const auto add = [&](auto wanted) {
      if (!rows.empty()) return;
      for (const RawRow& row : raw_.rows) {
        if (row.file == file && row.kind != cost::ProfileKind::kEmbedding && wanted(row)) rows.push_back(&row);
      }
    };
    add([](const RawRow& row) { return row.kind == cost::ProfileKind::kBlock && row.tp == 1; });
    add([](const RawRow& row) { return row.kind == cost::ProfileKind::kBlock; });
    add([](const RawRow&) { return true; });
    return rows;
  }

  void find_time_unit(const std::string& file) {
    const double peak = highest_peak(device_);
    std::vector<double> seconds_at_peak;  // per tool unit
    for (const RawRow* row : informative_rows(file)) seconds_at_peak.push_back(row->forward / work(*row));
    double scale = raw_.unit.scale;
    if (peak > 0 && !seconds_at_peak.empty()) {
      const double typical = median(seconds_at_peak);
      const auto unit = time_unit(1, peak, typical, raw_.unit);
      const auto rate = [&](const Unit& u) { return fmt::format("{:.3g} TFLOP/s", 1e-12 / (typical * u.scale)); };
      if (!unit) {
        notes_.left_out("implausible-rate", file,
                        fmt::format("no unit fits: in {} a block computes at {}, and {} has {:.3g} TFLOP/s at most; is "
                                    "it of this model and GPU?",
                                    raw_.unit.name, rate(raw_.unit), device_.name, peak / 1e12));
        std::erase_if(raw_.rows, [&](const RawRow& row) { return row.file == file; });
        return;
      }
      if (*unit != raw_.unit) {
        notes_.corrected(
            "time-unit", file,
            fmt::format("times are {}, not {}: in {} a block would compute at {}, in {} it does at {}", unit->name,
                        raw_.unit.name, raw_.unit.name, rate(raw_.unit), unit->name, rate(*unit)));
        corrections_.insert(fmt::format("times read as {}", unit->name));
        scale = unit->scale;
      }
    }
    for (RawRow& row : raw_.rows) {
      if (row.file == file) rescale(row, scale);
    }
  }

  static void rescale(RawRow& row, double scale) {
    for (double* time :
         {&row.forward, &row.backward, &row.weight_forward, &row.weight_backward, &row.weight_gradient}) {
      *time *= scale;
    }
  }

  /// What tangram.profile/1 does not take either; in seconds now.
  void drop_impossible() {
    constexpr double kMostSeconds = 1e6;
    constexpr double kMostBytes = 1e15;
    for (RawRow& row : raw_.rows) {
      if (!(row.activation < kMostBytes)) row.activation = 0;
    }
    const auto impossible = [](const RawRow& row) {
      return row.samples > 1'000'000 || row.tp > 65'536 || row.sequence_length > 100'000'000 ||
             row.forward > kMostSeconds || row.backward > kMostSeconds;
    };
    for (const RawRow& row : raw_.rows) {
      if (impossible(row)) notes_.left_out("impossible", row.file, fmt::format("{}: out of all range", where(row)));
    }
    std::erase_if(raw_.rows, impossible);
  }

  void drop_outliers() {
    std::map<std::tuple<cost::ProfileKind, std::int64_t, int, bool>, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < raw_.rows.size(); ++i) {
      const RawRow& row = raw_.rows[i];
      groups[{row.kind, row.sequence_length, row.tp, row.sequence_parallel}].push_back(i);
    }
    std::set<std::size_t> dropped;
    for (auto& [key, indices] : groups) {
      std::ranges::sort(indices, {}, [&](std::size_t i) { return raw_.rows[i].samples; });
      for (const auto time : {&RawRow::forward, &RawRow::backward}) {
        std::vector<Sample> samples;
        for (const std::size_t i : indices) {
          samples.push_back({static_cast<double>(raw_.rows[i].samples), raw_.rows[i].*time});
        }
        for (const std::size_t at : outliers(samples)) dropped.insert(indices[at]);
      }
    }
    for (auto i = dropped.rbegin(); i != dropped.rend(); ++i) {
      const RawRow& row = raw_.rows[*i];
      notes_.left_out("outlier", row.file,
                      fmt::format("{}: {:.4g} ms forward and {:.4g} ms backward cannot be beside its neighbours in "
                                  "samples; a first run that loaded kernels?",
                                  where(row), row.forward * 1e3, row.backward * 1e3));
      raw_.rows.erase(raw_.rows.begin() + static_cast<std::ptrdiff_t>(*i));
    }
  }

  /// FLOP/s of the fastest block, or of the typical head without tensor parallelism where that is more, unless no
  /// format explains it: then the head is wrong.
  [[nodiscard]] double informative_rate() const {
    double rate = 0;
    std::vector<double> heads;
    for (const RawRow& row : raw_.rows) {
      if (row.kind == cost::ProfileKind::kBlock) rate = std::max(rate, work(row) / row.forward);
      if (row.kind == cost::ProfileKind::kHead && row.tp == 1) heads.push_back(work(row) / row.forward);
    }
    const double head = median(std::move(heads));
    return head <= cost::kBoost * highest_peak(device_) ? std::max(rate, head) : rate;
  }

  /// What computes above the peak of the declared format ran in the next faster one.
  void find_dtype() {
    const double rate = informative_rate();
    const auto explains = [&](DType type) { return rate <= cost::kBoost * device_.peak_of(type).value(); };
    DType dtype = cost::matrix_format(device_, raw_.dimensions.dtype);
    for (const DType faster : {DType::kTf32, DType::kFp16, DType::kBf16}) {
      if (!(device_.peak_of(dtype).value() > 0) || explains(dtype)) break;
      if (device_.peak_of(faster).value() > device_.peak_of(dtype).value()) dtype = faster;
    }
    if (dtype != cost::matrix_format(device_, raw_.dimensions.dtype)) {
      const std::string declared(to_string(raw_.dimensions.dtype));
      notes_.corrected("dtype", raw_.source,
                       fmt::format("products ran in {}, not {}: they compute at {:.3g} TFLOP/s, {} has {:.3g} in {}",
                                   to_string(dtype), declared, rate / 1e12, device_.name,
                                   cost::matrix_peak(device_, raw_.dimensions.dtype).value() / 1e12, declared));
      corrections_.insert(fmt::format("{} where {} was declared", to_string(dtype), declared));
    }
    raw_.dimensions.dtype = dtype;
  }

  void add_weight_gradient() {
    if (!raw_.backward_measured || !weight_gradient_missing()) return;
    for (RawRow& row : raw_.rows) {
      if (row.kind == cost::ProfileKind::kEmbedding) continue;
      row.backward += row.weight_gradient > 0 ? row.weight_gradient : weight_share(row) * row.forward;
    }
    notes_.corrected(
        "missing-weight-gradient", raw_.source,
        "backward holds the gradient of the input alone; the time of the forward products with weights was "
        "added to it for the gradient of the weights");
    corrections_.insert("weight gradient added to backward");
  }

  [[nodiscard]] bool weight_gradient_missing() const {
    const double peak = cost::matrix_peak(device_, raw_.dimensions.dtype).value();
    int lacking = 0;
    int asked = 0;
    for (const RawRow& row : raw_.rows) {
      if (row.kind != cost::ProfileKind::kBlock || (raw_.includes_tp_communication && row.tp > 1)) continue;
      ++asked;
      const bool operators = row.weight_forward > 0 && row.weight_backward > 0;
      const bool lacks = operators ? row.weight_backward < cost::kLeastBackwardRatio * row.weight_forward
                                   : lacks_weight_gradient(work(row), row.forward, row.backward, peak);
      if (lacks) ++lacking;
    }
    return 2 * lacking > asked;  // one script timed all rows
  }

  /// The share of a unit's products whose one factor are weights: all but the attention core's.
  [[nodiscard]] double weight_share(const RawRow& row) const {
    if (row.kind == cost::ProfileKind::kHead) return 1;
    const model::BlockType block = unit_of(raw_.dimensions, row).block;
    return 1 - cost::attention_forward_flops(block).value() / model::forward_flops(block).value();
  }

  cost::Profile profile() {
    cost::Profile out;
    out.device = device_;
    out.date = raw_.date;
    out.includes_tp_communication = raw_.includes_tp_communication;
    out.source = raw_.source;
    for (const std::string& correction : corrections_) out.source += "; " + correction;
    out.collectives = raw_.collectives;
    std::map<std::pair<std::string, cost::ProfileKind>, std::vector<Note>> refused;
    for (const RawRow& raw : raw_.rows) {
      cost::ProfileUnit unit = unit_of(raw_.dimensions, raw);
      const cost::ProfileRow row = row_of(raw, 1);
      if (const auto anomaly = cost::find_anomaly(out, unit, row)) {
        refused[{anomaly->code, raw.kind}].push_back(
            {NoteKind::kLeftOut, anomaly->code, raw.file, fmt::format("{}: {}", where(raw), anomaly->message)});
        continue;
      }
      unit.rows = {row};
      out.units.push_back(std::move(unit));
    }
    // One script timed all embeddings: where some lack the gradient of the table, all do.
    const bool wrong_tables = std::ranges::any_of(
        refused, [](const auto& entry) { return entry.first.second == cost::ProfileKind::kEmbedding; });
    if (wrong_tables) {
      std::erase_if(out.units, [](const auto& unit) { return unit.kind == cost::ProfileKind::kEmbedding; });
    }
    for (const auto& [about, rows] : refused) {
      std::string more = rows.size() > 1 ? fmt::format("; and {} more rows like it", rows.size() - 1) : "";
      if (about.second == cost::ProfileKind::kEmbedding) more += "; all embeddings are left out with it";
      notes_.left_out(about.first, rows.front().file, rows.front().message + more);
    }
    return out;
  }

  RawProfile raw_;
  const cluster::GpuType& device_;
  Notes& notes_;
  std::set<std::string> corrections_;
};

bool same_unit(cost::ProfileUnit a, cost::ProfileUnit b) {
  a.rows.clear();
  b.rows.clear();
  return a == b;
}

auto order_of(const cost::ProfileRow& row) { return std::tie(row.degrees, row.samples); }

/// The first of equal rows stays.
void add_rows(cost::ProfileUnit& unit, const std::vector<cost::ProfileRow>& rows) {
  for (const cost::ProfileRow& row : rows) {
    const bool twice = std::ranges::any_of(unit.rows, [&](const auto& r) { return order_of(r) == order_of(row); });
    if (!twice) unit.rows.push_back(row);
  }
  std::ranges::sort(unit.rows, [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
}

void add_unit(cost::Profile& profile, const cost::ProfileUnit& unit) {
  auto known = std::ranges::find_if(profile.units, [&](const auto& u) { return same_unit(u, unit); });
  if (known == profile.units.end()) {
    profile.units.push_back(unit);
    profile.units.back().rows.clear();
    known = profile.units.end() - 1;
  }
  add_rows(*known, unit.rows);
}

void add_source(std::string& sources, const std::string& source) {
  if (sources.find(source) != std::string::npos) return;
  sources += (sources.empty() ? "" : "; ") + source;
}

}  // namespace

void Notes::add(NoteKind kind, std::string code, std::string file, std::string message) {
  Note note{kind, std::move(code), std::move(file), std::move(message)};
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(std::move(note));
}

std::vector<Note> Notes::take() {
  std::vector<Note> merged;
  std::vector<std::size_t> more;  // files beyond the first that say the same as each of those
  for (Note& note : notes_) {
    const auto same = std::ranges::find_if(
        merged, [&](const Note& n) { return n.kind == note.kind && n.code == note.code && n.message == note.message; });
    if (same == merged.end()) {
      merged.push_back(std::move(note));
      more.push_back(0);
    } else {
      ++at(more, same - merged.begin());
    }
  }
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (more[i] > 0) merged[i].file += fmt::format(" and {} more", more[i]);
  }
  notes_.clear();
  return merged;
}

cost::Profile normalized(RawProfile raw, const cluster::GpuType& device, Notes& notes) {
  return Normalizer(std::move(raw), device, notes).normalized();
}

cost::CollectiveCurve normalized_curve(cost::CollectiveCurve curve, const cluster::GpuType& device,
                                       const std::string& file, Notes& notes) {
  std::ranges::sort(curve.points, {}, [](const cost::CurvePoint& p) { return std::pair(p.bytes, p.time); });
  std::vector<cost::CurvePoint> points;
  for (auto first = curve.points.begin(); first != curve.points.end();) {
    const auto last = std::find_if(first, curve.points.end(), [&](const auto& p) { return p.bytes != first->bytes; });
    double log_sum = 0;
    for (auto point = first; point != last; ++point) log_sum += std::log(point->time.as_double());
    points.push_back({first->bytes, Nanoseconds(std::llround(std::exp(log_sum / static_cast<double>(last - first))))});
    first = last;
  }
  curve.points = std::move(points);
  while (const auto mistake = cost::find_mistake(curve, device)) {
    // A fall is the slower neighbour's fault where it is the first: that one ran cold.
    const bool cold = mistake->code == "not-monotone" && mistake->point == 1;
    notes.left_out(mistake->code, file, fmt::format("{}: {}", to_string(curve.operation), mistake->message));
    curve.points.erase(curve.points.begin() + static_cast<std::ptrdiff_t>(cold ? 0 : mistake->point));
  }
  return curve;
}

std::vector<cost::Profile> join(std::vector<cost::Profile> profiles) {
  std::vector<cost::Profile> joined;
  for (cost::Profile& profile : profiles) {
    if (profile.units.empty() && profile.collectives.empty()) continue;
    const auto alike = [&](const cost::Profile& p) {
      const bool times = !p.units.empty() && !profile.units.empty();
      return p.device.name == profile.device.name &&
             (!times || p.includes_tp_communication == profile.includes_tp_communication);
    };
    auto same = std::ranges::find_if(joined, alike);
    if (same == joined.end()) {
      joined.emplace_back();
      same = joined.end() - 1;
      same->device = profile.device;
      same->date = profile.date;
    }
    if (!profile.units.empty()) same->includes_tp_communication = profile.includes_tp_communication;
    add_source(same->source, profile.source);
    for (const cost::ProfileUnit& unit : profile.units) add_unit(*same, unit);
    same->collectives.insert(same->collectives.end(), profile.collectives.begin(), profile.collectives.end());
  }
  std::ranges::sort(joined, {},
                    [](const cost::Profile& p) { return std::pair(p.device.name, p.includes_tp_communication); });
  return joined;
}

}  // namespace tangram::profiles
