#include "planning_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "inputs.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/compose/search_tuning.hpp"
#include "tangram/cost/scaled_rows.hpp"
#include "tangram/model/split.hpp"
#include "tangram/model/techniques.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::app {

namespace {

constexpr std::int64_t kManyReplicas = 1 << 20;

/// Options that train adapters, and how the matrices that these are beside are held.
constexpr std::pair<std::string_view, model::BaseQuantization> kAdapterOptions[] = {
    {"lora", model::BaseQuantization::kNone},
    {"qlora", model::BaseQuantization::kNf4Double},
};

model::JobOverrides overrides_of(const Settings& settings) {
  model::JobOverrides overrides{settings.count("seq-len"), settings.count("global-batch"), settings.count("microbatch"),
                                settings.files("freeze")};
  const std::vector<std::string> options = settings.files("options");
  if (!options.empty()) overrides.options = model::wanted_options(options);
  // Read without a mistake where it was written.
  if (auto constraints = model::read_constraints(settings.files("module"))) {
    overrides.constraints = *std::move(constraints);
  }
  for (const auto& [option, base] : kAdapterOptions) {
    const std::vector<std::string> words = settings.files(option);
    if (words.empty()) continue;
    overrides.adapters = model::read_adapters(words).value_or(model::Adapters{});
    overrides.adapters->base = base;
  }
  return overrides;
}

std::optional<Diagnostic> adapters_complaint(const Settings& settings) {
  if (settings.files("lora").empty() || settings.files("qlora").empty()) return std::nullopt;
  return problem(ErrorKind::kUsage, "conflicting-options", "--lora and --qlora exclude each other",
                 "--qlora has adapters beside weights in 4 bits, --lora beside weights as they are");
}

/// The names were checked where they were written.
void set_technique(model::Techniques& techniques, const std::string& name, bool allowed) {
  static_cast<void>(model::set_technique(techniques, name, allowed));
}

/// --allow keeps what both it and the model file allow; --forbid takes away.
void restrict_techniques(const Settings& settings, model::Model& model) {
  const auto allowed = settings.techniques("allow");
  if (!allowed.empty()) {
    model::Techniques listed = model::no_techniques();
    for (const std::string& name : allowed) set_technique(listed, name, true);
    for (const model::TechniqueName& name : model::technique_names()) {
      if (!(listed.*name.flags[0])) model.job.allow.*name.flags[0] = false;
    }
  }
  for (const std::string& name : settings.techniques("forbid")) set_technique(model.job.allow, name, false);
}

Expected<compose::SearchTuning> tuning_of_developers() {
  constexpr const char* kVariable = "TANGRAM_SEARCH_WITHOUT";
  const char* names = environment_variable(kVariable);
  auto tuning = compose::without({}, names == nullptr ? "" : names);
  if (tuning) return tuning;
  for (Diagnostic& wrong : tuning.error()) wrong.message = std::string(kVariable) + ": " + wrong.message;
  return tuning;
}

runtime::Target target_of(const Settings& settings) {
  return runtime::target_named(settings.text("target")).value_or(runtime::Target::kGeneric);
}

planner::Pipelines pipelines_of(const Settings& settings) {
  const std::string& text = settings.text("pipelines");
  if (text == "any") return planner::Pipelines::kAny;
  return text == "equal" ? planner::Pipelines::kEqual : planner::Pipelines::kAuto;
}

/// Where no GPU of the fleet was measured with a block of the model.
std::optional<Diagnostic> nothing_measured(const PlanningInputs& inputs) {
  const auto was_measured = [&](const cluster::GpuType& device, const model::BlockType& block) {
    return std::isfinite(inputs.profiles.least_block_gpu_seconds(block, inputs.model.job, device));
  };
  for (const cluster::Node& node : inputs.fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) {
      for (const model::BlockType& block : inputs.model.types) {
        if (was_measured(group.device, block)) return std::nullopt;
      }
    }
  }
  return problem(ErrorKind::kInfeasible, "nothing-measured",
                 fmt::format("--measured-only: the profiles have no times of blocks of {} on a GPU of {}",
                             inputs.model.name, inputs.fleet.name),
                 "they are of other layers, sequence lengths, precisions or GPU types: `tangram profile show` lists "
                 "what they have");
}

}  // namespace

Expected<PlanningInputs> load_planning_inputs(const std::string& cluster, const std::string& model,
                                              const Settings& settings, const cluster::Edits& edits) {
  PlanningInputs inputs;
  Diagnostics mistakes;
  if (auto complaint = adapters_complaint(settings)) return fail(*std::move(complaint));
  take(load_fleet(cluster, edits), inputs.fleet, mistakes);
  const bool fleet = mistakes.empty();
  take(load_model(model, overrides_of(settings)), inputs.model, mistakes);
  // Without a fleet its GPU types are unknown, and every profile of one would be refused.
  if (fleet) take(load_profiles(settings.files("profile"), devices_of(inputs.fleet)), inputs.profiles, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  restrict_techniques(settings, inputs.model);
  inputs.model.job = plan::as_run_by(target_of(settings), std::move(inputs.model.job));
  if (!settings.enabled("measured-only")) {
    inputs.profiles = cost::with_scaled_rows(inputs.profiles, inputs.model);
    return inputs;
  }
  inputs.profiles = cost::measured_alone(inputs.profiles);
  if (auto nothing = nothing_measured(inputs)) return fail(*std::move(nothing));
  return inputs;
}

namespace {

std::vector<std::string_view> option_takers() {
  std::vector<std::string_view> names;
  for (const runtime::Runtime& runtime : runtime::runtimes()) {
    if (runtime.takes_options) names.push_back(runtime.name);
  }
  return names;
}

std::optional<Diagnostic> schedule_complaint(const planner::PlanOptions& options) {
  const runtime::Runtime& runtime = runtime::runtime_of(options.target);
  if (!options.search.schedule || runtime.knows(*options.search.schedule)) return std::nullopt;
  std::string known;
  for (const runtime::Runtime& other : runtime::runtimes()) {
    if (other.knows(*options.search.schedule)) known += fmt::format("{}{}", known.empty() ? "" : ", ", other.name);
  }
  return problem(
      ErrorKind::kUsage, "schedule-unknown",
      fmt::format("--schedule {}: {} has no such schedule", to_string(*options.search.schedule), runtime.title),
      fmt::format("give a --target that has it: {}", known));
}

/// Options are asked for where there is nothing to tell the runtime by.
std::optional<Diagnostic> options_complaint(const Settings& settings, runtime::Target target) {
  const runtime::Runtime& runtime = runtime::runtime_of(target);
  const std::string& text = settings.text("options");
  if (settings.value("options").origin != Origin::kFlag || text == "as-given" || runtime.takes_options) return {};
  return problem(ErrorKind::kUsage, "options-unknown",
                 target == runtime::Target::kGeneric
                     ? fmt::format("--options {}: options are chosen for a runtime, and --target names none", text)
                     : fmt::format("--options {}: {} takes no execution options as arguments", text, runtime.title),
                 fmt::format("give --target {}", fmt::join(option_takers(), " or ")));
}

}  // namespace

std::optional<Diagnostic> placement_complaint(const planner::PlanOptions& options, const model::Model& model,
                                              std::string_view option) {
  const compose::EncoderPlacement placement = options.search.placement;
  if (placement == compose::EncoderPlacement::kAny) return std::nullopt;
  const auto mistake = [&](const char* code, std::string why, std::string hint) {
    return problem(ErrorKind::kUsage, code, fmt::format("{} {}: {}", option, to_string(placement), why),
                   std::move(hint));
  };
  if (model::encoder_blocks(model) == 0) {
    return mistake("placement-without-encoders", fmt::format("{} has no encoders", model.name),
                   "leave it out, or give \"encoders\" in the model file");
  }
  const runtime::Runtime& runtime = runtime::runtime_of(options.target);
  if (placement == compose::EncoderPlacement::kHomogeneous && runtime.has(runtime::Rule::kWholeEncoders)) {
    return mistake("placement-unknown", fmt::format("{} runs encoders on GPUs of their own", runtime.title),
                   fmt::format("take {} disjoint, or another --target", option));
  }
  if (placement != compose::EncoderPlacement::kColocated) return std::nullopt;
  if (const std::string why = model::why_not_split(model); !why.empty()) {
    return mistake("colocated-model", fmt::format("{}: {}", model.name, why), fmt::format("take {} disjoint", option));
  }
  if (options.target != runtime::Target::kGeneric) {
    return mistake("placement-unknown",
                   fmt::format("{} runs no encoders in turn with the language model", runtime.title),
                   fmt::format("take {} disjoint, or --target generic", option));
  }
  if (options.search.schedule && *options.search.schedule != runtime::Schedule::k1F1B) {
    return mistake("placement-schedule",
                   fmt::format("its pipelines run 1f1b, not {}", to_string(*options.search.schedule)),
                   "leave --schedule out");
  }
  return std::nullopt;
}

Expected<planner::PlanOptions> plan_options(const Settings& settings, const cluster::Fleet& fleet,
                                            const model::Model& model) {
  auto tuning = tuning_of_developers();
  if (!tuning) return fail(std::move(tuning.error()));
  planner::PlanOptions options = planner::usual_options(fleet, model);
  options.search.tuning = *tuning;
  options.island_tolerance = settings.share("island-tolerance");
  const auto small = [&](const char* name, std::int64_t otherwise) {
    return static_cast<int>(std::min(settings.count(name).value_or(otherwise), kManyReplicas));
  };
  options.search.top = small("top", options.search.top);
  options.search.max_replicas = small("max-pipelines", kManyReplicas);
  options.pipelines = pipelines_of(settings);
  options.search.accepted_gap = settings.share("accept-gap");
  options.search.label_budget = settings.count("time-budget").value_or(options.search.label_budget);
  if (const auto seconds = settings.amount("time-limit")) options.search.deadline = Deadline::in(*seconds);
  options.target = target_of(settings);
  options.search.schedule = runtime::schedule_named(settings.text("schedule"));
  options.search.placement =
      compose::placement_named(settings.text("placement")).value_or(compose::EncoderPlacement::kAny);
  if (auto complaint = schedule_complaint(options)) return fail(std::move(*complaint));
  if (auto complaint = options_complaint(settings, options.target)) return fail(std::move(*complaint));
  if (options.search.schedule == runtime::Schedule::kZeroBubble && !model.job.allow.zero_bubble) {
    return fail(problem(ErrorKind::kInfeasible, "schedule-forbidden",
                        "--schedule zero-bubble: the job does not allow it",
                        "allow the technique zero_bubble, or take --schedule any"));
  }
  if (auto complaint = placement_complaint(options, model, "--placement")) return fail(std::move(*complaint));
  return options;
}

}  // namespace tangram::app
