#include "tangram/io/folder.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tangram/io/file.hpp"

using namespace tangram;
using tangram::testing::ScratchFolder;
namespace fs = std::filesystem;

TEST_CASE("a folder appears whole, with its folders and rights") {
  const ScratchFolder scratch;
  auto folder = io::OutputFolder::open(scratch.file("out/"));
  REQUIRE(folder);
  REQUIRE(folder->add("a/b/start.sh", "#!/bin/sh\n", true));
  REQUIRE(folder->add("text", "text\n"));
  CHECK_FALSE(fs::exists(scratch.file("out")));
  REQUIRE(folder->commit());
  CHECK(scratch.count() == 1);
  CHECK(io::read_file(scratch.file("out/text")).value() == "text\n");
  CHECK((fs::status(scratch.file("out/a/b/start.sh")).permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK((fs::status(scratch.file("out/text")).permissions() & fs::perms::owner_exec) == fs::perms::none);
}

TEST_CASE("a folder that is not committed leaves nothing behind") {
  const ScratchFolder scratch;
  {
    auto folder = io::OutputFolder::open(scratch.file("out"));
    REQUIRE(folder);
    REQUIRE(folder->add("text", "text\n"));
  }
  CHECK(scratch.count() == 0);
}

TEST_CASE("nothing is written over, an empty folder is filled") {
  const ScratchFolder scratch;
  fs::create_directory(scratch.file("empty"));
  fs::create_directory(scratch.file("full"));
  std::ofstream(scratch.file("full/file")) << "precious";
  const auto full = io::OutputFolder::open(scratch.file("full"));
  REQUIRE_FALSE(full);
  CHECK(full.error().front().code == "folder-exists");
  CHECK(full.error().front().message == "the folder is not empty");
  const auto file = io::OutputFolder::open(scratch.file("full/file"));
  REQUIRE_FALSE(file);
  CHECK(file.error().front().message == "there is a file of this name");
  const auto nowhere = io::OutputFolder::open(scratch.file("no/where"));
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().front().message == "cannot write the folder: No such file or directory");
  auto empty = io::OutputFolder::open(scratch.file("empty"));
  REQUIRE(empty);
  REQUIRE(empty->add("text", "text\n"));
  REQUIRE(empty->commit());
  CHECK(io::read_file(scratch.file("empty/text")).value() == "text\n");
}
