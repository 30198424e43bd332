#include "parallelizers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tangram/base/problem.hpp"
#include "tangram/parallelizer/registry.hpp"

namespace tangram::app {

namespace {

namespace fs = std::filesystem;

/// Manifests that came with the program: installed, or in the tree it was built in.
std::vector<std::string> shipped_folders() {
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  constexpr int kLevels = 5;  // build/apps/tangram/tangram -> the tree
  for (int level = 0; !error && level < kLevels && folder.has_relative_path(); ++level) {
    for (const char* name : {"share/tangram/parallelizers", "configs/parallelizers"}) {
      if (fs::is_directory(folder / name, error)) return {(folder / name).string()};
    }
    error.clear();
    folder = folder.parent_path();
  }
  return {};
}

std::string variable(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  return text == nullptr ? "" : text;
}

const char* environment_variable(const std::string& name) { return std::getenv(name.c_str()); }

Diagnostics no_cache_to_plan_from() {
  return {problem(ErrorKind::kUsage, "offline-without-cache",
                  "--offline takes answers of plugins from the cache, and there is none",
                  "name its file with --cache FILE")};
}

/// Opens the cache for plugins. Only --offline cannot do without.
Expected<void> open_cache(const Settings& settings, Planners& planners) {
  const bool offline = settings.enabled("offline");
  const std::string file = cache_file(settings);
  if (planners.cache != nullptr || planners.cache_problem) return {};
  if (file.empty()) return offline ? Expected<void>(fail(no_cache_to_plan_from())) : Expected<void>();
  auto cache = parallelizer::AnswerCache::open(file, cache_limit(settings));
  if (cache) {
    planners.cache = std::move(*cache);
  } else if (offline) {
    return fail(std::move(cache.error()));
  } else {
    planners.cache_problem = cache.error().front();
  }
  return {};
}

Expected<std::unique_ptr<parallelizer::AnswerSource>> start_pool(const Settings& settings,
                                                                 const parallelizer::PluginSpec& spec,
                                                                 const Progress& progress, Planners& planners) {
  const auto options = plugin_options(settings, worker_slots(settings), progress);
  if (!options) return fail(options.error());
  auto launcher = make_launcher(settings, most_workers(spec, *options), spec.threads, progress);
  if (!launcher) return fail(std::move(launcher.error()));
  planners.launchers.push_back(std::move(*launcher));
  return parallelizer::make_worker_pool(spec, *options, *planners.launchers.back());
}

/// Only a clock was in the way.
bool only_late(const parallelizer::Tally& tally) {
  return tally.timed_out && std::ranges::all_of(tally.failed, [](const parallelizer::CountedReason& reason) {
           return reason.code == to_string(parallelizer::FailureKind::kTimedOut) ||
                  reason.code == to_string(parallelizer::FailureKind::kGivenUp);
         });
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const std::size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

}  // namespace

parallelizer::PluginPlaces plugin_places(const Settings& settings) {
  parallelizer::PluginPlaces places;
  places.folders = settings.files("parallelizer-path");
  for (std::string& folder : shipped_folders()) places.folders.push_back(std::move(folder));
  const std::string config = user_config_path(environment_variable);
  if (!config.empty()) places.folders.push_back((fs::path(config).parent_path() / "parallelizers").string());
  places.path = variable("PATH");
  return places;
}

std::string cache_file(const Settings& settings) {
  const std::string& said = settings.text("cache");
  if (said == "off") return "";
  return said.empty() ? user_cache_path(environment_variable, "answers.sqlite") : said;
}

Bytes cache_limit(const Settings& settings) {
  constexpr std::int64_t kMostMebibytes = std::int64_t{1} << 30;
  return Bytes(std::min(settings.count("cache-limit").value_or(1), kMostMebibytes) << 20);
}

std::optional<Diagnostic> Planners::trouble_with_cache() const {
  return cache != nullptr ? cache->problem() : cache_problem;
}

std::vector<const parallelizer::Parallelizer*> Planners::all() const {
  std::vector<const parallelizer::Parallelizer*> result;
  result.reserve(owned.size());
  for (const auto& planner : owned) result.push_back(planner.get());
  return result;
}

Expected<Planners> make_planners(const Settings& settings, const model::Model& model, const cost::ProfileSet* profiles,
                                 const Progress& progress) {
  Planners planners;
  const parallelizer::PluginPlaces places = plugin_places(settings);
  Diagnostics mistakes;
  for (const std::string& name : settings.files("parallelizer")) {
    if (const parallelizer::BuiltIn* built_in = parallelizer::find_built_in(name)) {
      planners.owned.push_back(built_in->make(model, profiles));
      continue;
    }
    const auto spec = parallelizer::find_plugin(name, places);
    if (!spec) {
      mistakes.insert(mistakes.end(), spec.error().begin(), spec.error().end());
      continue;
    }
    if (auto opened = open_cache(settings, planners); !opened) return fail(std::move(opened.error()));
    std::unique_ptr<parallelizer::AnswerSource> source;
    if (settings.enabled("offline")) {
      source = parallelizer::make_offline_source(*spec, *planners.cache);
    } else {
      auto pool = start_pool(settings, *spec, progress, planners);
      if (!pool) return fail(std::move(pool.error()));
      source = std::move(*pool);
      if (planners.cache) source = parallelizer::make_cached_source(*spec, std::move(source), *planners.cache);
    }
    planners.owned.push_back(parallelizer::make_plugin_parallelizer(spec->name, std::move(source), model, profiles));
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return planners;
}

std::string failure_text(const parallelizer::Tally& tally) {
  return fmt::format("parallelizer {} failed on {} of {} queries: {}", tally.info.name, tally.failures(), tally.queries,
                     tally.first_failure ? tally.first_failure->message : tally.failed.front().example);
}

Diagnostics failures_of(const std::vector<parallelizer::Tally>& tallies) {
  Diagnostics failures;
  for (const parallelizer::Tally& tally : tallies) {
    if (tally.failures() == 0) continue;
    Diagnostic failure;
    failure.kind = only_late(tally) ? ErrorKind::kIncomplete : ErrorKind::kPlugin;
    failure.code = "parallelizer-failed";
    failure.message = failure_text(tally);
    const std::string printed = tally.first_failure ? last_line(tally.first_failure->output) : std::string();
    const bool not_cached = tally.first_failure && tally.first_failure->kind == parallelizer::FailureKind::kNotCached;
    failure.hint = not_cached        ? "plan once without --offline: that asks the plugin and fills the cache"
                   : printed.empty() ? fmt::format("tangram parallelizers test {} tells more", tally.info.name)
                                     : fmt::format("the last it printed: {}", printed);
    failures.push_back(std::move(failure));
  }
  return failures;
}

ExitCode exit_code_of(const std::vector<parallelizer::Tally>& tallies) {
  ExitCode code = ExitCode::kOk;
  for (const parallelizer::Tally& tally : tallies) {
    if (tally.failures() == 0) continue;
    if (!only_late(tally)) return ExitCode::kPlugin;
    code = ExitCode::kStoppedEarly;
  }
  return code;
}

}  // namespace tangram::app
