#include "tangram/cache/cache_file.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "schema.hpp"

namespace tangram::cache {
namespace {

// Evicting goes a little below the limit, so that not every batch evicts.
constexpr double kAfterEviction = 0.9;
constexpr std::int64_t kRowBytes = 300;  // what a row takes beside its texts: key, digests, indices

Diagnostic problem_of(const std::string& file, const SqlError& error) {
  Diagnostic diagnostic;
  diagnostic.where.file = file;
  diagnostic.code = "cache-unusable";
  diagnostic.hint = "name another file with --cache FILE, or plan without one: --cache off";
  switch (error.code()) {
    case SQLITE_NOTADB: diagnostic.message = fmt::format("this is no cache: {}", error.what()); break;
    case SQLITE_CORRUPT:
      diagnostic.message = fmt::format("the cache is damaged: {}", error.what());
      diagnostic.hint = "remove the file; plugins are then asked again, and searches made anew";
      break;
    case SQLITE_MISMATCH:
      diagnostic.message = fmt::format("the cache was written by another tangram: {}", error.what());
      break;
    default: diagnostic.message = fmt::format("the cache cannot be used: {}", error.what());
  }
  return diagnostic;
}

std::int64_t used_bytes(const Database& database) {
  const std::int64_t pages = database.number("PRAGMA page_count") - database.number("PRAGMA freelist_count");
  return pages * database.number("PRAGMA page_size");
}

bool is_empty(const Database& database) {
  return database.number("SELECT (SELECT count(*) FROM answer) + (SELECT count(*) FROM search)") == 0;
}

/// Results of at least so many bytes, those used longest ago first.
void evict(const Database& database, std::int64_t bytes) {
  std::vector<std::pair<bool, std::int64_t>> going;  // a search or an answer, its id
  {
    Statement rows(database,
                   "SELECT 0, id, length(question) + length(materials) + length(body), used FROM answer UNION ALL "
                   "SELECT 1, id, length(body), used FROM search ORDER BY 4, 1, 2");
    while (bytes > 0 && rows.next()) {
      going.emplace_back(rows.number(0) == 1, rows.number(1));
      bytes -= rows.number(2) + kRowBytes;
    }
  }
  Statement answer(database, "DELETE FROM answer WHERE id = ?");
  Statement search(database, "DELETE FROM search WHERE id = ?");
  for (const auto& [is_search, id] : going) (is_search ? search : answer).with(id).finish();
  drop_unused_materials(database);
}

}  // namespace

Expected<std::shared_ptr<CacheFile>> CacheFile::open(const std::string& file, Bytes limit) {
  std::error_code ignored;  // the database says what is wrong with a folder that is not there
  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  try {
    return std::shared_ptr<CacheFile>(new CacheFile(file, limit));
  } catch (const SqlError& error) {
    return fail(problem_of(file, error));
  }
}

CacheFile::CacheFile(std::string file, Bytes limit) : file_(std::move(file)), limit_(limit), database_(file_) {
  prepare(database_);
  Transaction transaction(database_);
  database_.run("UPDATE session SET last = last + 1");
  session_ = database_.number("SELECT last FROM session");
  transaction.commit();
}

CacheFile::~CacheFile() = default;

void CacheFile::use(const std::function<void(const Database&)>& work) {
  const std::lock_guard lock(mutex_);
  if (problem_) return;
  try {
    work(database_);
  } catch (const SqlError& error) {
    problem_ = problem_of(file_, error);
  }
}

void CacheFile::trim() {
  use([&](const Database& database) {
    // Pages are freed whole: what is evicted first may free fewer than its bytes.
    for (std::int64_t used = used_bytes(database); used > limit_.value(); used = used_bytes(database)) {
      Transaction transaction(database);
      if (is_empty(database)) return;
      evict(database, used - static_cast<std::int64_t>(limit_.as_double() * kAfterEviction));
      transaction.commit();
      database.run("PRAGMA incremental_vacuum");
    }
  });
}

Bytes CacheFile::used() {
  Bytes bytes;
  use([&](const Database& database) { bytes = Bytes(used_bytes(database)); });
  return bytes;
}

void CacheFile::shrink() {
  use([](const Database& database) { database.run("PRAGMA incremental_vacuum"); });
}

void drop_unused_materials(const Database& database) {
  database.run(
      "WITH used AS MATERIALIZED (SELECT DISTINCT materials AS digests FROM answer) "
      "DELETE FROM material WHERE NOT EXISTS (SELECT 1 FROM used WHERE instr(digests, material.digest) > 0)");
}

}  // namespace tangram::cache
