// The file itself: formats of before, room for all that is kept, files of others.
#include "tangram/cache/cache_file.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace tangram;
using namespace tangram::cache;
using tangram::testing::ScratchFolder;

namespace {

constexpr Bytes kRoomy(std::int64_t{1} << 30);

std::int64_t number(CacheFile& file, const std::string& query) {
  std::int64_t result = -1;
  file.use([&](const Database& database) { result = database.number(query); });
  return result;
}

}  // namespace

TEST_CASE("cache file: one of the format before gets what is new, and loses nothing") {
  const ScratchFolder folder;
  {
    const auto file = *CacheFile::open(folder.file("cache.sqlite"), kRoomy);
    file->use([](const Database& database) {
      database.run(
          "DROP TABLE search; PRAGMA user_version = 1;"
          "INSERT INTO answer (key, plugin, question, materials, body, sum, used) VALUES ('k', 1, '', '', '', '', 0)");
    });
    REQUIRE_FALSE(file->problem());
  }
  const auto file = CacheFile::open(folder.file("cache.sqlite"), kRoomy);
  REQUIRE(file);
  CHECK(number(**file, "SELECT count(*) FROM search") == 0);
  CHECK(number(**file, "SELECT count(*) FROM answer") == 1);
  CHECK(number(**file, "PRAGMA user_version") == 2);
}

TEST_CASE("cache file: one of a later format is left alone") {
  const ScratchFolder folder;
  (*CacheFile::open(folder.file("cache.sqlite"), kRoomy))->use([](const Database& database) {
    database.run("PRAGMA user_version = 3");
  });
  const auto file = CacheFile::open(folder.file("cache.sqlite"), kRoomy);
  REQUIRE_FALSE(file);
  CHECK(file.error().front().message ==
        "the cache was written by another tangram: its format is number 3, this program knows number 2");
}

TEST_CASE("cache file: one of somebody else is not written to") {
  const ScratchFolder folder;
  std::ofstream(folder.file("cache.sqlite"))
      << "not a database, but somebody's text of more than a hundred bytes, which is to stay "
         "exactly as it is whatever happens";
  const auto file = CacheFile::open(folder.file("cache.sqlite"), kRoomy);
  REQUIRE_FALSE(file);
  CHECK(file.error().front().message.starts_with("this is no cache: "));
}

TEST_CASE("cache file: answers and searches make room for each other") {
  const ScratchFolder folder;
  const std::string insert_answer =
      "INSERT INTO answer (key, plugin, question, materials, body, sum, used) SELECT 'a' || value, 1, '', '', "
      "hex(zeroblob(5000)), '', 2 * value FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n "
      "WHERE value < 40) SELECT value FROM n)";
  const std::string insert_search =
      "INSERT INTO search (key, plugins, body, sum, used) SELECT 's' || value, '', hex(zeroblob(5000)), '', 2 * value "
      "+ 1 FROM (WITH "
      "RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 40) SELECT value FROM n)";
  const auto file = *CacheFile::open(folder.file("cache.sqlite"), Bytes(500'000));
  file->use([&](const Database& database) {
    database.run(insert_answer);
    database.run(insert_search);
  });
  file->trim();
  REQUIRE_FALSE(file->problem());
  CHECK(file->used() <= Bytes(500'000));
  const std::int64_t answers = number(*file, "SELECT count(*) FROM answer");
  const std::int64_t searches = number(*file, "SELECT count(*) FROM search");
  CHECK(answers > 10);
  CHECK(searches - answers <= 1);
  CHECK(answers - searches <= 1);
  // All that is left was used after all that went.
  CHECK(number(*file, "SELECT min(used) FROM answer") == 2 * (40 - answers + 1));
  CHECK(number(*file, "SELECT min(used) FROM search") == 2 * (40 - searches + 1) + 1);
}
