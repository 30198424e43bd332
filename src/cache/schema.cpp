#include "schema.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <thread>

namespace tangram::cache {
namespace {

constexpr std::int64_t kApplication = 0x54'4e'47'4d;  // "TNGM", in the header of the file (PRAGMA application_id)

// plugin:   one row for each identity: what it is (manifest, program, files) with what it says of itself (hello).
// material: what questions refer to by digest, for asking them again.
// answer:   `sum` is the digest of `body`; `used` and `verified` are numbers of sessions, 0 for never.
// search:   whole results of searches; `plugins` are the identities of those that were asked, `hits` counts how often
//           each was found.
constexpr const char* kTables = R"(
CREATE TABLE plugin (
  id INTEGER PRIMARY KEY,
  identity TEXT NOT NULL UNIQUE,
  content TEXT NOT NULL,
  found_as TEXT NOT NULL,
  hello TEXT NOT NULL,
  used INTEGER NOT NULL,
  hits INTEGER NOT NULL DEFAULT 0,
  misses INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE material (digest TEXT PRIMARY KEY, members TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE answer (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  plugin INTEGER NOT NULL,
  question TEXT NOT NULL,
  materials TEXT NOT NULL,
  body TEXT NOT NULL,
  sum TEXT NOT NULL,
  used INTEGER NOT NULL,
  verified INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX answer_by_use ON answer (used, id);
CREATE INDEX answer_by_plugin ON answer (plugin, verified, key);
CREATE TABLE session (last INTEGER NOT NULL);
INSERT INTO session VALUES (0);
)";

/// What version 2 added.
constexpr const char* kSearches = R"(
CREATE TABLE search (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  plugins TEXT NOT NULL,
  body TEXT NOT NULL,
  sum TEXT NOT NULL,
  used INTEGER NOT NULL,
  hits INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX search_by_use ON search (used, id);
)";

bool is_ours(const Database& database) { return database.number("PRAGMA application_id") == kApplication; }

bool is_new(const Database& database) {
  return database.number("PRAGMA application_id") == 0 && database.number("SELECT count(*) FROM sqlite_master") == 0;
}

void check_version(const Database& database) {
  const std::int64_t version = database.number("PRAGMA user_version");
  if (version == kSchemaVersion) return;
  throw SqlError(SQLITE_MISMATCH,
                 fmt::format("its format is number {}, this program knows number {}", version, kSchemaVersion));
}

/// SQLite does not wait for other processes here, as it does everywhere else.
void set_write_ahead(const Database& database) {
  constexpr int kTries = 500;
  constexpr std::chrono::milliseconds kPause(10);
  for (int i = 0;; ++i) {
    try {
      database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
      return;
    } catch (const SqlError& error) {
      if (error.code() != SQLITE_BUSY || i == kTries) throw;
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace

void prepare(const Database& database) {
  // In this order: another process may make the cache in between, and what is no longer new stays what it is.
  if (is_new(database)) {
    // Only before the first table is made. The space of what was evicted then goes back to the file system.
    database.run("PRAGMA auto_vacuum = INCREMENTAL");
  } else if (!is_ours(database)) {
    throw SqlError(SQLITE_NOTADB, "it is a database of another program");
  }
  set_write_ahead(database);
  Transaction transaction(database);
  if (is_new(database)) {  // still, now that nobody else can make it
    database.run(kTables);
    database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = 1;", kApplication));
  }
  if (database.number("PRAGMA user_version") == 1) {
    database.run(kSearches);
    database.run("PRAGMA user_version = 2");
  }
  check_version(database);
  transaction.commit();
}

}  // namespace tangram::cache
