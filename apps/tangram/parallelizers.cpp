#include "parallelizers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

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
  const std::string config = user_config_path([](const std::string& name) { return std::getenv(name.c_str()); });
  if (!config.empty()) places.folders.push_back((fs::path(config).parent_path() / "parallelizers").string());
  places.path = variable("PATH");
  return places;
}

int planning_slots(const Settings& settings) {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return static_cast<int>(std::min<std::int64_t>(settings.count("jobs").value_or(cores), 4096));
}

std::vector<const parallelizer::Parallelizer*> Planners::all() const {
  std::vector<const parallelizer::Parallelizer*> result;
  for (const auto& planner : owned) result.push_back(planner.get());
  return result;
}

Expected<Planners> make_planners(const Settings& settings, const model::Model& model, const cost::ProfileSet* profiles,
                                 const std::function<void(const std::string&)>& progress) {
  Planners planners{parallelizer::make_local_launcher(), {}};
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
    auto pool = parallelizer::make_worker_pool(*spec, {planning_slots(settings), progress}, *planners.launcher);
    planners.owned.push_back(parallelizer::make_plugin_parallelizer(spec->name, std::move(pool), model, profiles));
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
    failure.hint = printed.empty() ? fmt::format("tangram parallelizers test {} tells more", tally.info.name)
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
