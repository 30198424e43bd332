#include "parallelizers.hpp"

#include <algorithm>
#include <filesystem>

#include "shipped.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/parallelizer/registry.hpp"

namespace tangram::app {

namespace {

namespace fs = std::filesystem;

std::string variable(const std::string& name) {
  const char* text = environment_variable(name);
  return text == nullptr ? "" : text;
}

/// The cache of plugins' answers, where there is a file for it. Only --offline cannot do without.
Expected<void> open_answers(const Settings& settings, const Cache& cache, Planners& planners) {
  if (cache.file == nullptr && settings.enabled("offline")) {
    return fail(no_cache(cache, "offline-without-cache",
                         "--offline takes plugin answers from the cache, and the cache is off"));
  }
  if (cache.file != nullptr && planners.answers == nullptr) {
    planners.answers = std::make_unique<parallelizer::AnswerCache>(cache.file);
  }
  return {};
}

Expected<std::unique_ptr<parallelizer::AnswerSource>> start_pool(const Settings& settings,
                                                                 const parallelizer::PluginSpec& spec,
                                                                 const Deadline& deadline, const Progress& progress,
                                                                 Planners& planners) {
  auto options = plugin_options(settings, worker_slots(settings), progress);
  if (!options) return fail(std::move(options.error()));
  options->deadline = deadline;
  auto launcher = make_launcher(settings, most_workers(spec, *options), spec.threads, progress);
  if (!launcher) return fail(std::move(launcher.error()));
  planners.launchers.push_back(std::move(*launcher));
  return parallelizer::make_worker_pool(spec, *options, *planners.launchers.back());
}

}  // namespace

parallelizer::PluginPlaces plugin_places(const Settings& settings) {
  parallelizer::PluginPlaces places;
  places.folders = settings.files("parallelizer-path");
  if (std::string shipped = shipped_folder("parallelizers"); !shipped.empty()) {
    places.folders.push_back(std::move(shipped));
  }
  const std::string config = user_config_path(environment_variable);
  if (!config.empty()) places.folders.push_back((fs::path(config).parent_path() / "parallelizers").string());
  places.path = variable("PATH");
  return places;
}

std::vector<const parallelizer::Parallelizer*> Planners::all() const {
  std::vector<const parallelizer::Parallelizer*> result;
  result.reserve(owned.size());
  for (const auto& planner : owned) result.push_back(planner.get());
  return result;
}

Expected<Planners> make_planners(const Settings& settings, const model::Model& model, const cost::ProfileSet* profiles,
                                 const Cache& cache, const Deadline& deadline, const Progress& progress) {
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
    if (auto opened = open_answers(settings, cache, planners); !opened) return fail(std::move(opened.error()));
    std::unique_ptr<parallelizer::AnswerSource> source;
    if (settings.enabled("offline")) {
      source = parallelizer::make_offline_source(*spec, *planners.answers);
    } else {
      auto pool = start_pool(settings, *spec, deadline, progress, planners);
      if (!pool) return fail(std::move(pool.error()));
      source = std::move(*pool);
      if (planners.answers) source = parallelizer::make_cached_source(*spec, std::move(source), *planners.answers);
    }
    planners.owned.push_back(parallelizer::make_plugin_parallelizer(spec->name, std::move(source), model, profiles));
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return planners;
}

ExitCode exit_code_of(const std::vector<parallelizer::Tally>& tallies) {
  ExitCode code = ExitCode::kOk;
  for (const Diagnostic& failure : parallelizer::failures_of(tallies)) {
    if (failure.kind == ErrorKind::kPlugin) return ExitCode::kPlugin;
    code = exit_code_of(failure.kind);
  }
  return code;
}

}  // namespace tangram::app
