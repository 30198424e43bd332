#include "tangram/parallelizer/answer_cache.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "../plugin/messages.hpp"
#include "../words.hpp"
#include "database.hpp"
#include "schema.hpp"
#include "tangram/base/digest.hpp"

namespace tangram::parallelizer {
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
    case SQLITE_NOTADB: diagnostic.message = fmt::format("this is no answer cache: {}", error.what()); break;
    case SQLITE_CORRUPT:
      diagnostic.message = fmt::format("the answer cache is damaged: {}", error.what());
      diagnostic.hint = "remove the file; plugins are then asked again";
      break;
    case SQLITE_MISMATCH:
      diagnostic.message = fmt::format("the answer cache was written by another tangram: {}", error.what());
      break;
    default: diagnostic.message = fmt::format("the answer cache cannot be used: {}", error.what());
  }
  return diagnostic;
}

std::string materials_text(const Question& question) {
  std::string text;
  for (const auto& material : question.materials) text += (text.empty() ? "" : " ") + material->digest;
  return text;
}

std::string key_of(const std::string& identity, const Question& question) {
  return digest(identity + "\n" + question.body);
}

std::int64_t used_bytes(const Database& database) {
  const std::int64_t pages = database.number("PRAGMA page_count") - database.number("PRAGMA freelist_count");
  return pages * database.number("PRAGMA page_size");
}

}  // namespace

struct AnswerCache::Tables {
  explicit Tables(const std::string& file) : database(file) {
    prepare(database);
    Transaction transaction(database);
    database.run("UPDATE session SET last = last + 1");
    session = database.number("SELECT last FROM session");
    transaction.commit();
  }

  void keep_materials(const Question& question) const;
  void drop_unused_materials() const;
  void evict(std::int64_t bytes) const;

  Database database;
  std::int64_t session = 0;  ///< number of this opening: what "used longest ago" counts in
};

void AnswerCache::Tables::keep_materials(const Question& question) const {
  Statement known(database, "SELECT 1 FROM material WHERE digest = ?");
  Statement add(database, "INSERT INTO material VALUES (?, ?)");
  for (const auto& material : question.materials) {
    if (!known.with(material->digest).next()) {
      add.with(material->digest).with(material->members).finish();
    }
    known.again();
  }
}

void AnswerCache::Tables::drop_unused_materials() const {
  std::set<std::string> used;
  Statement rows(database, "SELECT DISTINCT materials FROM answer");
  while (rows.next()) {
    const std::string digests = rows.text(0);
    for (const std::string_view word : words_of(digests)) used.emplace(word);
  }
  std::vector<std::string> unused;
  Statement all(database, "SELECT digest FROM material");
  while (all.next()) {
    if (!used.contains(all.text(0))) unused.push_back(all.text(0));
  }
  Statement drop(database, "DELETE FROM material WHERE digest = ?");
  for (const std::string& material : unused) drop.with(material).finish();
}

/// Answers of at least so many bytes, those used longest ago first.
void AnswerCache::Tables::evict(std::int64_t bytes) const {
  std::vector<std::int64_t> going;
  Statement rows(database,
                 "SELECT id, length(question) + length(materials) + length(body) FROM answer ORDER BY used, id");
  while (bytes > 0 && rows.next()) {
    going.push_back(rows.number(0));
    bytes -= rows.number(1) + kRowBytes;
  }
  rows.again();
  Statement drop(database, "DELETE FROM answer WHERE id = ?");
  for (const std::int64_t id : going) drop.with(id).finish();
  drop_unused_materials();
}

Expected<std::unique_ptr<AnswerCache>> AnswerCache::open(const std::string& file, Bytes limit) {
  std::error_code ignored;  // the database says what is wrong with a folder that is not there
  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  try {
    return std::unique_ptr<AnswerCache>(new AnswerCache(file, limit, std::make_unique<Tables>(file)));
  } catch (const SqlError& error) {
    return fail(problem_of(file, error));
  }
}

AnswerCache::AnswerCache(std::string file, Bytes limit, std::unique_ptr<Tables> tables)
    : file_(std::move(file)), limit_(limit), tables_(std::move(tables)) {}

AnswerCache::~AnswerCache() = default;

/// Does the work unless something went wrong before.
template <class Work>
void AnswerCache::guarded(Work work) {
  const std::lock_guard lock(mutex_);
  if (problem_) return;
  try {
    work();
  } catch (const SqlError& error) {
    problem_ = problem_of(file_, error);
  }
}

std::optional<PluginInfo> AnswerCache::remembered(const std::string& content) {
  std::optional<PluginInfo> info;
  guarded([&] {
    Statement rows(tables_->database, "SELECT hello FROM plugin WHERE content = ? ORDER BY used DESC, id DESC LIMIT 1");
    if (!rows.with(content).next()) return;
    Message hello = read_message(rows.text(0));
    if (hello.type == MessageType::kHello) info = std::move(hello.info);
  });
  return info;
}

std::string AnswerCache::introduce(const PluginSpec& spec, const PluginInfo& info) {
  const std::string content = content_digest(spec);
  const std::string hello = hello_line(info);
  std::string identity = digest(content + "\n" + hello);
  guarded([&] {
    Statement(tables_->database,
              "INSERT INTO plugin (identity, content, found_as, hello, used) VALUES (?, ?, ?, ?, ?) "
              "ON CONFLICT (identity) DO UPDATE SET used = excluded.used, found_as = excluded.found_as")
        .with(identity)
        .with(content)
        .with(spec.found_as)
        .with(hello)
        .with(tables_->session)
        .finish();
  });
  return identity;
}

std::vector<std::optional<std::string>> AnswerCache::find(const std::string& identity,
                                                          std::span<const Question> questions) {
  std::vector<std::optional<std::string>> found(questions.size());
  guarded([&] {
    const Database& database = tables_->database;
    Transaction transaction(database);
    // A digest may lie about its question, and a disk about its bytes: then the question is asked.
    Statement row(database, "SELECT id, body, sum, used FROM answer WHERE key = ? AND question = ?");
    Statement use(database, "UPDATE answer SET used = ? WHERE id = ?");
    std::int64_t hits = 0;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      row.with(key_of(identity, questions[i])).with(questions[i].body);
      if (row.next() && digest(row.text(1)) == row.text(2)) {
        found[i] = row.text(1);
        ++hits;
        if (row.number(3) != tables_->session) use.with(tables_->session).with(row.number(0)).finish();
      }
      row.again();
    }
    Statement(database, "UPDATE plugin SET hits = hits + ?, misses = misses + ? WHERE identity = ?")
        .with(hits)
        .with(static_cast<std::int64_t>(questions.size()) - hits)
        .with(identity)
        .finish();
    transaction.commit();
  });
  return found;
}

void AnswerCache::keep(const std::string& identity, const Question& question, const std::string& body) {
  guarded([&] {
    const Database& database = tables_->database;
    Transaction transaction(database);
    tables_->keep_materials(question);
    // A plugin whose row another process cleared meanwhile adds nothing.
    Statement(database,
              "INSERT INTO answer (key, plugin, question, materials, body, sum, used) "
              "SELECT ?, id, ?, ?, ?, ?, ? FROM plugin WHERE identity = ? "
              "ON CONFLICT (key) DO UPDATE SET question = excluded.question, materials = excluded.materials, "
              "body = excluded.body, sum = excluded.sum, used = excluded.used, verified = 0")
        .with(key_of(identity, question))
        .with(question.body)
        .with(materials_text(question))
        .with(body)
        .with(digest(body))
        .with(tables_->session)
        .with(identity)
        .finish();
    transaction.commit();
  });
}

void AnswerCache::trim() {
  guarded([&] {
    const Database& database = tables_->database;
    // Pages are freed whole: what is evicted first may free fewer than its bytes.
    for (std::int64_t used = used_bytes(database); used > limit_.value(); used = used_bytes(database)) {
      Transaction transaction(database);
      if (database.number("SELECT count(*) FROM answer") == 0) return;
      tables_->evict(used - static_cast<std::int64_t>(limit_.as_double() * kAfterEviction));
      transaction.commit();
      database.run("PRAGMA incremental_vacuum");
    }
  });
}

CacheContents AnswerCache::contents() {
  CacheContents result;
  guarded([&] {
    const Database& database = tables_->database;
    result.file = Bytes(used_bytes(database));
    Statement rows(database,
                   "SELECT p.identity, p.content, p.found_as, p.hello, p.hits, p.misses, count(a.id), "
                   "coalesce(sum(length(a.question) + length(a.materials) + length(a.body)), 0) "
                   "FROM plugin p LEFT JOIN answer a ON a.plugin = p.id GROUP BY p.id");
    while (rows.next()) {
      const Message hello = read_message(rows.text(3));
      CachedPlugin plugin;
      plugin.identity = rows.text(0);
      plugin.content = rows.text(1);
      plugin.found_as = rows.text(2);
      plugin.name = hello.info.name;
      plugin.version = hello.info.version;
      plugin.hits = rows.number(4);
      plugin.misses = rows.number(5);
      plugin.answers = rows.number(6);
      plugin.bytes = Bytes(rows.number(7));
      result.answers += plugin.answers;
      result.plugins.push_back(std::move(plugin));
    }
  });
  std::ranges::sort(result.plugins, {}, [](const CachedPlugin& plugin) {
    return std::tie(plugin.name, plugin.version, plugin.found_as, plugin.identity);
  });
  return result;
}

std::vector<CachedAnswer> AnswerCache::sample(const std::string& identity, std::int64_t most) {
  std::vector<CachedAnswer> result;
  guarded([&] {
    const Database& database = tables_->database;
    Statement rows(database,
                   "SELECT key, question, materials, body FROM answer WHERE plugin = "
                   "(SELECT id FROM plugin WHERE identity = ?) ORDER BY verified, key LIMIT ?");
    rows.with(identity).with(most);
    Statement members(database, "SELECT members FROM material WHERE digest = ?");
    while (rows.next()) {
      CachedAnswer answer{rows.text(0), Question{rows.text(1), {}}, rows.text(3)};
      const std::string digests = rows.text(2);
      for (const std::string_view word : words_of(digests)) {
        const std::string name(word);
        if (members.with(name).next()) {
          answer.question.materials.push_back(std::make_shared<const Material>(Material{name, members.text(0)}));
        }
        members.again();
      }
      result.push_back(std::move(answer));
    }
  });
  return result;
}

void AnswerCache::note_verified(const std::string& key) {
  guarded([&] {
    Statement(tables_->database, "UPDATE answer SET verified = ? WHERE key = ?")
        .with(tables_->session)
        .with(key)
        .finish();
  });
}

std::int64_t AnswerCache::clear(const std::string& name) {
  std::int64_t gone = 0;
  for (const CachedPlugin& plugin : contents().plugins) {
    if (!name.empty() && plugin.name != name && plugin.found_as != name) continue;
    guarded([&] {
      Transaction transaction(tables_->database);
      for (const char* text : {"DELETE FROM answer WHERE plugin = (SELECT id FROM plugin WHERE identity = ?)",
                               "DELETE FROM plugin WHERE identity = ?"}) {
        Statement(tables_->database, text).with(plugin.identity).finish();
      }
      tables_->drop_unused_materials();
      transaction.commit();
      gone += plugin.answers;
    });
  }
  guarded([&] { tables_->database.run("PRAGMA incremental_vacuum"); });
  return gone;
}

}  // namespace tangram::parallelizer
