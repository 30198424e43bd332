#include "tangram/io/folder.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "tangram/io/file.hpp"

using namespace tangram;
namespace fs = std::filesystem;

namespace {

class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("tangram-folder-" + std::to_string(::getpid()))) {
    fs::create_directory(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { fs::remove_all(path_); }
  [[nodiscard]] std::string at(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("a folder appears whole, with its folders and rights") {
  const Scratch scratch;
  auto folder = io::OutputFolder::open(scratch.at("out/"));
  REQUIRE(folder);
  REQUIRE(folder->add("a/b/start.sh", "#!/bin/sh\n", true));
  REQUIRE(folder->add("text", "text\n"));
  CHECK_FALSE(fs::exists(scratch.at("out")));
  REQUIRE(folder->commit());
  CHECK(scratch.entries() == 1);
  CHECK(io::read_file(scratch.at("out/text")).value() == "text\n");
  CHECK((fs::status(scratch.at("out/a/b/start.sh")).permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK((fs::status(scratch.at("out/text")).permissions() & fs::perms::owner_exec) == fs::perms::none);
}

TEST_CASE("a folder that is not committed leaves nothing behind") {
  const Scratch scratch;
  {
    auto folder = io::OutputFolder::open(scratch.at("out"));
    REQUIRE(folder);
    REQUIRE(folder->add("text", "text\n"));
  }
  CHECK(scratch.entries() == 0);
}

TEST_CASE("nothing is written over, an empty folder is filled") {
  const Scratch scratch;
  fs::create_directory(scratch.at("empty"));
  fs::create_directory(scratch.at("full"));
  std::ofstream(scratch.at("full/file")) << "precious";
  const auto full = io::OutputFolder::open(scratch.at("full"));
  REQUIRE_FALSE(full);
  CHECK(full.error().front().code == "folder-exists");
  CHECK(full.error().front().message == "the folder is not empty");
  const auto file = io::OutputFolder::open(scratch.at("full/file"));
  REQUIRE_FALSE(file);
  CHECK(file.error().front().message == "there is a file of this name");
  const auto nowhere = io::OutputFolder::open(scratch.at("no/where"));
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().front().message == "cannot write the folder: No such file or directory");
  auto empty = io::OutputFolder::open(scratch.at("empty"));
  REQUIRE(empty);
  REQUIRE(empty->add("text", "text\n"));
  REQUIRE(empty->commit());
  CHECK(io::read_file(scratch.at("empty/text")).value() == "text\n");
}
