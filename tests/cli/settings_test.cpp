#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "command.hpp"
#include "support/catch.hpp"
#include "tangram/compose/search.hpp"

using namespace tangram;
using namespace tangram::app;

namespace {

/// A configuration file that lives as long as the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    char name[] = "/tmp/tangram-settings-XXXXXX";
    const int descriptor = mkstemp(name);
    REQUIRE(descriptor >= 0);
    std::ofstream(name) << content;
    path_ = name;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::function<const char*(const std::string&)> environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

const SettingGroups& settings_of(std::string_view command) { return find_command(command)->settings; }

}  // namespace

TEST_CASE("settings: the help names the effort of a search that nobody sets") {
  const auto definitions = setting_definitions();
  const auto budget = std::ranges::find(definitions, "time-budget", &SettingDefinition::name);
  REQUIRE(budget != definitions.end());
  CHECK(budget->help.ends_with(fmt::format("(default: {} up to 256 GPUs, {} beyond)", compose::usual_label_budget(256),
                                           compose::usual_label_budget(257))));
}

TEST_CASE("settings: each source beats the next") {
  const TemporaryFile user("top: 1\nmax_pipelines: 1\njobs: 1\nmicrobatch: 1\n");
  const TemporaryFile project("top: 2\nmax_pipelines: 2\njobs: 2\n");
  const auto settings =
      resolve_settings(settings_of("plan"), {{{"top", "4"}},
                                             environment({{"TANGRAM_TOP", "3"}, {"TANGRAM_MAX_PIPELINES", "3"}}),
                                             project.path(),
                                             user.path()});
  REQUIRE(settings);
  CHECK(settings->count("top") == 4);
  CHECK(settings->value("top").origin == Origin::kFlag);
  CHECK(settings->count("max-pipelines") == 3);
  CHECK(settings->value("max-pipelines").place == "TANGRAM_MAX_PIPELINES");
  CHECK(settings->count("jobs") == 2);
  CHECK(settings->value("jobs").place == project.path() + ":3");
  CHECK(settings->count("microbatch") == 1);
  CHECK(settings->value("microbatch").origin == Origin::kUserFile);
  CHECK(settings->share("island-tolerance") == 0.10);
  CHECK_FALSE(settings->count("global-batch"));
}

TEST_CASE("settings: shares are numbers or per cent, techniques have short names") {
  const auto settings = resolve_settings(
      settings_of("plan"), {{{"island-tolerance", "25%"}, {"forbid", "pp,mixed,ep"}}, environment({}), "", ""});
  REQUIRE(settings);
  CHECK(settings->share("island-tolerance") == 0.25);
  CHECK(settings->techniques("forbid") == std::vector<std::string>{"pp", "mixed", "ep"});
  CHECK(settings->techniques("allow").empty());
}

TEST_CASE("settings: wrong values are all reported, with the place they were written") {
  const auto settings = resolve_settings(
      settings_of("plan"),
      {{{"top", "-1"}, {"island-tolerance", "100%"}}, environment({{"TANGRAM_FORBID", "tq"}}), "", ""});
  REQUIRE_FALSE(settings);
  REQUIRE(settings.error().size() == 3);
  CHECK(settings.error()[0].message == "TANGRAM_FORBID: unknown technique \"tq\"");
  CHECK(settings.error()[1].message == "--island-tolerance: \"100%\" is not a share of at least 0 and below 1");
  CHECK(settings.error()[2].message == "--top: \"-1\" is not a whole number of at least 1");
  for (const Diagnostic& d : settings.error()) CHECK(d.kind == ErrorKind::kUsage);
}

TEST_CASE("settings: a file of comments says nothing; a variable of another command is not looked at") {
  const TemporaryFile comments("# nothing yet\n\n   # really\n");
  const auto settings = resolve_settings(settings_of("islands"),
                                         {{}, environment({{"TANGRAM_TOP", "x"}}), comments.path(), "/no/such/file"});
  REQUIRE(settings);
  CHECK(settings->value("island-tolerance").origin == Origin::kDefault);
}

TEST_CASE("settings: the user's file is where the desktop standard says") {
  CHECK(user_config_path(environment({{"XDG_CONFIG_HOME", "/x"}, {"HOME", "/h"}})) == "/x/tangram/config.yaml");
  CHECK(user_config_path(environment({{"HOME", "/h"}})) == "/h/.config/tangram/config.yaml");
  CHECK(user_config_path(environment({})).empty());
}
