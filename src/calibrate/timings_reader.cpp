// Reads tangram.timings/1: JSON lines, a header, then the times that it speaks of, until the next header.
//
//   { "schema": "tangram.timings/1",
//     "plan": "3f0c...",                    plan_id of what ran
//     "runtime": "tangram_torch 1",         what ran it
//     "precision": "bf16", "flash_attention": true,
//     "sequence_length": 4096, "vocabulary": 32000, "hidden": 4096,
//     "types": [ ... ],                     block types as the plan's model.architecture.types has them
//     "includes_tp_communication": true,    whether exchanges of tensor (and expert-tensor) parallelism are in the
//     times;
//                                           those of context and expert parallelism never are
//     "source": "...", "date": "2026-01-31" }   optional
//   { "step": 12, "rank": 3, "gpu": "A100-80GB-SXM",    the GPU type, as the plan or the catalogue names it
//     "unit": "block", "type": "dense",     block, embedding or head; the type of blocks alone
//     "tp": 2, "cp": 1, "ep": 1, "etp": 1, "sequence_parallel": true,    these five have defaults: 1 and false
//     "samples": 2,                         of one replica
//     "recompute": "none",                  none (default), selective, full: then it is in backward_ms
//     "forward_ms": 3.21, "backward_ms": 6.4 }
//
// A time is that of one pass of one unit of one microbatch on that rank.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "modelled.hpp"
#include "tangram/base/at.hpp"
#include "tangram/calibrate/timings.hpp"
#include "tangram/cluster/gpu_names.hpp"
#include "tangram/cost/scaled_rows.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/io/json_lines.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/schema.hpp"
#include "tangram/model/block_record.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::calibrate {
namespace {

constexpr std::string_view kTimingsSchema = "tangram.timings/1";
constexpr std::int64_t kMostGpus = 1 << 20;  // of one stage

struct Header {
  model::Model model;
  bool includes_tp_communication = false;
};

struct TimingRow {
  cost::ProfileKind kind = cost::ProfileKind::kBlock;
  int type = -1;  ///< index in the header's types
  const cluster::GpuType* device = nullptr;
  cost::Degrees degrees;
  std::int64_t samples = 1;
  Observation observation;
};

bool is_date(std::string_view text) {
  constexpr std::string_view kPattern = "dddd-dd-dd";
  return std::ranges::equal(text, kPattern, [](char c, char p) { return p == '-' ? c == '-' : c >= '0' && c <= '9'; });
}

std::string read_date(io::ObjectReader& reader) {
  std::string date = reader.string_or("date", "");
  if (!date.empty() && !is_date(date)) {
    reader.error_at("date", "unknown-value", fmt::format("\"{}\" is not a date", date), "write YYYY-MM-DD");
  }
  return date;
}

std::vector<model::BlockType> read_types(io::ObjectReader& reader, const model::Model& model) {
  std::vector<model::BlockType> types;
  for (io::ObjectReader& item : reader.objects("types")) {
    model::BlockType type = model::read_block_type(item, model.hidden);
    if (type.tokens == 0) type.tokens = model.job.sequence_length;
    const bool twice = std::ranges::any_of(types, [&](const auto& known) { return known.name == type.name; });
    if (twice && !type.name.empty()) {
      item.error_at("name", "duplicate-name", fmt::format("two block types are called \"{}\"", type.name));
    }
    types.push_back(std::move(type));
  }
  return types;
}

/// One line at a time; where a file goes on after mistakes, each is told.
class TimingsReader {
 public:
  TimingsReader(std::span<const cluster::GpuType> devices, const plan::LaunchPlan* plan) : plan_(plan) {
    if (plan != nullptr) {
      for (const plan::PlanIsland& island : plan->islands) devices_.push_back(island.device);
    }
    devices_.insert(devices_.end(), devices.begin(), devices.end());
  }

  void read(const profiles::SourceFile& file) {
    header_.reset();
    header_missing_ = false;
    std::size_t rows = 0;
    for (const auto& [line, text] : io::filled_lines(file.text)) {
      if (mistakes_.size() >= kMaxDiagnostics || header_missing_) break;
      read_line(std::string(text), file.path, line);
      ++rows;
    }
    if (rows > 0) return;
    Diagnostic empty;
    empty.code = "no-timings";
    empty.where.file = file.path;
    empty.message = "the file holds no timings";
    empty.hint = fmt::format("its first line is a header with \"schema\": \"{}\"", kTimingsSchema);
    mistakes_.push_back(std::move(empty));
  }

  Expected<Timings> finished() && {
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    return std::move(timings_);
  }

 private:
  /// What one header's rows have in common.
  using Key = std::tuple<const cluster::GpuType*, cost::ProfileKind, int, cost::Degrees, std::int64_t>;

  void read_line(std::string text, const std::string& file, int line) {
    const std::size_t before = mistakes_.size();
    auto document = io::parse_json(std::move(text), file);
    if (document) {
      read_record(*document);
    } else if (!header_) {
      mistakes_.push_back(no_header(file));
      header_missing_ = true;
    } else {
      mistakes_.insert(mistakes_.end(), document.error().begin(), document.error().end());
    }
    for (std::size_t i = before; i < mistakes_.size(); ++i) mistakes_[i].where.line += line - 1;
  }

  /// In front of the first row; the caller moves it to its line.
  static Diagnostic no_header(const std::string& file) {
    Diagnostic diagnostic;
    diagnostic.code = "missing-header";
    diagnostic.where = {file, 1, 1};
    diagnostic.message = "expected a header of timings";
    diagnostic.hint = fmt::format("timings are JSON lines, the first of which has \"schema\": \"{}\"", kTimingsSchema);
    return diagnostic;
  }

  void read_record(const io::Document& document) {
    io::ObjectReader reader(document, document.root, "", mistakes_);
    if (!reader.valid()) return;
    if (reader.has("schema")) {
      read_header(reader);
    } else if (header_) {
      read_row(reader);
    } else {
      mistakes_.push_back(no_header(document.file));
      header_missing_ = true;
    }
  }

  void read_header(io::ObjectReader& reader) {
    header_.reset();
    header_missing_ = true;  // rows of a header that was not understood say nothing
    units_.clear();
    const std::size_t before = mistakes_.size();
    if (!io::has_schema(reader, kTimingsSchema)) return;
    Run run;
    Header header;
    run.plan = reader.string("plan");
    const std::string runtime = reader.string("runtime");
    model::Model& model = header.model;
    model::set_precision(model.job, reader.choice<DType>("precision", kPrecisions));
    model.job.flash_attention = reader.boolean("flash_attention");
    model.job.sequence_length = reader.integer("sequence_length", io::integer_limit("sequence_length"));
    model.vocabulary = reader.integer("vocabulary", io::integer_limit("vocabulary"));
    model.hidden = reader.integer("hidden", io::integer_limit("hidden"));
    model.types = read_types(reader, model);
    header.includes_tp_communication = reader.boolean("includes_tp_communication");
    const std::string source = reader.string_or("source", "");
    run.date = read_date(reader);
    reader.finish();
    if (mistakes_.size() != before) return;
    run.source = fmt::format("{}, plan {}{}", runtime, run.plan, source.empty() ? "" : ": " + source);
    if (is_of_plan(run.plan)) take_plan_model(model);
    timings_.runs.push_back(std::move(run));
    header_ = std::move(header);
    header_missing_ = false;
  }

  [[nodiscard]] bool is_of_plan(const std::string& plan_id) const {
    return plan_ != nullptr && plan_->plan_id == plan_id;
  }

  /// What the header does not say of the job (dropout, how gradients are added up) is the plan's.
  void take_plan_model(model::Model& model) const {
    std::vector<model::BlockType> types = std::move(model.types);
    const model::Job told = model.job;
    const std::int64_t vocabulary = model.vocabulary;
    const std::int64_t hidden = model.hidden;
    model = plan_->model;
    model.types = std::move(types);
    model.vocabulary = vocabulary;
    model.hidden = hidden;
    model.job.sequence_length = told.sequence_length;
    model.job.flash_attention = told.flash_attention;
    if (model.job.precision != told.precision) model::set_precision(model.job, told.precision);
  }

  void read_row(io::ObjectReader& reader) {
    const std::size_t before = mistakes_.size();
    TimingRow row;
    row.observation.run = static_cast<int>(timings_.runs.size()) - 1;
    row.observation.step = reader.integer("step", io::integer_limit("step"));
    row.observation.rank = static_cast<int>(reader.integer("rank", io::integer_limit("rank")));
    row.device = read_device(reader);
    row.kind = reader.choice<cost::ProfileKind>("unit", {{"block", cost::ProfileKind::kBlock},
                                                         {"embedding", cost::ProfileKind::kEmbedding},
                                                         {"head", cost::ProfileKind::kHead}});
    if (row.kind == cost::ProfileKind::kBlock) row.type = read_type_name(reader);
    read_degrees(reader, row.degrees);
    row.samples = reader.integer("samples", io::integer_limit("samples"));
    row.observation.recompute = reader.choice_or<cost::RecomputeMode>("recompute", cost::RecomputeMode::kNone,
                                                                      {{"none", cost::RecomputeMode::kNone},
                                                                       {"selective", cost::RecomputeMode::kSelective},
                                                                       {"full", cost::RecomputeMode::kFull}});
    row.observation.forward = reader.number("forward_ms", io::number_limit("forward_ms")) / 1e3;
    row.observation.backward = reader.number("backward_ms", io::number_limit("backward_ms")) / 1e3;
    reader.finish();
    if (mistakes_.size() == before) add(row, reader);
  }

  const cluster::GpuType* read_device(io::ObjectReader& reader) {
    const std::string name = reader.string("gpu");
    if (name.empty()) return nullptr;
    const cluster::GpuType* device = cluster::device_of(name, devices_);
    if (device != nullptr) return device;
    const char* types = plan_ == nullptr
                            ? "types are those of the catalogue; --plan FILE adds those of the plan's fleet"
                            : "types are those of the catalogue and of the plan's fleet";
    reader.error_at("gpu", "unknown-name", fmt::format("there is no GPU type \"{}\"", name),
                    cluster::suggested_gpu(name, devices_, types));
    return nullptr;
  }

  int read_type_name(io::ObjectReader& reader) {
    std::vector<std::string> names;
    for (const model::BlockType& type : header_->model.types) names.push_back(type.name);
    return static_cast<int>(reader.choice_of("type", names).value_or(0));
  }

  static void read_degrees(io::ObjectReader& reader, cost::Degrees& degrees) {
    const auto degree = [&](std::string_view key) {
      return static_cast<int>(reader.integer_or(key, 1, io::integer_limit("tp")));
    };
    degrees.tp = degree("tp");
    degrees.cp = degree("cp");
    degrees.ep = degree("ep");
    degrees.etp = degree("etp");
    degrees.sequence_parallel = reader.boolean_or("sequence_parallel", false);
  }

  void add(const TimingRow& row, io::ObjectReader& reader) {
    const Key key{row.device, row.kind, row.type, row.degrees, row.samples};
    auto known = units_.find(key);
    if (known == units_.end()) {
      const auto index = unit_of(row, reader);
      if (!index) return;
      known = units_.emplace(key, TimedAs{*index, share_of(row)}).first;
    }
    Observation observation = row.observation;
    observation.share = known->second.share;
    timings_.units[known->second.unit].observations.push_back(observation);
  }

  /// Of a plan's units, which may be frozen or have adapters.
  [[nodiscard]] cost::Passes share_of(const TimingRow& row) const {
    if (!is_of_plan(timings_.runs.back().plan)) return {1, 1};
    const Placed placed = placed_for(row);
    const std::string type = row.kind == cost::ProfileKind::kBlock ? at(header_->model.types, row.type).name : "";
    return share_of_trained(plan_->model, row.kind, type, placed.degrees, row.samples, placed.shape);
  }

  /// Where the row's times belong, in a group that another header may have opened.
  std::optional<std::size_t> unit_of(const TimingRow& row, io::ObjectReader& reader) {
    const std::string why = why_impossible(row);
    if (!why.empty()) {
      reader.error_at("tp", "unsupported-degrees", why, "degrees and samples are those that the unit ran with");
      return std::nullopt;
    }
    TimedUnit unit;
    unit.device = *row.device;
    const model::Model& model = header_->model;
    if (row.kind == cost::ProfileKind::kBlock) {
      unit.unit = block_of(at(model.types, row.type), model.job, unit.device);
      unit.type = at(model.types, row.type).name;
    } else {
      unit.unit = edge_of(row.kind, model, unit.device);
    }
    unit.degrees = row.degrees;
    unit.samples = row.samples;
    unit.includes_tp_communication = header_->includes_tp_communication;
    const auto same = std::ranges::find_if(timings_.units, [&](const TimedUnit& other) {
      return other.device.name == unit.device.name && other.unit == unit.unit && other.degrees == unit.degrees &&
             other.samples == unit.samples && other.includes_tp_communication == unit.includes_tp_communication;
    });
    if (same != timings_.units.end()) return static_cast<std::size_t>(same - timings_.units.begin());
    const Placed placed = placed_for(row);
    unit.modelled = modelled(model, unit, placed.degrees, placed.shape);
    unit.elsewhere = modelled_elsewhere(model, unit, [&](int gpus) { return usual_shape(*row.device, gpus); });
    timings_.units.push_back(std::move(unit));
    return timings_.units.size() - 1;
  }

  /// Empty: the unit can run so.
  [[nodiscard]] std::string why_impossible(const TimingRow& row) const {
    const cost::Degrees& d = row.degrees;
    if (std::int64_t{d.tp} * d.cp > kMostGpus || std::int64_t{d.ep} * d.etp > kMostGpus ||
        std::int64_t{d.tp} * d.cp * d.ep * d.etp > kMostGpus) {
      return "more GPUs than any stage has";
    }
    const model::Model& model = header_->model;
    if (!(cost::matrix_peak(*row.device, model.job.precision).value() > 0)) {
      return fmt::format("{} has no peak rate for {} or any format it can fall back to", row.device->name,
                         to_string(model.job.precision));
    }
    if (d.sequence_parallel && d.tp == 1) return "sequence parallelism shards over tp, which is 1";
    if (d.ep * d.etp > 1 && !model.has_experts()) return "expert parallelism needs experts";
    if (row.kind != cost::ProfileKind::kBlock) return {};
    model::Model alone;
    alone.types = {at(model.types, row.type)};
    alone.job = model.job;
    cost::Degrees degrees = cost::with_least_replicas(d);
    if (!alone.types.front().feed_forward.is_moe()) {  // beside blocks of experts: ep is theirs
      degrees = d;
      degrees.ep = degrees.etp = 1;
    }
    return cost::why_unsupported(alone, {.runs = {{0, 1}}}, degrees, degrees.dp);
  }

  /// GPUs, and degrees that take all of them.
  struct Placed {
    cluster::DeviceShape shape;
    cost::Degrees degrees;
  };
  [[nodiscard]] Placed placed_for(const TimingRow& row) const {
    Placed placed{shape_for(row), row.degrees};
    placed.degrees.dp = placed.shape.gpus() / (row.degrees.tp * row.degrees.cp);
    return placed;
  }

  /// That of the plan's part with these degrees, where the plan ran; else one host.
  [[nodiscard]] cluster::DeviceShape shape_for(const TimingRow& row) const {
    if (is_of_plan(timings_.runs.back().plan)) {
      for (const plan::Stage& stage : plan_->stages) {
        for (const plan::Part& part : stage.parts) {
          cost::Degrees degrees = part.strategy.degrees;
          degrees.dp = degrees.dp_replicate = 1;
          const bool same = degrees == row.degrees && plan_->island(part.island).device.name == row.device->name;
          if (same) return plan::shape_of(*plan_, part);
        }
      }
    }
    return cost::one_host(*row.device, cost::with_least_replicas(row.degrees).gpus());
  }

  /// On the first island of the type, where the plan has one; else one host.
  [[nodiscard]] std::optional<cluster::DeviceShape> usual_shape(const cluster::GpuType& device, int gpus) const {
    if (plan_ != nullptr) {
      for (const plan::PlanIsland& island : plan_->islands) {
        if (island.device.name == device.name) return island_shape(island, gpus);
      }
    }
    return cost::one_host(device, gpus);
  }

  const plan::LaunchPlan* plan_;
  std::vector<cluster::GpuType> devices_;
  std::optional<Header> header_;
  bool header_missing_ = false;
  struct TimedAs {
    std::size_t unit = 0;  ///< index in Timings::units
    cost::Passes share;
  };
  std::map<Key, TimedAs> units_;  ///< of the header
  Timings timings_;
  Diagnostics mistakes_;
};

}  // namespace

Expected<Timings> read_timings(const std::vector<profiles::SourceFile>& files,
                               std::span<const cluster::GpuType> devices, const plan::LaunchPlan* plan) {
  TimingsReader reader(devices, plan);
  for (const profiles::SourceFile& file : files) reader.read(file);
  return std::move(reader).finished();
}

}  // namespace tangram::calibrate
