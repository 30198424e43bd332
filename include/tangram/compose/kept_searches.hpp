// Whole results of searches, kept from one run to the next. Goes in: all that a search reads. Comes out: its result,
// looked up where the same search was made before, byte for byte what searching again gives.
//
// Island classes are counted and not named, so that fleets which are alike but for the names of their hosts share
// results: a node that a spare takes the place of, a node that came back, a fleet that did not change. The key of a
// result is a digest of all that search_target reads: program, target, model with its job, islands without hosts,
// options, profiles, parallelizers. Results of parallelizers that failed, or that answer otherwise each time, are not
// kept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tangram/cache/cache_file.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/compose/target.hpp"

namespace tangram::compose {

/// What is asked of search_target.
struct SearchQuestion {
  Target target = Target::kGeneric;
  const model::Model& model;
  const cluster::IslandHierarchy& hierarchy;
  std::span<const parallelizer::Parallelizer* const> parallelizers;  ///< made for the model and options.profiles
  const SearchOptions& options;
};

/// The first whose answers nobody can be sure to get again; null: none.
[[nodiscard]] const parallelizer::ParallelizerInfo* first_unknown(
    std::span<const parallelizer::Parallelizer* const> parallelizers);

/// `program`: digest of the code that searches. nullopt: there is a first_unknown.
[[nodiscard]] std::optional<std::string> search_key(const SearchQuestion& question, const std::string& program);

/// Of what a search reads of the islands: equal for fleets that are alike but for names.
[[nodiscard]] std::string islands_key(const cluster::IslandHierarchy& hierarchy);

/// Results in the file, and how often they were found.
struct KeptContents {
  std::int64_t searches = 0;
  Bytes bytes;
  std::int64_t hits = 0;
};

class KeptSearches {
 public:
  KeptSearches(std::shared_ptr<cache::CacheFile> file, std::string program);

  /// What search_target gives; looked up, or made and kept. Progress is of searches that are made.
  [[nodiscard]] SearchResult search(const SearchQuestion& question, const ProgressCallback& progress);

  [[nodiscard]] std::int64_t found() const { return found_; }  ///< searches that were looked up
  [[nodiscard]] std::int64_t made() const { return made_; }    ///< searches that had to be made
  [[nodiscard]] std::int64_t kept() const { return kept_; }    ///< of these

 private:
  [[nodiscard]] std::optional<SearchResult> find(const std::string& key);
  void keep(const std::string& key, const SearchResult& result);

  std::shared_ptr<cache::CacheFile> file_;
  std::string program_;
  std::int64_t found_ = 0;
  std::int64_t made_ = 0;
  std::int64_t kept_ = 0;
};

[[nodiscard]] KeptContents kept_contents(cache::CacheFile& file);

/// How many of the results in the file can be read, and how many cannot: those are forgotten.
struct KeptState {
  std::int64_t whole = 0;
  std::int64_t damaged = 0;
};
[[nodiscard]] KeptState verify_kept(cache::CacheFile& file);

/// Forgets those that a plugin of this identity was asked for; empty: all. How many went.
std::int64_t clear_kept(cache::CacheFile& file, const std::string& plugin = {});

}  // namespace tangram::compose
