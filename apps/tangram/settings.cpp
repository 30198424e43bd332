#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tangram/base/assert.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/compose/encoder_placement.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/compose/target.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/reader.hpp"
#include "tangram/model/module_constraint.hpp"
#include "tangram/model/techniques.hpp"
#include "tangram/objective/objective.hpp"
#include "words.hpp"

namespace tangram::app {

namespace {

using Words = std::vector<std::string>;

SettingDefinition choice(SettingGroup group, std::string_view name, std::string_view value, std::string help,
                         Words choices, std::string fallback) {
  return {group, SettingKind::kChoice, name, value, std::move(help), std::move(fallback), std::move(choices)};
}

SettingDefinition toggle(SettingGroup group, std::string_view name, std::string help) {
  return {group, SettingKind::kSwitch, name, "", std::move(help), "false", {"true", "false"}};
}

std::vector<SettingDefinition> make_definitions() {
  using enum SettingGroup;
  using enum SettingKind;
  const Words objectives = names_of(objective::objective_names());
  const Words targets = names_of(runtime::runtimes());
  Words placements;
  for (const auto placement : compose::encoder_placements()) placements.emplace_back(to_string(placement));
  placements.emplace_back("any");
  return {
      choice(kPlan, "objective", "NAME", "throughput, cost (dollars per token) or gpus (fewest GPUs)", objectives,
             objectives.front()),
      {kPlan, kAmount, "budget", "USD", "maximum dollars per hour for the GPUs in use"},
      {kPlan, kAmount, "min-throughput", "TOKENS", "minimum tokens per second, as simulated"},
      {kPlan, kCount, "pareto", "N", "list trade-offs of throughput, cost and GPUs, up to N per limit"},
      choice(kTarget, "target", "RUNTIME", "plan only what this runtime can run: " + any_of(targets), targets,
             targets.front()),
      choice(kTarget, "schedule", "NAME",
             "1f1b; interleaved: several model chunks a stage, zero-bubble: weight gradients put off, of runtimes that "
             "have it; any: 1f1b, or where --target interleaves, whichever of the two is faster",
             {"1f1b", "interleaved", "zero-bubble", "any"}, "any"),
      choice(kTarget, "placement", "KIND",
             "of encoders: homogeneous (one set of degrees for all stages, encoders in the first), disjoint (each "
             "encoder a stage of its own), colocated (on all GPUs of the language model, in turn with it) or any",
             placements, "any"),
      {kJob, kCount, "global-batch", "SAMPLES", "samples per iteration, instead of the model file's"},
      {kJob, kCount, "seq-len", "TOKENS", "tokens per sample, instead of the model file's"},
      {kJob, kCount, "microbatch", "SAMPLES", "samples per microbatch of a pipeline (default: searched)"},
      {kJob, kNames, "freeze", "MODULES", "do not train these modules or connectors: vision,vision.connector"},
      {kJob, kAdapters, "lora", "RANK",
       "train low-rank adapters beside the language model, which is frozen: 16, or beside some matrices "
       "16,q_proj,v_proj"},
      {kJob, kAdapters, "qlora", "RANK",
       "the same beside matrices that are held in 4 bits (QLoRA: NF4 with scales in 8 bits)"},
      {kJob, kModules, "module", "WHAT",
       "fix degrees and GPU types of modules: vision:tp=2,gpus=A100+L40S,language:tp=8 (tp, cp, ep, gpus)"},
      {kJob, kTechniques, "allow", "LIST", "use only these of the techniques the model file allows: tp,dp,pp"},
      {kJob, kTechniques, "forbid", "LIST", "do not use these techniques: ep,zero3"},
      {kJob, kOptions, "options", "LIST",
       "execution options that the planner chooses: any, names such as any,fused_loss, or as-given: none (default: "
       "what the model file says)"},
      {kProfiles, kFiles, "profile", "FILES", "profiles with measured times: a.json,b.json"},
      {kOwnRuns, kFiles, "own-runs", "FILES", "iteration times of your own runs, which correct predictions: runs.json"},
      toggle(kPlan, "measured-only",
             "with --profile: blocks run at measured degrees and samples alone, or between measured ones"),
      {kPlan, kNames, "parallelizer", "NAMES", "parallelizers for the stages; their answers are combined: a,b",
       "enumerator"},
      {kPlugins, kFiles, "parallelizer-path", "FOLDERS",
       "folders with plugin manifests, searched before the usual places"},
      {kCache, kFile, "cache", "FILE",
       "cache of searches and plugin answers, or off (default: in the user's cache folder)"},
      {kCache, kCount, "cache-limit", "MIB", "cache size above which the least recently used entries are deleted",
       "1024"},
      toggle(kPlan, "ahead",
             "after planning, also search for fleets with one node fewer or more, and cache the results"),
      toggle(kPlan, "offline", "start no plugin; use cached answers only"),
      choice(kPlugins, "workers", "WHERE", "where plugins run: local, slurm (srun) or mpi (mpirun)",
             {"local", "slurm", "mpi"}, "local"),
      {kWorkerCores, kCount, "worker-cores", "N",
       "total cores for the workers of a plugin (default: those of a Slurm allocation, or --jobs)"},
      {kPlugins, kText, "worker-launcher", "COMMAND", "srun or mpirun with your own options: \"srun --partition=cpu\""},
      {kPlugins, kAmount, "worker-wait", "SECONDS", "seconds that srun or mpirun may take to start workers", "300"},
      {kPlugins, kFile, "plugin-log-dir", "FOLDER",
       "keep the output of plugins in FOLDER: NAME-1.log for the first worker"},
      {kSearch, kCount, "max-pipelines", "R", "maximum number of data-parallel pipelines (default: unlimited)"},
      choice(kSearch, "pipelines", "KIND",
             "equal: all pipelines alike; any: also pipelines with different islands, cuts and batch shares (slower); "
             "auto: a short look at those below 64 GPUs",
             {"equal", "auto", "any"}, "auto"),
      {kIslands, kShare, "island-tolerance", "SHARE", "largest difference between GPUs of an island: 0.1 or 10%",
       "0.10"},
      {kPlan, kShare, "min-gain", "SHARE", "with --against: smallest gain that justifies a change", "2%"},
      {kSearch, kCount, "top", "K", "number of plans to simulate, best by closed form, and as many best by timetable",
       std::to_string(compose::SearchOptions{}.top)},
      {kSearch, kCount, "time-budget", "LABELS",
       "labels (partial pipelines) the search may make, not seconds (default: 2000000 up to 256 GPUs, 1250000 beyond)"},
      {kSearch, kAmount, "time-limit", "SECONDS",
       "stop the search after so many seconds with the best plan so far; it may differ from run to run"},
      {kSearch, kShare, "accept-gap", "SHARE", "stop once no plan can be faster by more than this: 3%", "0"},
      {kSearch, kCount, "jobs", "N", "threads (default: one per core); results do not depend on it", "", {}, "j"},
      choice(kEvery, "color", "WHEN", "color output: auto, always or never", {"auto", "always", "never"}, "auto"),
  };
}

std::string upper_snake(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return result;
}

std::string snake(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

/// A positive number.
std::optional<double> parse_amount(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "0.1" or "10%", in [0, 1).
std::optional<double> parse_share(std::string_view text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (percent) value /= 100;
  if (!(value >= 0) || value >= 1) return std::nullopt;
  return value;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return items;
}

struct Complaint {
  std::string message;
  std::string hint;
};

/// What is wrong with a number beyond the limits of its setting, or nothing.
std::optional<Complaint> out_of_range(const SettingDefinition& definition, std::string_view text, double value) {
  const io::Limit* limit = io::find_limit(definition.name);
  if (limit == nullptr || (value >= limit->least && value <= limit->most)) return std::nullopt;
  return Complaint{fmt::format("{} is not from {} to {}{}{}", text, limit->least, limit->most,
                               limit->unit.empty() ? "" : " ", limit->unit),
                   std::string(limit->why)};
}

/// What was said first of a text that could not be read.
template <class T>
std::optional<Complaint> complaint_of(const Expected<T>& read) {
  if (read) return std::nullopt;
  return Complaint{read.error().front().message, read.error().front().hint};
}

/// What is wrong with a text, or nothing.
std::optional<Complaint> complaint(const SettingDefinition& definition, std::string_view text) {
  switch (definition.kind) {
    case SettingKind::kSwitch:
    case SettingKind::kChoice: {
      const auto& choices = definition.choices;
      if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::nullopt;
      return Complaint{fmt::format("\"{}\" is not one of {}", text, fmt::join(choices, ", ")),
                       suggestion(text, choices, "")};
    }
    case SettingKind::kCount:
      if (const auto value = parse_count(text)) return out_of_range(definition, text, static_cast<double>(*value));
      return Complaint{fmt::format("\"{}\" is not a whole number of at least 1", text), std::string(definition.help)};
    case SettingKind::kAmount:
      if (const auto value = parse_amount(text)) return out_of_range(definition, text, *value);
      return Complaint{fmt::format("\"{}\" is not a number above 0", text), std::string(definition.help)};
    case SettingKind::kShare:
      if (parse_share(text)) return std::nullopt;
      return Complaint{fmt::format("\"{}\" is not a share of at least 0 and below 1", text), "write 0.1 or 10%"};
    case SettingKind::kTechniques:
      for (const std::string& word : split_list(text)) {
        model::Techniques ignored;
        if (model::set_technique(ignored, word, true)) continue;
        return Complaint{fmt::format("unknown technique \"{}\"", word), model::technique_hint(word)};
      }
      return std::nullopt;
    case SettingKind::kOptions:
      for (const std::string& word : split_list(text)) {
        if (model::wanted_options({&word, 1})) continue;
        return Complaint{fmt::format("unknown option \"{}\"", word), model::option_hint(word)};
      }
      return std::nullopt;
    case SettingKind::kModules: return complaint_of(model::read_constraints(split_list(text)));
    case SettingKind::kAdapters: return complaint_of(model::read_adapters(split_list(text)));
    case SettingKind::kNames:
      if (split_list(text).empty()) return Complaint{"the list is empty", ""};
      return std::nullopt;  // looked for where they are used
    case SettingKind::kFile:
    case SettingKind::kFiles:
    case SettingKind::kText: return std::nullopt;  // opened, or understood, where they are used
  }
  return std::nullopt;
}

Diagnostic usage_error(std::string_view place, const Complaint& what) {
  return problem(ErrorKind::kUsage, "bad-value", fmt::format("{}: {}", place, what.message), what.hint);
}

/// The text of a scalar, or of a list of scalars joined by commas; nullopt for anything else.
std::optional<std::string> scalar_text(const io::Node& node) {
  switch (node.kind) {
    case io::NodeKind::kBoolean: return node.boolean ? "true" : "false";
    case io::NodeKind::kString:
    case io::NodeKind::kInteger:
    case io::NodeKind::kNumber: return node.text;
    case io::NodeKind::kArray: {
      std::vector<std::string> items;
      for (const io::Node& item : node.items) {
        if (item.kind != io::NodeKind::kString) return std::nullopt;
        items.push_back(item.text);
      }
      return fmt::format("{}", fmt::join(items, ","));
    }
    default: return std::nullopt;
  }
}

/// A file of comments alone is no document, but a fine configuration.
bool says_nothing(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') return false;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return true;
}

using Values = std::map<std::string, SettingValue, std::less<>>;

/// Reads one configuration file over what `values` holds. A file may set what only other commands use.
Expected<void> read_config(const std::string& path, Origin origin, Values& values) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  auto text = io::read_file(path);
  if (!text) return fail(std::move(text.error()));
  if (says_nothing(*text)) return {};
  auto document = io::parse_yaml(std::move(*text), path);
  if (!document) return fail(std::move(document.error()));

  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  for (const SettingDefinition& definition : setting_definitions()) {
    const std::string key = snake(definition.name);
    const io::Node* node = reader.valid() ? reader.raw(key) : nullptr;
    if (node == nullptr) continue;
    const auto value = scalar_text(*node);
    if (!value) {
      reader.error_at(key, "wrong-type", fmt::format("\"{}\" takes one value or a list of names", key));
    } else if (const auto wrong = complaint(definition, *value)) {
      reader.error_at(key, "bad-value", fmt::format("{}: {}", key, wrong->message), wrong->hint);
    } else {
      values[std::string(definition.name)] = {*value, origin, fmt::format("{}:{}", path, node->line)};
    }
  }
  reader.finish();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return {};
}

void read_environment(const SettingSources& sources, const SettingGroups& groups, Values& values,
                      Diagnostics& mistakes) {
  for (const SettingDefinition& definition : setting_definitions()) {
    if (!applies_to(definition, groups)) continue;
    const std::string variable = "TANGRAM_" + upper_snake(definition.name);
    const char* text = sources.environment ? sources.environment(variable) : nullptr;
    if (text == nullptr || *text == '\0') continue;
    if (const auto wrong = complaint(definition, text)) mistakes.push_back(usage_error(variable, *wrong));
    values[std::string(definition.name)] = {text, Origin::kEnvironment, variable};
  }
}

void read_flags(const SettingSources& sources, Values& values, Diagnostics& mistakes) {
  for (const SettingDefinition& definition : setting_definitions()) {
    const auto flag = sources.flags.find(definition.name);
    if (flag == sources.flags.end()) continue;
    const std::string place = fmt::format("--{}", definition.name);
    if (const auto wrong = complaint(definition, flag->second)) mistakes.push_back(usage_error(place, *wrong));
    values[std::string(definition.name)] = {flag->second, Origin::kFlag, place};
  }
}

/// In the folder that `base` names, or in `folder` of the home; empty when neither is known.
std::string user_path(const std::function<const char*(const std::string&)>& environment, const char* base,
                      const char* folder, const std::string& name) {
  const auto variable = [&](const char* key) {
    const char* text = environment(key);
    return std::string(text == nullptr ? "" : text);
  };
  if (const std::string named = variable(base); !named.empty()) return named + "/tangram/" + name;
  if (const std::string home = variable("HOME"); !home.empty()) return home + folder + "/tangram/" + name;
  return "";
}

}  // namespace

std::span<const SettingDefinition> setting_definitions() {
  static const std::vector<SettingDefinition> definitions = make_definitions();
  return definitions;
}

bool SettingDefinition::is_list() const {
  return kind == SettingKind::kTechniques || kind == SettingKind::kOptions || kind == SettingKind::kFiles ||
         kind == SettingKind::kNames || kind == SettingKind::kModules || kind == SettingKind::kAdapters;
}

bool applies_to(const SettingDefinition& definition, const SettingGroups& groups) {
  return definition.group == SettingGroup::kEvery || std::ranges::find(groups, definition.group) != groups.end();
}

const SettingValue& Settings::value(std::string_view name) const {
  const auto found = values_.find(name);
  TANGRAM_ASSERT(found != values_.end());
  return found->second;
}

std::optional<std::int64_t> Settings::count(std::string_view name) const { return parse_count(text(name)); }

std::optional<double> Settings::amount(std::string_view name) const { return parse_amount(text(name)); }
bool Settings::enabled(std::string_view name) const { return text(name) == "true"; }

double Settings::share(std::string_view name) const { return parse_share(text(name)).value_or(0); }

std::vector<std::string> Settings::techniques(std::string_view name) const { return split_list(text(name)); }

std::vector<std::string> Settings::files(std::string_view name) const { return split_list(text(name)); }

Expected<Settings> resolve_settings(const SettingGroups& groups, const SettingSources& sources) {
  Values values;
  for (const SettingDefinition& definition : setting_definitions()) {
    values[std::string(definition.name)] = {std::string(definition.fallback), Origin::kDefault, "default"};
  }
  if (auto read = read_config(sources.user_file, Origin::kUserFile, values); !read)
    return fail(std::move(read.error()));
  if (auto read = read_config(sources.project_file, Origin::kProjectFile, values); !read) {
    return fail(std::move(read.error()));
  }
  Diagnostics mistakes;
  read_environment(sources, groups, values, mistakes);
  read_flags(sources, values, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return Settings(std::move(values));
}

const char* environment_variable(const std::string& name) { return std::getenv(name.c_str()); }

std::string user_config_path(const std::function<const char*(const std::string&)>& environment) {
  return user_path(environment, "XDG_CONFIG_HOME", "/.config", "config.yaml");
}

std::string user_cache_path(const std::function<const char*(const std::string&)>& environment,
                            const std::string& name) {
  return user_path(environment, "XDG_CACHE_HOME", "/.cache", name);
}

std::string show_origin(const SettingGroups& groups, const Settings& settings) {
  std::string out;
  for (const SettingDefinition& definition : setting_definitions()) {
    if (!applies_to(definition, groups)) continue;
    const SettingValue& value = settings.value(definition.name);
    out += fmt::format("{:<18} {:<16} {}\n", definition.name, value.text.empty() ? "-" : value.text, value.place);
  }
  return out;
}

}  // namespace tangram::app
