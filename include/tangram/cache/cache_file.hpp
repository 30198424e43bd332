// The one file in which results are kept from run to run. Goes in: its name and how large it may become. Comes out: an
// SQLite database with the tables of all that is kept, shared by all processes of a user; each result is committed as
// it comes, so that killing any of them loses none. What the tables mean is up to those who keep results in them:
// answers of plugins (parallelizer), searches (compose). What was used longest ago makes room, whatever it is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/base/units.hpp"
#include "tangram/cache/database.hpp"

namespace tangram::cache {

class CacheFile {
 public:
  /// Makes the file where there is none, its folder too. `limit`: what was used longest ago makes room for the new.
  [[nodiscard]] static Expected<std::shared_ptr<CacheFile>> open(const std::string& file, Bytes limit);
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;
  ~CacheFile();

  /// Does the work unless something went wrong before; one caller at a time. A SqlError ends it and becomes `problem`.
  void use(const std::function<void(const Database&)>& work);
  /// Number of this opening: what "used longest ago" counts in.
  [[nodiscard]] std::int64_t session() const { return session_; }
  /// Evicts down to the limit, and a little further.
  void trim();
  [[nodiscard]] Bytes used();  ///< its pages that hold something
  /// Gives the pages of what was deleted back to the file system.
  void shrink();

  /// The first thing that went wrong since the file was opened. From then on nothing is found or kept.
  [[nodiscard]] const std::optional<Diagnostic>& problem() const { return problem_; }

 private:
  CacheFile(std::string file, Bytes limit);

  std::mutex mutex_;  ///< guards all below
  std::string file_;
  Bytes limit_;
  Database database_;
  std::int64_t session_ = 0;
  std::optional<Diagnostic> problem_;
};

/// Forgets what no answer that is left refers to.
void drop_unused_materials(const Database& database);

}  // namespace tangram::cache
