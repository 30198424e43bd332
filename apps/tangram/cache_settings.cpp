#include "cache_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "program_digest.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::app {

std::string cache_file(const Settings& settings) {
  const std::string& said = settings.text("cache");
  if (said == "off") return "";
  return said.empty() ? user_cache_path(environment_variable, "answers.sqlite") : said;
}

Bytes cache_limit(const Settings& settings) {
  constexpr std::int64_t kMostMebibytes = std::int64_t{1} << 30;
  return Bytes(std::min(settings.count("cache-limit").value_or(1), kMostMebibytes) << 20);
}

std::optional<Diagnostic> Cache::trouble() const { return file != nullptr ? file->problem() : problem; }

Cache open_cache(const Settings& settings) {
  Cache cache;
  const std::string name = cache_file(settings);
  if (name.empty()) return cache;
  auto opened = cache::CacheFile::open(name, cache_limit(settings));
  if (!opened) {
    cache.problem = opened.error().front();
    return cache;
  }
  cache.file = std::move(*opened);
  cache.searches = std::make_unique<planner::SearchCache>(cache.file, program_digest());
  return cache;
}

void report_cache(const Context& context, const Cache& cache, bool needed) {
  if (cache.searches != nullptr) {
    context.terminal.detail(fmt::format("{} looked up, {} made, {} of these kept",
                                        counted(cache.searches->hits(), "search"), cache.searches->misses(),
                                        cache.searches->stored()));
  }
  const auto trouble = cache.trouble();
  if (!trouble) return;
  const std::string text =
      fmt::format("works without the cache: {}: {} ({})", trouble->where.file, trouble->message, trouble->hint);
  if (needed || context.settings.value("cache").origin != Origin::kDefault) {
    context.terminal.note(text);
  } else {
    context.terminal.detail(text);
  }
}

Diagnostics no_cache(const Cache& cache, std::string code, std::string message) {
  if (cache.problem) return {*cache.problem};
  return {problem(ErrorKind::kUsage, std::move(code), std::move(message), "name its file with --cache FILE")};
}

}  // namespace tangram::app
