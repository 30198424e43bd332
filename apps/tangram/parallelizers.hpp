// Who plans the stages. Goes in: settings. Comes out: the parallelizers they name, built-in or plugins, and afterwards
// what failures of theirs mean for people and for the exit code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache_settings.hpp"
#include "exit_codes.hpp"
#include "settings.hpp"
#include "tangram/base/deadline.hpp"
#include "tangram/parallelizer/answer_cache.hpp"
#include "tangram/parallelizer/plugin_places.hpp"
#include "tangram/parallelizer/tally.hpp"
#include "workers.hpp"

namespace tangram::app {

/// --parallelizer-path, then beside the program (configs/parallelizers of the source tree,
/// share/tangram/parallelizers), the user's configuration folder, and the PATH.
[[nodiscard]] parallelizer::PluginPlaces plugin_places(const Settings& settings);

/// Owns what the parallelizers stand on.
struct Planners {
  std::unique_ptr<parallelizer::AnswerCache> answers;              ///< null: there is no cache, or no plugin
  std::vector<std::unique_ptr<parallelizer::Launcher>> launchers;  ///< one of each plugin that may be started
  std::vector<std::unique_ptr<parallelizer::Parallelizer>> owned;

  [[nodiscard]] std::vector<const parallelizer::Parallelizer*> all() const;
};

/// Those of --parallelizer, in that order. A plugin that does not start is one whose every query fails; with
/// --offline none is started, and what the cache lacks fails. After the deadline plugins answer no more. Model and
/// profiles must outlive the result; null: no profiles.
[[nodiscard]] Expected<Planners> make_planners(const Settings& settings, const model::Model& model,
                                               const cost::ProfileSet* profiles, const Cache& cache,
                                               const Deadline& deadline, const Progress& progress);

/// kOk when nobody failed; kStoppedEarly when time alone was short; kPlugin otherwise.
[[nodiscard]] ExitCode exit_code_of(const std::vector<parallelizer::Tally>& tallies);

}  // namespace tangram::app
