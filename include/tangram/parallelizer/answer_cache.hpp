// Answers of plugins, kept from one run to the next. Goes in: questions, and answers as they come. Comes out: answers
// that the same plugin gave to the same question before, so that planning again asks nobody.
//
// The key of an answer is its question's text (which names model, profiles and shape by digest) and the plugin's
// identity: the digest of what its manifest says, of the program and the files it names, and of its hello. Answers only
// are kept (plans, infeasible, unsupported), failures never. Answers are re-checked after the cache, like fresh ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tangram/cache/cache_file.hpp"
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
  explicit AnswerCache(std::shared_ptr<cache::CacheFile> file);
  /// In a file that nobody else of this process has open.
  [[nodiscard]] static Expected<std::unique_ptr<AnswerCache>> open(const std::string& file, Bytes limit);

  /// Of a plugin that was asked before: what it said of itself when it was used last.
  [[nodiscard]] std::optional<PluginInfo> remembered(const std::string& content);
  /// The identity under which answers of this plugin are found and kept.
  [[nodiscard]] std::string introduce(const PluginSpec& spec, const PluginInfo& info);
  /// One for each question; nullopt: has to be asked. Counts hits and misses.
  [[nodiscard]] std::vector<std::optional<std::string>> find(const std::string& identity,
                                                             std::span<const Question> questions);
  void keep(const std::string& identity, const Question& question, const std::string& body);
  /// Makes room for what came (CacheFile::trim).
  void trim() { file_->trim(); }

  [[nodiscard]] CacheContents contents();
  /// Of one plugin those that were not verified for longest.
  [[nodiscard]] std::vector<CachedAnswer> sample(const std::string& identity, std::int64_t most);
  void note_verified(const std::string& key);
  /// Of all plugins with this name, or found by it; empty: all. How many answers went.
  [[nodiscard]] std::int64_t clear(const std::string& name);

  [[nodiscard]] const std::optional<Diagnostic>& problem() const { return file_->problem(); }
  [[nodiscard]] cache::CacheFile& file() const { return *file_; }

 private:
  std::shared_ptr<cache::CacheFile> file_;
};

/// `source` behind the cache. The outcome of a batch is the same as without it. `cache` must outlive the result.
[[nodiscard]] std::unique_ptr<AnswerSource> make_cached_source(const PluginSpec& spec,
                                                               std::unique_ptr<AnswerSource> source,
                                                               AnswerCache& cache);

/// The cache alone: nothing is started, and what is not in it fails as kNotCached.
[[nodiscard]] std::unique_ptr<AnswerSource> make_offline_source(const PluginSpec& spec, AnswerCache& cache);

}  // namespace tangram::parallelizer
