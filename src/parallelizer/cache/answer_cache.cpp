#include "tangram/parallelizer/answer_cache.hpp"

#include <algorithm>
#include <tuple>

#include "../plugin/messages.hpp"
#include "../words.hpp"
#include "tangram/base/digest.hpp"

namespace tangram::parallelizer {

using cache::Database;
using cache::Statement;
using cache::Transaction;

namespace {

std::string materials_text(const Question& question) {
  std::string text;
  for (const auto& material : question.materials) text += (text.empty() ? "" : " ") + material->digest;
  return text;
}

std::string key_of(const std::string& identity, const Question& question) {
  return digest(identity + "\n" + question.body);
}

void keep_materials(const Database& database, const Question& question) {
  Statement known(database, "SELECT 1 FROM material WHERE digest = ?");
  Statement add(database, "INSERT INTO material VALUES (?, ?)");
  for (const auto& material : question.materials) {
    if (!known.with(material->digest).next()) {
      add.with(material->digest).with(material->members).finish();
    }
    known.again();
  }
}

}  // namespace

AnswerCache::AnswerCache(std::shared_ptr<cache::CacheFile> file) : file_(std::move(file)) {}

Expected<std::unique_ptr<AnswerCache>> AnswerCache::open(const std::string& file, Bytes limit) {
  auto opened = cache::CacheFile::open(file, limit);
  if (!opened) return fail(std::move(opened.error()));
  return std::make_unique<AnswerCache>(std::move(*opened));
}

std::optional<PluginInfo> AnswerCache::remembered(const std::string& content) {
  std::optional<PluginInfo> info;
  file_->use([&](const Database& database) {
    Statement rows(database, "SELECT hello FROM plugin WHERE content = ? ORDER BY used DESC, id DESC LIMIT 1");
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
  file_->use([&](const Database& database) {
    Statement(database,
              "INSERT INTO plugin (identity, content, found_as, hello, used) VALUES (?, ?, ?, ?, ?) "
              "ON CONFLICT (identity) DO UPDATE SET used = excluded.used, found_as = excluded.found_as")
        .with(identity)
        .with(content)
        .with(spec.found_as)
        .with(hello)
        .with(file_->session())
        .finish();
  });
  return identity;
}

std::vector<std::optional<std::string>> AnswerCache::find(const std::string& identity,
                                                          std::span<const Question> questions) {
  std::vector<std::optional<std::string>> found(questions.size());
  file_->use([&](const Database& database) {
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
        if (row.number(3) != file_->session()) use.with(file_->session()).with(row.number(0)).finish();
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
  file_->use([&](const Database& database) {
    Transaction transaction(database);
    keep_materials(database, question);
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
        .with(file_->session())
        .with(identity)
        .finish();
    transaction.commit();
  });
}

CacheContents AnswerCache::contents() {
  CacheContents result;
  file_->use([&](const Database& database) {
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
  file_->use([&](const Database& database) {
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
  file_->use([&](const Database& database) {
    Statement(database, "UPDATE answer SET verified = ? WHERE key = ?").with(file_->session()).with(key).finish();
  });
}

std::int64_t AnswerCache::clear(const std::string& name) {
  std::int64_t gone = 0;
  for (const CachedPlugin& plugin : contents().plugins) {
    if (!name.empty() && plugin.name != name && plugin.found_as != name) continue;
    file_->use([&](const Database& database) {
      Transaction transaction(database);
      for (const char* text : {"DELETE FROM answer WHERE plugin = (SELECT id FROM plugin WHERE identity = ?)",
                               "DELETE FROM plugin WHERE identity = ?"}) {
        Statement(database, text).with(plugin.identity).finish();
      }
      cache::drop_unused_materials(database);
      transaction.commit();
      gone += plugin.answers;
    });
  }
  file_->shrink();
  return gone;
}

}  // namespace tangram::parallelizer
