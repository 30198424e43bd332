// Megatron-Bridge MIMO: a script with one --component for each module, "vision=tp=1,dp=16,rank_offset=0", and what its
// providers are set to, "language.sequence_parallel=True". Rules as in megatron_mimo_config.py and
// finetune_qwen35_vl.py of NVIDIA-NeMo/Megatron-Bridge and bridge_communicator.py of NVIDIA/Megatron-LM (2026-08), the
// stricter where they differ: what the configuration lets pass and the communicators then refuse is refused here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "layout.hpp"
#include "limits.hpp"
#include "megatron_job.hpp"
#include "modules.hpp"
#include "readers.hpp"
#include "text.hpp"

namespace tangram::importing {

namespace {

constexpr const char* kComponentHint = "as in --component language=tp=4,pp=2,dp=2,rank_offset=16";

/// A key of a component and the degree that it stands for; without a place in JobModule: refused beyond 1.
struct ComponentKey {
  std::string_view name;
  std::int64_t JobModule::* degree;
};
constexpr std::array kComponentKeys{
    ComponentKey{"tp", &JobModule::tp},   ComponentKey{"pp", &JobModule::pp},
    ComponentKey{"cp", &JobModule::cp},   ComponentKey{"dp", &JobModule::dp},
    ComponentKey{"etp", &JobModule::etp}, ComponentKey{"rank_offset", &JobModule::offset}};

class ComponentReader {
 public:
  explicit ComponentReader(Diagnostics& sink) : sink_(sink) {}

  std::vector<JobModule> read(const std::vector<Argument>& words) {
    for (std::size_t w = 0; w < words.size(); ++w) {
      const std::string& word = words[w].value;
      if (word == "--component" && w + 1 < words.size()) add(words[w + 1]);
      if (word.starts_with("--component=")) add({word.substr(word.find('=') + 1), words[w].place});
    }
    for (const Argument& word : words) take_setting(word);
    return std::move(modules_);
  }

 private:
  void complain(const Place& place, std::string code, std::string message, std::string hint = {}) {
    sink_.push_back(at(place, std::move(code), std::move(message), std::move(hint)));
  }

  void add(const Argument& word) {
    const std::size_t equals = word.value.find('=');
    if (equals == std::string::npos || equals == 0) {
      return complain(word.place, "bad-component", fmt::format("\"{}\" is no component", word.value), kComponentHint);
    }
    JobModule module;
    module.name = word.value.substr(0, equals);
    module.place = word.place;
    if (std::ranges::find(modules_, module.name, &JobModule::name) != modules_.end()) {
      return complain(word.place, "component-twice", fmt::format("{} has a component already", module.name));
    }
    std::string_view rest = std::string_view(word.value).substr(equals + 1);
    bool says_dp = false;
    while (!rest.empty()) {
      const std::string_view field = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), field.size() + 1));
      says_dp = says_dp || field.starts_with("dp=");
      if (!take_field(field, module)) return;
    }
    if (!says_dp) complain(word.place, "missing-dp", fmt::format("component {} does not say dp", module.name));
    modules_.push_back(std::move(module));
  }

  bool take_field(std::string_view field, JobModule& module) {
    const std::string_view name = field.substr(0, field.find('='));
    const auto key = std::ranges::find(kComponentKeys, name, &ComponentKey::name);
    std::int64_t value = -1;
    const char* const first = field.data() + std::min(field.size(), name.size() + 1);
    const auto [end, error] = std::from_chars(first, field.data() + field.size(), value);
    const bool whole = error == std::errc() && end == field.data() + field.size();
    const bool offset = name == "rank_offset";
    if (key == kComponentKeys.end() || !whole || value < (offset ? 0 : 1) ||
        value > (offset ? kMostGpus : kMostDegree)) {
      complain(module.place, "bad-component",
               fmt::format("\"{}\" of component {} is no tp, pp, cp, dp or etp from 1, nor a rank_offset from 0", field,
                           module.name),
               kComponentHint);
      return false;
    }
    module.*(key->degree) = value;
    return true;
  }

  /// MODULE.attribute=value of a module that has a component.
  void take_setting(const Argument& word) {
    const std::size_t dot = word.value.find('.');
    const std::size_t equals = word.value.find('=');
    if (dot == std::string::npos || equals == std::string::npos || equals < dot) return;
    const auto module = std::ranges::find(modules_, word.value.substr(0, dot), &JobModule::name);
    if (module == modules_.end()) return;
    const std::string name = word.value.substr(dot + 1, equals - dot - 1);
    const std::string value = word.value.substr(equals + 1);
    ArgumentMap& settings = settings_of(*module);
    if (name == "sequence_parallel") {
      module->sequence_parallel = value == "True";
    } else if (name == "recompute_granularity") {
      module->recompute = value == "full"        ? cost::RecomputeMode::kFull
                          : value == "selective" ? cost::RecomputeMode::kSelective
                                                 : cost::RecomputeMode::kNone;
    } else if (name == "recompute_num_layers") {
      settings.set(name, {value, word.place});
      module->recompute_layers = settings.count_or(name, 1);
    } else if (name == "pipeline_model_parallel_layout") {
      settings.set(kLayout, {value, word.place});
      module->layers = layers_per_chunk(settings, module->pp);
    } else if (name != "recompute_method") {
      complain(word.place, "unknown-setting", fmt::format("nothing is known of {} of {}", name, module->name),
               "sequence_parallel, recompute_granularity, recompute_num_layers, pipeline_model_parallel_layout");
    }
  }

  ArgumentMap& settings_of(const JobModule& module) {
    return settings_.try_emplace(module.name, module.place, sink_).first->second;
  }

  Diagnostics& sink_;
  std::vector<JobModule> modules_;
  std::map<std::string, ArgumentMap> settings_;
};

/// What Megatron-Bridge and the communicators behind it refuse.
class MimoRules {
 public:
  MimoRules(const std::vector<JobModule>& modules, Diagnostics& sink) : modules_(modules), sink_(sink) {}

  void judge(std::int64_t microbatch, std::int64_t batch, const Place& place_of_microbatch) {
    if (std::ranges::find(modules_, kLanguageModule, &JobModule::name) == modules_.end()) {
      refuse(modules_.front(), "no-language", "no component is called language");
    }
    for (const JobModule& module : modules_) judge_module(module);
    judge_spans();
    for (std::size_t a = 0; a < modules_.size(); ++a) {
      for (std::size_t b = a + 1; b < modules_.size(); ++b) judge_pair(modules_[a], modules_[b]);
    }
    for (const JobModule& module : modules_) {
      if (microbatch % module.dp == 0) continue;
      sink_.push_back(at(place_of_microbatch, "microbatch-does-not-divide",
                         fmt::format("a microbatch of {} samples, that of all replicas together, is not divided by dp "
                                     "{} of {}",
                                     microbatch, module.dp, module.name)));
    }
    if (batch % microbatch != 0) {
      sink_.push_back(at(place_of_microbatch, "batch-does-not-divide",
                         fmt::format("{} samples are not whole microbatches of {}", batch, microbatch)));
    }
  }

 private:
  void refuse(const JobModule& module, std::string code, std::string message) {
    sink_.push_back(at(module.place, std::move(code), std::move(message)));
  }

  void judge_module(const JobModule& module) {
    const bool encoder = module.name != kLanguageModule;
    if (!std::has_single_bit(static_cast<std::uint64_t>(module.tp))) {
      refuse(module, "tp-no-power", fmt::format("tp {} of {} is no power of two", module.tp, module.name));
    }
    if (module.cp > 1) {
      refuse(module, "context-parallel",
             fmt::format("{} has cp {}: what crosses between modules needs cp 1", module.name, module.cp));
    }
    if (encoder && module.pp > 1) {
      refuse(module, "encoder-pipeline", fmt::format("{} has pp {}: an encoder is one stage", module.name, module.pp));
    }
    if (encoder && module.etp > 1) {
      refuse(module, "encoder-experts", fmt::format("{} has etp {}: encoders are dense", module.name, module.etp));
    }
    if (module.tp * module.dp % module.etp != 0) {
      refuse(module, "experts-do-not-divide",
             fmt::format("etp {} of {} does not divide tp x dp = {}", module.etp, module.name, module.tp * module.dp));
    }
  }

  void judge_pair(const JobModule& a, const JobModule& b) {
    if (std::max(a.dp, b.dp) % std::min(a.dp, b.dp) == 0) return;
    refuse(b, "dp-does-not-divide",
           fmt::format("dp {} of {} and dp {} of {}: one has to divide the other", a.dp, a.name, b.dp, b.name));
  }

  /// Ranks from 0 on, each in one module.
  void judge_spans() {
    std::vector<const JobModule*> by_offset;
    for (const JobModule& module : modules_) by_offset.push_back(&module);
    std::ranges::stable_sort(by_offset, {}, &JobModule::offset);
    std::int64_t next = 0;
    for (const JobModule* module : by_offset) {
      if (module->offset < next) {
        refuse(*module, "ranks-overlap",
               fmt::format("{} begins at rank {}, where another module has its ranks: encoders on the GPUs of the "
                           "language model are no layout of Megatron-Bridge",
                           module->name, module->offset));
      } else if (module->offset > next) {
        refuse(*module, "ranks-missing",
               fmt::format("{} begins at rank {}, and ranks from {} on are in no module", module->name, module->offset,
                           next));
      }
      next = std::max(next, module->offset + module->ranks());
    }
    if (next > kMostGpus) refuse(*by_offset.back(), "too-many-gpus", "the modules ask for more than 1,000,000 GPUs");
  }

  const std::vector<JobModule>& modules_;
  Diagnostics& sink_;
};

}  // namespace

Job read_mimo(SortedFiles files, Diagnostics& sink) {
  Job job;
  job.runtime = runtime::Target::kMimo;
  if (files.job.empty()) {
    sink.push_back(at({}, "no-arguments", "no file has components", "give the script that starts the job"));
    return job;
  }
  const SourceFile& file = *files.job.front();
  ArgumentMap arguments(place_of(file), sink);
  read_arguments(file, arguments);
  job.modules = ComponentReader(sink).read(words_of(file));
  job.microbatch = read_batch(arguments, job);
  if (job.modules.empty()) {
    sink.push_back(at(place_of(file), "no-component", "the script has no --component", kComponentHint));
  }
  if (!sink.empty()) return job;
  MimoRules(job.modules, sink)
      .judge(job.microbatch, *job.overrides.global_batch, arguments.place_of("micro-batch-size"));
  if (files.ranks.empty()) job.notes.emplace_back(kRanksUnknown);
  job.ranks = std::move(files.ranks);
  return job;
}

}  // namespace tangram::importing
