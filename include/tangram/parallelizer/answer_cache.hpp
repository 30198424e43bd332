// Answers of plugins, kept from one run to the next. Goes in: questions, and answers as they come. Comes out: answers
// that the same plugin gave to the same question before, so that planning again asks nobody. One SQLite file, shared by
// all processes of a user; each answer is committed as it comes, so that killing any of them loses none.
//
// The key of an answer is its question's text (which names model, profiles and shape by digest) and the plugin's
// identity: the digest of what its manifest says, of the program and the files it names, and of its hello. Answers only
// are kept (plans, infeasible, unsupported), failures never. Answers are re-checked after the cache, like fresh ones.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tangram/parallelizer/answers.hpp"
#include "tangram/parallelizer/plugin.hpp"

namespace tangram::parallelizer {

/// What a plugin is, without starting it: changes when its answers may.
[[nodiscard]] std::string content_digest(const PluginSpec& spec);

struct CachedPlugin {
  std::string name;      ///< it says itself
  std::string version;   ///< the same
  std::string found_as;  ///< what find_plugin finds it by
  std::string content;   ///< content_digest of its spec, when it was asked
  std::string identity;
  std::int64_t answers = 0;
  Bytes bytes;  ///< of these
  std::int64_t hits = 0;
  std::int64_t misses = 0;
};

struct CacheContents {
  Bytes file;  ///< its used pages
  std::int64_t answers = 0;
  std::vector<CachedPlugin> plugins;  ///< by name, version, and where they are found
};

/// An answer with what it takes to ask for it again.
struct CachedAnswer {
  std::string key;
  Question question;
  std::string body;
};

class AnswerCache {
 public:
  /// Makes the file where there is none, its folder too. `limit`: what was used longest ago makes room for the new.
  [[nodiscard]] static Expected<std::unique_ptr<AnswerCache>> open(const std::string& file, Bytes limit);
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;
  ~AnswerCache();

  /// Of a plugin that was asked before: what it said of itself when it was used last.
  [[nodiscard]] std::optional<PluginInfo> remembered(const std::string& content);
  /// The identity under which answers of this plugin are found and kept.
  [[nodiscard]] std::string introduce(const PluginSpec& spec, const PluginInfo& info);
  /// One for each question; nullopt: has to be asked. Counts hits and misses.
  [[nodiscard]] std::vector<std::optional<std::string>> find(const std::string& identity,
                                                             std::span<const Question> questions);
  void keep(const std::string& identity, const Question& question, const std::string& body);
  /// Evicts down to the limit, and a little further.
  void trim();

  [[nodiscard]] CacheContents contents();
  /// Of one plugin those that were not verified for longest.
  [[nodiscard]] std::vector<CachedAnswer> sample(const std::string& identity, std::int64_t most);
  void note_verified(const std::string& key);
  /// Of all plugins with this name, or found by it; empty: all. How many answers went.
  [[nodiscard]] std::int64_t clear(const std::string& name);

  /// The first thing that went wrong since the file was opened. From then on nothing is found or kept.
  [[nodiscard]] const std::optional<Diagnostic>& problem() const { return problem_; }

 private:
  struct Tables;
  AnswerCache(std::string file, Bytes limit, std::unique_ptr<Tables> tables);
  template <class Work>
  void guarded(Work work);

  std::mutex mutex_;  ///< guards all below
  std::string file_;
  Bytes limit_;
  std::unique_ptr<Tables> tables_;
  std::optional<Diagnostic> problem_;
};

/// `source` behind the cache. The outcome of a batch is the same as without it. `cache` must outlive the result.
[[nodiscard]] std::unique_ptr<AnswerSource> make_cached_source(const PluginSpec& spec,
                                                               std::unique_ptr<AnswerSource> source,
                                                               AnswerCache& cache);

/// The cache alone: nothing is started, and what is not in it fails as kNotCached.
[[nodiscard]] std::unique_ptr<AnswerSource> make_offline_source(const PluginSpec& spec, AnswerCache& cache);

}  // namespace tangram::parallelizer
