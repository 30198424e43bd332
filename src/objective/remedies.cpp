#include "tangram/objective/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "tangram/compose/target.hpp"
#include "tangram/model/techniques.hpp"
#include "tangram/relax/state_memory.hpp"

namespace tangram::objective {

using compose::SearchOptions;
using runtime::Target;

namespace {

constexpr double kAnyPlan = 0.99;  // a search ends with its first plan

// A batch or sample is halved this often at most.
constexpr int kMostHalvings = 6;
constexpr std::int64_t kLeastTokens = 128;

struct Remedy {
  std::string text;
  model::Model model;
};

/// What a remedy does to a model.
struct Change {
  std::string text;
  std::function<void(model::Model&)> apply;
};

Remedy remedy_of(const std::vector<Change>& changes, const model::Model& model) {
  Remedy remedy{"", model};
  std::vector<std::string> texts;
  for (const Change& change : changes) {
    change.apply(remedy.model);
    texts.push_back(change.text);
  }
  remedy.text = fmt::format("{}{}", fmt::join(texts, " and "), changes.size() > 1 ? ", together" : "");
  return remedy;
}

/// Whether a job is feasible, by the built-in parallelizer.
class Trial {
 public:
  Trial(Target target, const cluster::IslandHierarchy& hierarchy, SearchOptions options, const RemedyCallback& progress)
      : target_(target), hierarchy_(hierarchy), options_(std::move(options)), progress_(progress) {
    options_.top = 1;
    options_.timed = false;
    options_.label_budget = std::min(options_.label_budget, options_.tuning.objectives.remedy_labels);
    options_.accepted_gap = kAnyPlan;
    options_.relaxed_bound = Nanoseconds(0);  // nobody asks for it
  }

  [[nodiscard]] bool works(const Remedy& remedy) const {
    if (relax::least_state(remedy.model) > relax::usable_memory(hierarchy_.levels.front())) return false;
    if (progress_) progress_(remedy.text);
    const auto enumerator = parallelizer::make_enumerator(remedy.model, options_.profiles);
    const parallelizer::Parallelizer* const asked = enumerator.get();
    return !compose::search_target(target_, remedy.model, hierarchy_, std::span(&asked, 1), options_).best.empty();
  }

  /// The first of the changes, each of which helps more than those before it, that works; none where the last does not.
  void add_least(std::vector<Remedy> growing, std::vector<Remedy>& found) const {
    if (growing.empty() || !works(growing.back())) return;
    const auto first =
        std::partition_point(growing.begin(), growing.end() - 1, [&](const Remedy& remedy) { return !works(remedy); });
    found.push_back(std::move(*first));
  }

 private:
  Target target_;
  const cluster::IslandHierarchy& hierarchy_;
  SearchOptions options_;
  const RemedyCallback& progress_;
};

/// Techniques that save memory, single ones only.
constexpr std::array<std::string_view, 10> kSavers{
    "recompute_full", "recompute_selective", "zero1", "zero2", "zero3", "pipeline", "tp", "cp", "ep", "dp"};

std::vector<Change> forbidden_techniques(Target target, const model::Model& model) {
  std::vector<Change> changes;
  for (const std::string_view name : kSavers) {
    model::Model had = model;
    model::Model has = model;
    static_cast<void>(model::set_technique(has.job.allow, name, true));
    compose::restrict_to(runtime::runtime_of(target), had);
    compose::restrict_to(runtime::runtime_of(target), has);
    if (had.job.allow == has.job.allow) continue;
    changes.push_back({fmt::format("allow {}", name), [name](model::Model& changed) {
                         static_cast<void>(model::set_technique(changed.job.allow, name, true));
                       }});
  }
  return changes;
}

std::vector<Change> leaner_job(const model::Job& job, Target target) {
  const runtime::ExecutionOptions& has = runtime::runtime_of(target).options;
  std::vector<Change> changes;
  if (job.precision == DType::kFp32 || job.precision == DType::kTf32) {
    changes.push_back(
        {"precision: bf16 in the model file", [](model::Model& m) { model::set_precision(m.job, DType::kBf16); }});
  }
  if (job.gradient_bytes > 2 && job.parameter_bytes == 2) {
    changes.push_back(
        {"gradient_bytes_per_parameter: 2 in the model file", [](model::Model& m) { m.job.gradient_bytes = 2; }});
  }
  if (has.transposes && job.transpose_cache && model::has_transposable_weights(job)) {
    changes.push_back({"transpose_cache: false in the model file, which transposes weights in each backward pass",
                       [](model::Model& m) { m.job.transpose_cache = false; }});
  }
  if (has.narrow_gates && !job.narrow_gates && bytes_of(job.precision) <= 2) {
    changes.push_back({"narrow_gates: true in the model file, which keeps gate and up in 8 bits",
                       [](model::Model& m) { m.job.narrow_gates = true; }});
  }
  model::Job aware = job;
  if (has.precision_aware && model::make_precision_aware(aware)) {
    changes.push_back({"optimizer: {precision_aware: true} in the model file",
                       [](model::Model& m) { model::make_precision_aware(m.job); }});
  }
  if (has.optimizer_offload && job.optimizer.offload_fraction < 1 && aware.optimizer.precision_aware) {
    changes.push_back(
        {"optimizer: {precision_aware: true, offload_fraction: 1} in the model file, which steps on the hosts",
         [](model::Model& m) {
           model::make_precision_aware(m.job);
           m.job.optimizer.offload_fraction = 1;
         }});
  }
  if (!job.flash_attention) {
    changes.push_back(
        {"flash_attention: true in the model file", [](model::Model& m) { m.job.flash_attention = true; }});
  }
  if (job.microbatch > 1) changes.push_back({"--microbatch 1", [](model::Model& m) { m.job.microbatch = 1; }});
  return changes;
}

std::vector<Change> freer_modules(const model::Model& model) {
  std::vector<Change> changes;
  for (const model::NamedConstraint& one : constraints(model.graph)) {
    changes.push_back({fmt::format("leave {} out of --module", one.module), [name = one.module](model::Model& changed) {
                         lift_constraint(changed,
                                         *std::ranges::find(changed.graph.modules, name, &model::Module::name));
                       }});
  }
  return changes;
}

std::vector<Remedy> shorter_samples(const model::Model& model) {
  std::vector<Remedy> remedies;
  const std::int64_t whole = model.job.sequence_length;
  for (int i = 1; i <= kMostHalvings; ++i) {
    const std::int64_t tokens = whole >> i;
    if (tokens < kLeastTokens) break;
    Remedy remedy{fmt::format("--seq-len {}", tokens), model};
    remedy.model.job.sequence_length = tokens;
    for (model::BlockType& type : remedy.model.types) {
      if (type.tokens == whole && type.attention.causal) type.tokens = tokens;
    }
    remedies.push_back(std::move(remedy));
  }
  return remedies;
}

std::vector<Remedy> smaller_batches(const model::Model& model) {
  std::vector<Remedy> remedies;
  for (int i = 1; i <= kMostHalvings; ++i) {
    const std::int64_t samples = model.job.global_batch >> i;
    if (samples < 1 || (model.job.microbatch > 0 && samples % model.job.microbatch != 0)) break;
    Remedy remedy{fmt::format("--global-batch {}", samples), model};
    remedy.model.job.global_batch = samples;
    remedies.push_back(std::move(remedy));
  }
  return remedies;
}

/// Low-rank adapters in place of the weights, then beside weights in 4 bits; none where the runtime has none, or the
/// model no matrices for them.
std::vector<Remedy> adapters_alone(const model::Model& model, Target target) {
  using model::BaseQuantization;
  if (target != Target::kGeneric) return {};
  const std::optional<model::Adapters> now = model::adapters_of(model);
  const model::Adapters usual = now.value_or(model::Adapters{16, 16, {}, BaseQuantization::kNone});
  std::vector<Remedy> remedies;
  const auto add = [&](std::string text, BaseQuantization base) {
    model::Adapters adapters = usual;
    adapters.base = base;
    Remedy remedy{std::move(text), model};
    model::set_adapters(remedy.model, adapters);
    if (model::adapters_of(remedy.model)) remedies.push_back(std::move(remedy));
  };
  if (!now) add(fmt::format("--lora {}, which trains adapters alone", usual.rank), BaseQuantization::kNone);
  if ((!now || now->base == BaseQuantization::kNone) && bytes_of(model.job.precision) == 2) {
    add(fmt::format("--qlora {}, which trains adapters beside weights in 4 bits", usual.rank),
        BaseQuantization::kNf4Double);
  }
  return remedies;
}

/// Changes that help together, none of which can be left out; none where all of them are not enough.
void add_together(const Trial& trial, std::vector<Change> changes, const model::Model& model,
                  std::vector<Remedy>& found) {
  if (changes.size() < 2 || !trial.works(remedy_of(changes, model))) return;
  for (std::size_t i = changes.size(); i-- > 0;) {
    std::vector<Change> fewer = changes;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (trial.works(remedy_of(fewer, model))) changes = std::move(fewer);
  }
  found.push_back(remedy_of(changes, model));
}

}  // namespace

std::vector<std::string> find_remedies(Target target, const model::Model& model,
                                       const cluster::IslandHierarchy& hierarchy, const SearchOptions& options,
                                       const RemedyCallback& progress) {
  const Trial trial(target, hierarchy, options, progress);
  std::vector<Remedy> found;
  std::vector<Change> changes = freer_modules(model);
  std::ranges::move(forbidden_techniques(target, model), std::back_inserter(changes));
  std::ranges::move(leaner_job(model.job, target), std::back_inserter(changes));
  for (const Change& change : changes) {
    if (Remedy remedy = remedy_of({change}, model); trial.works(remedy)) found.push_back(std::move(remedy));
  }
  if (found.empty()) add_together(trial, std::move(changes), model, found);
  trial.add_least(shorter_samples(model), found);
  trial.add_least(smaller_batches(model), found);
  trial.add_least(adapters_alone(model, target), found);
  std::vector<std::string> texts;
  texts.reserve(found.size());
  for (Remedy& remedy : found) texts.push_back(std::move(remedy.text));
  return texts;
}

std::optional<std::size_t> first_feasible(Target target, std::span<const model::Model> models,
                                          const cluster::IslandHierarchy& hierarchy, const SearchOptions& options) {
  const RemedyCallback nobody;
  const Trial trial(target, hierarchy, options, nobody);
  const auto first = std::ranges::find_if(models, [&](const model::Model& model) { return trial.works({"", model}); });
  return first == models.end() ? std::nullopt : std::optional(static_cast<std::size_t>(first - models.begin()));
}

}  // namespace tangram::objective
