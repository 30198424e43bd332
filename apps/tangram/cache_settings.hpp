// The cache that the settings name. Goes in: settings. Comes out: the one file of answers and searches, opened, or why
// there is none.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "output.hpp"
#include "settings.hpp"
#include "tangram/cache/cache_file.hpp"
#include "tangram/planner/search_cache.hpp"

namespace tangram::app {

/// --cache, or where the cache is by default; empty: it is off.
[[nodiscard]] std::string cache_file(const Settings& settings);

[[nodiscard]] Bytes cache_limit(const Settings& settings);

struct Cache {
  std::shared_ptr<cache::CacheFile> file;          ///< null: off, or unusable
  std::unique_ptr<planner::SearchCache> searches;  ///< null with it
  std::optional<Diagnostic> problem;               ///< why it could not be opened

  /// Why the cache is of no use, or stopped being so; planning goes on without it.
  [[nodiscard]] std::optional<Diagnostic> trouble() const;
};

[[nodiscard]] Cache open_cache(const Settings& settings);

/// What became of it: how many searches were looked up, and what is wrong. Nobody who did not ask for a cache is told
/// that there is none, unless it was `needed`, by plugins.
void report_cache(const Context& context, const Cache& cache, bool needed);

/// For what cannot do without: why there is none.
[[nodiscard]] Diagnostics no_cache(const Cache& cache, std::string code, std::string message);

}  // namespace tangram::app
