#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "embedded_text.hpp"
#include "names.hpp"
#include "record_json.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/schema.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

namespace {

constexpr std::int64_t kMost = 1'000'000'000'000;  // samples, positions, microbatches
constexpr std::int64_t kMostDegree = 1 << 20;

/// How many of everything there are: known before any reference is read, so that a bad one is reported at its place.
struct Counts {
  std::int64_t gpu_types = 0;
  std::int64_t islands = 0;
  std::int64_t pipelines = 0;
  std::int64_t stages = 0;
  std::int64_t ranks = 0;
};

std::int64_t length_of(const io::Node& root, std::string_view key) {
  const io::Node* node = root.find(key);
  return node == nullptr ? 0 : static_cast<std::int64_t>(node->items.size());
}

int read_index(io::ObjectReader& reader, std::string_view key, std::int64_t count) {
  const std::int64_t value = reader.integer(key, {0, std::max<std::int64_t>(count - 1, 0)});
  return static_cast<int>(std::clamp<std::int64_t>(value, 0, std::max<std::int64_t>(count - 1, 0)));
}

/// Identifiers are written for people and programs, and must equal the position.
int read_identifier(io::ObjectReader& reader, std::string_view key, std::size_t position) {
  const std::int64_t value = reader.integer(key, {0, kMostDegree * 64});
  if (value != static_cast<std::int64_t>(position)) {
    reader.error_at(key, "wrong-identifier",
                    std::string(key) + " must be the position in the list, " + std::to_string(position));
  }
  return static_cast<int>(position);
}

std::vector<int> read_integers(io::ObjectReader& reader, std::string_view key, std::int64_t count) {
  std::vector<int> values;
  const io::Node* node = reader.raw(key);
  if (node == nullptr || node->kind != io::NodeKind::kArray) {
    reader.error_at(key, "wrong-type", std::string(key) + " must be an array of integers");
    return values;
  }
  for (const auto& item : node->items) {
    if (item.kind != io::NodeKind::kInteger || item.integer < 0 || item.integer >= count) {
      reader.error_at(item, reader.pointer() + "/" + std::string(key), "out-of-range",
                      "expected an integer from 0 to " + std::to_string(count - 1));
      continue;
    }
    values.push_back(static_cast<int>(item.integer));
  }
  return values;
}

/// A half-open range [first, last), first <= last <= most.
std::array<std::int64_t, 2> read_range(io::ObjectReader& reader, std::string_view key, std::int64_t most) {
  const io::Node* node = reader.raw(key);
  if (node != nullptr && node->kind == io::NodeKind::kArray && node->items.size() == 2) {
    const auto& first = node->items[0];
    const auto& last = node->items[1];
    if (first.kind == io::NodeKind::kInteger && last.kind == io::NodeKind::kInteger && first.integer >= 0 &&
        first.integer <= last.integer && last.integer <= most) {
      return {first.integer, last.integer};
    }
  }
  reader.error_at(key, "wrong-range",
                  std::string(key) + " must be [first, last] with 0 <= first <= last <= " + std::to_string(most));
  return {0, 0};
}

/// A member that repeats what others say; it must agree.
void expect(io::ObjectReader& reader, std::string_view key, std::int64_t value) {
  if (reader.integer(key) != value) {
    reader.error_at(key, "inconsistent", std::string(key) + " must be " + std::to_string(value));
  }
}
void expect(io::ObjectReader& reader, std::string_view key, std::string_view value) {
  if (reader.string(key) != value) {
    reader.error_at(key, "inconsistent", std::string(key) + " must be \"" + std::string(value) + '"');
  }
}

std::string read_embedded(io::ObjectReader& reader, const char* key) {
  const io::Node* node = reader.raw(key);
  if (node == nullptr) return {};
  if (node->kind == io::NodeKind::kString) return node->text;
  const auto parsed = Json::parse(embedded_text(reader.document(), *node), nullptr, false, true);
  return parsed.is_discarded() ? std::string() : io::write_compact(parsed);
}

constexpr io::IntegerRange kTally{0, std::numeric_limits<std::int64_t>::max()};

std::vector<parallelizer::CountedReason> read_reasons(io::ObjectReader& reader, std::string_view key) {
  std::vector<parallelizer::CountedReason> reasons;
  for (io::ObjectReader& entry : reader.objects_if(key)) {
    parallelizer::CountedReason reason;
    reason.code = entry.string("code");
    reason.count = entry.integer("count", kTally);
    reason.example = entry.string_or("example", "");
    entry.finish();
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

parallelizer::Tally read_outsider(io::ObjectReader& reader) {
  parallelizer::Tally tally;
  tally.info = {reader.string("name"), reader.string_or("version", ""), reader.boolean_or("deterministic", true),
                /*built_in=*/false};
  tally.queries = reader.integer("queries", kTally);
  tally.plans = reader.integer("plans", kTally);
  tally.infeasible = reader.integer("infeasible", kTally);
  tally.unsupported = reader.integer("unsupported", kTally);
  if (auto claimed = reader.object_if("claimed_time_over_recomputed")) {
    tally.claimed = {claimed->number("least", io::kNotNegative), claimed->number("most", io::kNotNegative)};
    claimed->finish();
  }
  tally.rejected = read_reasons(reader, "rejected");
  tally.failed = read_reasons(reader, "failed");
  reader.finish();
  return tally;
}

PlanProvenance read_provenance(io::ObjectReader& reader) {
  PlanProvenance provenance;
  provenance.version = reader.string_or("version", "");
  for (auto& [name, text] : reader.string_members("inputs")) provenance.inputs.push_back({name, text});
  provenance.parallelizers = reader.strings_if("parallelizers");
  for (io::ObjectReader& entry : reader.objects_if("outside_parallelizers")) {
    provenance.outsiders.push_back(read_outsider(entry));
  }
  provenance.level = reader.string_or("level", "");
  provenance.space = read_embedded(reader, "space");
  provenance.search = read_embedded(reader, "search");
  provenance.states = reader.integer("states", {0, std::numeric_limits<std::int64_t>::max()});
  provenance.labels = reader.integer("labels", {0, std::numeric_limits<std::int64_t>::max()});
  provenance.objective = reader.string_or("objective", provenance.objective);
  provenance.optimal = reader.boolean("optimal");
  provenance.search_bound = read_seconds(reader, "search_bound_s");
  provenance.relaxed_bound = read_seconds(reader, "relaxed_bound_s");
  provenance.search_gap = reader.number("search_gap");
  provenance.relaxed_gap = reader.number("relaxed_gap");
  provenance.note = reader.string_or("note", "");
  reader.finish();
  return provenance;
}

void read_batch(io::ObjectReader& reader, const LaunchPlan& plan) {
  expect(reader, "global", plan.model.job.global_batch);
  if (!plan.pipelines.empty()) {
    expect(reader, "microbatch", plan.pipelines.front().microbatch);
    expect(reader, "num_microbatches", plan.pipelines.front().microbatches);
  }
  expect(reader, "loss_normalization", plan.model.job.loss_normalization);
  reader.finish();
}

PlanIsland read_island(io::ObjectReader& reader, std::size_t position, const std::vector<cluster::GpuType>& devices) {
  PlanIsland island;
  island.id = read_identifier(reader, "id", position);
  island.island_class = reader.string("class");
  const auto record =
      static_cast<std::size_t>(read_index(reader, "gpu_type_record", static_cast<std::int64_t>(devices.size())));
  if (record < devices.size()) {
    island.device = devices[record];
    expect(reader, "gpu_type", island.device.name);
  } else {
    reader.ignore("gpu_type");
  }
  island.gpus_per_member = static_cast<int>(reader.integer("gpus_per_member", {1, kMostDegree}));
  island.members_per_island = static_cast<int>(reader.integer("members_per_island", {1, kMostDegree}));
  island.inside_member = read_link(reader, "inside_member");
  island.between_members = read_link(reader, "between_members");
  island.between_islands = read_link(reader, "between_islands");
  island.price_per_gpu_hour = Dollars(reader.number("price_per_gpu_hour", io::kNotNegative));
  for (auto& node : reader.objects("nodes")) {
    HostGpus entry;
    entry.host = node.string("host");
    entry.gpus = read_integers(node, "gpus", kMostDegree);
    node.finish();
    island.nodes.push_back(std::move(entry));
  }
  reader.finish();
  return island;
}

Pipeline read_pipeline(io::ObjectReader& reader, std::size_t position, const Counts& counts) {
  Pipeline pipeline;
  pipeline.id = read_identifier(reader, "id", position);
  constexpr io::IntegerRange kBatch = io::integer_limit("global_batch_samples");
  pipeline.samples = reader.integer("samples", kBatch);
  pipeline.microbatch = reader.integer("microbatch", kBatch);
  pipeline.microbatches = reader.integer("num_microbatches", kBatch);
  if (reader.has("last_microbatch")) expect(reader, "last_microbatch", pipeline.last_microbatch());
  pipeline.stages = read_integers(reader, "stages", counts.stages);
  if (pipeline.stages.empty()) reader.error_at("stages", "empty", "a pipeline has at least one stage");
  reader.finish();
  return pipeline;
}

PartPrediction read_prediction(io::ObjectReader& reader) {
  PartPrediction predicted;
  predicted.forward = read_milliseconds(reader, "forward_ms");
  predicted.backward = read_milliseconds(reader, "backward_ms");
  predicted.gradient_sync = read_milliseconds(reader, "gradient_sync_ms");
  predicted.gradient_sync_exposed = read_milliseconds(reader, "gradient_sync_exposed_ms");
  predicted.optimizer_step = read_milliseconds(reader, "optimizer_step_ms");
  predicted.static_memory = read_bytes(reader, "static_bytes");
  predicted.transient = read_bytes(reader, "transient_bytes");
  predicted.activation = read_bytes(reader, "activation_bytes");
  predicted.peak_memory = read_bytes(reader, "peak_memory_bytes");
  predicted.usable_memory = read_bytes(reader, "usable_bytes");
  predicted.in_flight = reader.integer("in_flight", {1, kMost});
  predicted.provenance =
      reader.choice<cost::Provenance>("provenance", {{"measured", cost::Provenance::kMeasured},
                                                     {"interpolated", cost::Provenance::kInterpolated},
                                                     {"modelled", cost::Provenance::kModelled}});
  reader.finish();
  return predicted;
}

cost::Degrees read_degrees(io::ObjectReader& reader) {
  cost::Degrees degrees;
  const auto degree = [&](std::string_view key) { return static_cast<int>(reader.integer(key, {1, kMostDegree})); };
  degrees.tp = degree("tp");
  degrees.cp = degree("cp");
  degrees.dp = degree("dp");
  degrees.ep = degree("ep");
  degrees.etp = degree("etp");
  degrees.sequence_parallel = reader.boolean("sequence_parallel");
  expect(reader, "order", kRankOrder);
  const std::int64_t pair = std::int64_t{degrees.tp} * degrees.cp;
  if (pair > kMostDegree || pair * degrees.dp > kMostDegree) {
    reader.error_at("tp", "out-of-range", "tp x cp x dp is more GPUs than any plan has");
    degrees = {};
  }
  reader.finish();
  return degrees;
}

cost::BlockRun read_block_run(io::ObjectReader& reader) {
  using cost::RecomputeMode;
  cost::BlockRun run;
  run.blocks = static_cast<int>(reader.integer("blocks", {1, kMostDegree}));
  run.policy.zero = static_cast<int>(reader.integer("zero", {0, 3}));
  run.policy.recompute = reader.choice<RecomputeMode>(
      "recompute",
      {{"none", RecomputeMode::kNone}, {"selective", RecomputeMode::kSelective}, {"full", RecomputeMode::kFull}});
  reader.finish();
  return run;
}

cost::MemoryPolicy read_policy(io::ObjectReader& part) {
  using cost::RecomputeMode;
  cost::MemoryPolicy policy;
  policy.zero = static_cast<int>(part.integer("zero", {0, 3}));
  if (auto recompute = part.object("recompute")) {
    policy.recompute = recompute->choice<RecomputeMode>("granularity", {{"none", RecomputeMode::kNone},
                                                                        {"selective", RecomputeMode::kSelective},
                                                                        {"full", RecomputeMode::kFull},
                                                                        {kMixed, RecomputeMode::kNone}});
    const io::Node* said = recompute->raw("granularity");
    if (said != nullptr && (said->text == kMixed) != part.has("block_runs")) {
      recompute->error_at("granularity", "inconsistent", "is \"mixed\" where there are block_runs, and only there");
    }
    expect(*recompute, "method", recompute_method(policy.recompute));
    policy.recompute_layers = static_cast<int>(recompute->integer("layers", {0, kMostDegree}));
    recompute->finish();
  }
  if (part.has("block_runs")) {
    for (auto& run : part.objects("block_runs")) policy.runs.push_back(read_block_run(run));
  }
  return policy;
}

Part read_part(io::ObjectReader& reader, const Counts& counts) {
  Part part;
  part.island = read_index(reader, "island", counts.islands);
  part.samples = reader.integer("samples", {1, kMost});
  if (auto parallel = reader.object("parallel")) part.strategy.degrees = read_degrees(*parallel);
  expect(reader, "samples_per_replica", part.samples_per_replica());
  if (auto ranks = reader.object("ranks")) {
    const int count = part.strategy.degrees.gpus();
    part.first_rank = read_index(*ranks, "first", counts.ranks);
    expect(*ranks, "count", count);
    if (part.first_rank + count > counts.ranks) {
      ranks->error_at("count", "out-of-range", "these ranks are more than the plan lists");
    }
    ranks->finish();
  }
  part.members = static_cast<int>(reader.integer("members", {1, kMostDegree}));
  part.strategy.policy = read_policy(reader);
  part.parallelizer = reader.string_or("parallelizer", "");
  part.opaque = reader.string_or("opaque", "");
  if (auto predicted = reader.object("predicted")) part.predicted = read_prediction(*predicted);
  reader.finish();
  return part;
}

Stage read_stage(io::ObjectReader& reader, std::size_t position, const Counts& counts, int blocks) {
  Stage stage;
  stage.id = read_identifier(reader, "id", position);
  stage.pipeline = read_index(reader, "pipeline", counts.pipelines);
  const auto range = read_range(reader, "blocks", blocks);
  if (range[0] == range[1]) reader.error_at("blocks", "empty", "a stage holds at least one block");
  stage.first = static_cast<int>(range[0]);
  stage.last = static_cast<int>(range[1]);
  stage.embedding = reader.boolean("embedding");
  stage.head = reader.boolean("head");
  if (auto schedule = reader.object("schedule")) {
    stage.warmup = schedule->integer("warmup", {0, kMost});
    schedule->finish();
  }
  for (auto& part : reader.objects("parts")) stage.parts.push_back(read_part(part, counts));
  reader.finish();
  return stage;
}

Transfer read_transfer(io::ObjectReader& reader, const Counts& counts) {
  Transfer transfer;
  transfer.src = read_index(reader, "src", counts.ranks);
  transfer.dst = read_index(reader, "dst", counts.ranks);
  const auto samples = read_range(reader, "samples", kMost);
  const auto seq = read_range(reader, "seq", kMost);
  transfer.sample_first = samples[0];
  transfer.sample_last = samples[1];
  transfer.seq_first = seq[0];
  transfer.seq_last = seq[1];
  transfer.bytes = read_bytes(reader, "bytes");
  reader.finish();
  return transfer;
}

std::int64_t parts_of(const std::vector<Stage>& stages, int stage) {
  const auto index = static_cast<std::size_t>(stage);
  return index < stages.size() ? static_cast<std::int64_t>(stages[index].parts.size()) : 0;
}

Boundary read_boundary(io::ObjectReader& reader, const Counts& counts, const std::vector<Stage>& stages) {
  Boundary boundary;
  boundary.from = read_index(reader, "from", counts.stages);
  boundary.to = read_index(reader, "to", counts.stages);
  boundary.mode = reader.choice<BoundaryMode>("mode", {{"equal", BoundaryMode::kEqual},
                                                       {"fan_in", BoundaryMode::kFanIn},
                                                       {"fan_out", BoundaryMode::kFanOut},
                                                       {"overlap", BoundaryMode::kOverlap}});
  boundary.link = read_link(reader, "link");
  boundary.source_part = read_index(reader, "source_part", parts_of(stages, boundary.from));
  boundary.target_part = read_index(reader, "target_part", parts_of(stages, boundary.to));
  boundary.latency = read_milliseconds(reader, "latency_ms");
  boundary.occupancy = read_milliseconds(reader, "occupancy_ms");
  for (auto& transfer : reader.objects("transfers")) boundary.transfers.push_back(read_transfer(transfer, counts));
  reader.finish();
  return boundary;
}

Rank read_rank(io::ObjectReader& reader, std::size_t position, const Counts& counts, const std::vector<Stage>& stages) {
  Rank rank;
  const auto coordinate = [&](std::string_view key) { return static_cast<int>(reader.integer(key, {0, kMostDegree})); };
  rank.rank = read_identifier(reader, "rank", position);
  rank.host = reader.string("host");
  rank.local_rank = coordinate("local_rank");
  rank.gpu = coordinate("gpu");
  rank.island = read_index(reader, "island", counts.islands);
  rank.stage = read_index(reader, "stage", counts.stages);
  rank.part = read_index(reader, "part", parts_of(stages, rank.stage));
  rank.replica = read_index(reader, "replica", counts.pipelines);
  rank.tp = coordinate("tp");
  rank.cp = coordinate("cp");
  rank.dp = coordinate("dp");
  rank.ep = coordinate("ep");
  rank.etp = coordinate("etp");
  rank.edp = coordinate("edp");
  reader.finish();
  return rank;
}

Predicted read_predicted(io::ObjectReader& reader, const Counts& counts) {
  Predicted predicted;
  predicted.iteration = read_seconds(reader, "iteration_s");
  predicted.closed_form = read_seconds(reader, "closed_form_s");
  predicted.tokens_per_s = reader.number("tokens_per_s", io::kNotNegative);
  predicted.mfu = reader.number("mfu", io::kNotNegative);
  predicted.mfu_fleet = reader.number("mfu_fleet", io::kNotNegative);
  predicted.cost_per_mtoken = reader.number("cost_per_mtoken", io::kNotNegative);
  predicted.bottleneck_stage = read_index(reader, "bottleneck_stage", counts.stages);
  predicted.bubble_fraction = reader.number("bubble_fraction");
  if (auto breakdown = reader.object("breakdown")) {
    predicted.breakdown.compute = breakdown->number("compute_s");
    predicted.breakdown.bubble = breakdown->number("bubble_s");
    predicted.breakdown.exposed_sync = breakdown->number("exposed_sync_s");
    predicted.breakdown.optimizer = breakdown->number("optimizer_s");
    breakdown->finish();
  }
  reader.finish();
  return predicted;
}

std::vector<TargetVerdict> read_targets(io::ObjectReader& reader, const Counts& counts) {
  std::vector<TargetVerdict> targets;
  for (auto& [name, entry] : reader.object_members("targets")) {
    TargetVerdict verdict;
    verdict.target = name;
    verdict.ok = entry.boolean("ok");
    for (auto& item : entry.objects_if("reasons")) {
      TargetReason reason;
      reason.code = item.string("code");
      reason.stages = read_integers(item, "stages", counts.stages);
      reason.text = item.string("text");
      item.finish();
      verdict.reasons.push_back(std::move(reason));
    }
    entry.finish();
    targets.push_back(std::move(verdict));
  }
  return targets;
}

void read_model_into(LaunchPlan& plan, io::ObjectReader& reader) {
  auto member = reader.object("model");
  if (!member) return;
  auto model = model::read_model(embedded_text(reader.document(), member->node()), reader.document().file);
  if (model) {
    plan.model = std::move(*model);
  } else {
    for (auto& diagnostic : model.error()) reader.sink().push_back(std::move(diagnostic));
  }
}

void read_profile_into(cost::ProfileSet& profiles, io::ObjectReader& reader,
                       const std::vector<cluster::GpuType>& devices) {
  const auto record =
      static_cast<std::size_t>(read_index(reader, "gpu_type_record", static_cast<std::int64_t>(devices.size())));
  auto profile = reader.object("profile");
  reader.finish();
  if (!profile || record >= devices.size()) return;
  const std::size_t before = reader.sink().size();
  cost::Profile read = cost::read_profile(*profile, std::span(&devices[record], 1));
  if (reader.sink().size() == before) profiles.add(std::move(read));
}

/// Lists that may be empty, but must be there: where one is missing the file was cut.
void need(io::ObjectReader& reader, std::string_view key) {
  if (!reader.valid() || reader.has(key)) return;
  reader.error_at(key, "missing-list", "missing key \"" + std::string(key) + '"',
                  "plans always have it, if only empty");
}

/// Plans that were written before there was one are for no runtime in particular.
runtime::Target read_execution(io::ObjectReader& reader) {
  const std::span<const runtime::Runtime> runtimes = runtime::runtimes();
  std::vector<std::string> names;
  for (const runtime::Runtime& runtime : runtimes) names.emplace_back(runtime.name);
  const auto number = reader.choice_of("runtime", names);
  if (!number) return runtime::Target::kGeneric;
  const runtime::Runtime& runtime = runtimes[*number];
  expect(reader, "transfers", to_string(runtime.semantics.transfers));
  expect(reader, "warmup", to_string(runtime.semantics.warmup));
  reader.finish();
  return runtime.target;
}

LaunchPlan read_document(io::ObjectReader& reader, const Counts& counts) {
  LaunchPlan plan;
  if (!io::has_schema(reader, kSchema)) return plan;
  plan.plan_id = reader.string("plan_id");
  if (auto provenance = reader.object("provenance")) plan.provenance = read_provenance(*provenance);
  if (auto fleet = reader.object("fleet")) {
    plan.fleet_name = fleet->string_or("name", "");
    plan.fleet_gpus = static_cast<int>(fleet->integer("gpus", {1, kMostDegree * 16}));
    fleet->finish();
  }
  read_model_into(plan, reader);
  if (auto execution = reader.object_if("execution")) plan.runtime = read_execution(*execution);
  std::vector<cluster::GpuType> devices;
  for (auto& item : reader.objects("gpu_types")) devices.push_back(read_gpu_type(item));
  for (auto& item : reader.objects("islands")) plan.islands.push_back(read_island(item, plan.islands.size(), devices));
  for (auto& item : reader.objects("pipelines")) {
    plan.pipelines.push_back(read_pipeline(item, plan.pipelines.size(), counts));
  }
  for (auto& item : reader.objects("stages")) {
    plan.stages.push_back(read_stage(item, plan.stages.size(), counts, plan.model.block_count()));
  }
  for (const char* list : {"boundaries", "idle", "targets"}) need(reader, list);
  for (auto& item : reader.objects_if("boundaries")) {
    plan.boundaries.push_back(read_boundary(item, counts, plan.stages));
  }
  for (auto& item : reader.objects("ranks")) {
    plan.ranks.push_back(read_rank(item, plan.ranks.size(), counts, plan.stages));
  }
  for (auto& item : reader.objects_if("idle")) {
    IdleGpus idle{item.string("class"), static_cast<int>(item.integer("gpus", io::kCount)),
                  item.string_or("reason", "")};
    item.finish();
    plan.idle.push_back(std::move(idle));
  }
  for (auto& item : reader.objects_if("profiles")) read_profile_into(plan.profiles, item, devices);
  if (auto predicted = reader.object("predicted")) plan.predicted = read_predicted(*predicted, counts);
  plan.targets = read_targets(reader, counts);
  if (auto batch = reader.object("batch")) read_batch(*batch, plan);
  reader.finish();
  return plan;
}

}  // namespace

Expected<LaunchPlan> read_plan(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  const Counts counts{length_of(document->root, "gpu_types"), length_of(document->root, "islands"),
                      length_of(document->root, "pipelines"), length_of(document->root, "stages"),
                      length_of(document->root, "ranks")};
  Diagnostics sink;
  io::ObjectReader reader(*document, document->root, "", sink);
  LaunchPlan plan;
  if (reader.valid()) plan = read_document(reader, counts);
  if (!sink.empty()) return fail(std::move(sink));
  return plan;
}

}  // namespace tangram::plan
