#include "tangram/io/file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace tangram;
using namespace tangram::io;
using tangram::testing::ScratchFolder;
namespace fs = std::filesystem;

namespace {

void put(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

}  // namespace

TEST_CASE("file: read whole") {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  put(path, "abc");
  CHECK(read_file(path) == std::string("abc"));
  CHECK(read_file(path, 3) == std::string("abc"));
  const auto large = read_file(path, 2);
  REQUIRE_FALSE(large);
  CHECK(render(large.error()) == path + ": error: the file is larger than 2 bytes\n");
}

TEST_CASE("file: what cannot be read says why") {
  const ScratchFolder folder;
  const auto missing = read_file(folder.file("b"));
  REQUIRE_FALSE(missing);
  CHECK(render(missing.error()) == folder.file("b") + ": error: cannot read the file: No such file or directory\n");
  const auto directory = read_file(folder.file("."));
  REQUIRE_FALSE(directory);
  CHECK(render(directory.error()) == folder.file(".") + ": error: cannot read the file: Is a directory\n");
}

TEST_CASE("file: output appears on commit only") {
  const ScratchFolder folder;
  const std::string path = folder.file("out");
  auto output = OutputFile::open(path);
  REQUIRE(output);
  CHECK_FALSE(fs::exists(path));
  CHECK(output->commit("done"));
  CHECK(read_file(path) == std::string("done"));
  CHECK(folder.count() == 1);
}

TEST_CASE("file: without commit nothing is left, and the old file stays") {
  const ScratchFolder folder;
  const std::string path = folder.file("out");
  put(path, "old");
  {
    auto output = OutputFile::open(path);
    REQUIRE(output);
    OutputFile moved = *std::move(output);
    CHECK(folder.count() == 2);
  }
  CHECK(read_file(path) == std::string("old"));
  CHECK(folder.count() == 1);
}

TEST_CASE("file: a replaced file keeps its permissions, a link stays a link") {
  const ScratchFolder folder;
  const std::string path = folder.file("out");
  put(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path, folder.file("link"));
  auto output = OutputFile::open(folder.file("link"));
  REQUIRE(output);
  REQUIRE(output->commit("new"));
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(read_file(path) == std::string("new"));
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("file: a device is written to, not replaced") {
  auto output = OutputFile::open("/dev/null");
  REQUIRE(output);
  CHECK(output->commit("gone"));
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("file: a bad output path fails at once") {
  const ScratchFolder folder;
  const auto nowhere = OutputFile::open(folder.file("no/out"));
  REQUIRE_FALSE(nowhere);
  CHECK(render(nowhere.error()) ==
        folder.file("no/out") +
            ": error: cannot write the file: No such file or directory\n  hint: there is no folder " +
            folder.file("no") + "\n");
  CHECK_FALSE(OutputFile::open(folder.file("")));
}

TEST_CASE("file: two names of one file") {
  const ScratchFolder folder;
  put(folder.file("a"), "x");
  put(folder.file("b"), "x");
  CHECK(same_file(folder.file("a"), folder.file("./a")));
  CHECK_FALSE(same_file(folder.file("a"), folder.file("b")));
  CHECK_FALSE(same_file(folder.file("a"), folder.file("none")));
}
