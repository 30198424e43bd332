#include "tangram/planner/search_cache.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "result_text.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/compose/target.hpp"

namespace tangram::planner {

using cache::Database;
using cache::Statement;
using cache::Transaction;

namespace {

/// Whether the same search would come to the same end. Clocks are all that could make it another, and failures may be
/// mended.
bool lasts(const compose::SearchResult& result, const Deadline& deadline) {
  return !deadline.is_missed() && std::ranges::none_of(result.parallelizers, [](const parallelizer::Tally& tally) {
    return tally.failures() > 0 || tally.timed_out || tally.first_failure;
  });
}

std::string plugins_of(const compose::SearchResult& result) {
  std::string identities;
  for (const parallelizer::Tally& tally : result.parallelizers) {
    if (!tally.info.identity.empty()) identities += tally.info.identity + " ";
  }
  return identities;
}

}  // namespace

SearchCache::SearchCache(std::shared_ptr<cache::CacheFile> file, std::string program)
    : file_(std::move(file)), program_(std::move(program)) {}

compose::SearchResult SearchCache::search(const SearchQuestion& question, const compose::ProgressCallback& progress) {
  const std::optional<std::string> key = search_key(question, program_);
  if (key) {
    if (auto known = find(*key)) {
      ++hits_;
      return *std::move(known);
    }
  }
  ++misses_;
  compose::SearchResult result = compose::search_target(question.target, question.model, question.hierarchy,
                                                        question.parallelizers, question.options, progress);
  if (key && lasts(result, question.options.deadline)) store(*key, result);
  return result;
}

std::optional<compose::SearchResult> SearchCache::find(const std::string& key) {
  std::optional<compose::SearchResult> found;
  file_->use([&](const Database& database) {
    std::int64_t id = 0;
    {
      Statement row(database, "SELECT id, body, sum FROM search WHERE key = ?");
      // What a disk did to the text is found out by its digest; what another program wrote, by reading it.
      if (!row.with(key).next() || digest(row.text(1)) != row.text(2)) return;
      found = read_result(row.text(1));
      id = row.number(0);
    }
    if (!found) return;
    Statement(database, "UPDATE search SET used = ?, hits = hits + 1 WHERE id = ?")
        .with(file_->session())
        .with(id)
        .finish();
  });
  return found;
}

void SearchCache::store(const std::string& key, const compose::SearchResult& result) {
  const std::optional<std::string> text = write_result(result);
  if (!text) return;
  bool done = false;
  file_->use([&](const Database& database) {
    Transaction transaction(database);
    Statement(
        database,
        "INSERT INTO search (key, plugins, body, sum, used) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
        "body = excluded.body, sum = excluded.sum, used = excluded.used")
        .with(key)
        .with(plugins_of(result))
        .with(*text)
        .with(digest(*text))
        .with(file_->session())
        .finish();
    transaction.commit();
    done = true;
  });
  if (done) ++stored_;
  file_->trim();
}

SearchCacheContents search_cache_contents(cache::CacheFile& file) {
  SearchCacheContents contents;
  file.use([&](const Database& database) {
    Statement row(database, "SELECT count(*), coalesce(sum(length(body)), 0), coalesce(sum(hits), 0) FROM search");
    if (row.next()) contents = {row.number(0), Bytes(row.number(1)), row.number(2)};
  });
  return contents;
}

SearchCacheState verify_search_cache(cache::CacheFile& file) {
  SearchCacheState state;
  file.use([&](const Database& database) {
    std::vector<std::int64_t> damaged;
    {
      Statement rows(database, "SELECT id, body, sum FROM search");
      while (rows.next()) {
        if (digest(rows.text(1)) == rows.text(2) && read_result(rows.text(1))) {
          ++state.whole;
        } else {
          damaged.push_back(rows.number(0));
        }
      }
    }
    Statement drop(database, "DELETE FROM search WHERE id = ?");
    for (const std::int64_t id : damaged) drop.with(id).finish();
    state.damaged = static_cast<std::int64_t>(damaged.size());
  });
  return state;
}

std::int64_t clear_search_cache(cache::CacheFile& file, const std::string& plugin) {
  std::int64_t gone = 0;
  file.use([&](const Database& database) {
    Transaction transaction(database);
    Statement(database, "DELETE FROM search WHERE instr(plugins, ?) > 0 OR ? = ''").with(plugin).with(plugin).finish();
    gone = database.number("SELECT changes()");
    transaction.commit();
  });
  file.shrink();
  return gone;
}

}  // namespace tangram::planner
