// Whole results of searches, stored from one run to the next. Goes in: all that a search reads. Comes out: its result,
// looked up where the same search was made before, byte for byte what searching again gives.
//
// Island classes are counted and not named, so that fleets which are alike but for the names of their hosts share
// results: a node that a spare takes the place of, a node that came back, a fleet that did not change. The key of a
// result is a digest of all that search_target reads: program, target, model with its job, islands without hosts,
// options, profiles, parallelizers. Results of parallelizers that failed, or that answer otherwise each time, are not
// stored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tangram/cache/cache_file.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::planner {

/// What is asked of search_target.
struct SearchQuestion {
  runtime::Target target = runtime::Target::kGeneric;
  const model::Model& model;
  const cluster::IslandHierarchy& hierarchy;
  std::span<const parallelizer::Parallelizer* const> parallelizers;  ///< made for the model and options.profiles
  const compose::SearchOptions& options;
};

/// The first whose answers nobody can be sure to get again; null: none.
[[nodiscard]] const parallelizer::ParallelizerInfo* first_uncacheable(
    std::span<const parallelizer::Parallelizer* const> parallelizers);

/// `program`: digest of the code that searches. nullopt: there is a first_uncacheable, or the tuning is not the usual
/// one.
[[nodiscard]] std::optional<std::string> search_key(const SearchQuestion& question, const std::string& program);

/// Of what a search reads of the islands: equal for fleets that are alike but for names.
[[nodiscard]] std::string islands_key(const cluster::IslandHierarchy& hierarchy);

/// Results in the file, and how often they were looked up.
struct SearchCacheContents {
  std::int64_t searches = 0;
  Bytes bytes;
  std::int64_t hits = 0;
};

class SearchCache {
 public:
  SearchCache(std::shared_ptr<cache::CacheFile> file, std::string program);

  /// What search_target gives; looked up, or made and stored. Progress is of searches that are made.
  [[nodiscard]] compose::SearchResult search(const SearchQuestion& question, const compose::ProgressCallback& progress);

  [[nodiscard]] std::int64_t hits() const { return hits_; }      ///< searches that were looked up
  [[nodiscard]] std::int64_t misses() const { return misses_; }  ///< searches that had to be made
  [[nodiscard]] std::int64_t stored() const { return stored_; }  ///< of these

 private:
  [[nodiscard]] std::optional<compose::SearchResult> find(const std::string& key);
  void store(const std::string& key, const compose::SearchResult& result);

  std::shared_ptr<cache::CacheFile> file_;
  std::string program_;
  std::int64_t hits_ = 0;
  std::int64_t misses_ = 0;
  std::int64_t stored_ = 0;
};

[[nodiscard]] SearchCacheContents search_cache_contents(cache::CacheFile& file);

/// How many of the results in the file can be read, and how many cannot: those are forgotten.
struct SearchCacheState {
  std::int64_t whole = 0;
  std::int64_t damaged = 0;
};
[[nodiscard]] SearchCacheState verify_search_cache(cache::CacheFile& file);

/// Forgets those that a plugin of this identity was asked for; empty: all. How many went.
std::int64_t clear_search_cache(cache::CacheFile& file, const std::string& plugin = {});

}  // namespace tangram::planner
