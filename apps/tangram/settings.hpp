// What can be set in more than one place. Goes in: flags, environment, configuration files. Comes out: for each setting
// its text and where it came from: flag > TANGRAM_* environment > .tangram.yaml > user configuration > default.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::app {

/// Settings that belong together; a command lists the groups that it takes.
enum class SettingGroup : std::uint8_t {
  kEvery,  ///< of every command
  kPlan,   ///< of plan alone
  kTarget,
  kJob,
  kProfiles,
  kOwnRuns,
  kIslands,
  kSearch,
  kCache,
  kPlugins,
  kWorkerCores
};
using SettingGroups = std::vector<SettingGroup>;

enum class SettingKind : std::uint8_t {
  kChoice,
  kSwitch,
  kCount,
  kAmount,
  kShare,
  kTechniques,
  kOptions,
  kModules,
  kAdapters,
  kFile,
  kFiles,
  kNames,
  kText
};

struct SettingDefinition {
  SettingGroup group;
  SettingKind kind;
  std::string_view name;        ///< flag without dashes: "island-tolerance"; TANGRAM_ISLAND_TOLERANCE, island_tolerance
  std::string_view value_name;  ///< for help
  std::string help;
  std::string fallback = {};              ///< text of the default; empty: not set
  std::vector<std::string> choices = {};  ///< kChoice, kSwitch
  std::string_view short_name = {};       ///< "j"

  [[nodiscard]] bool is_list() const;  ///< values divided by commas
};

/// The one registry: flags, environment, files, help and --show-origin are made from it.
[[nodiscard]] std::span<const SettingDefinition> setting_definitions();

[[nodiscard]] bool applies_to(const SettingDefinition& definition, const SettingGroups& groups);

enum class Origin : std::uint8_t { kDefault, kUserFile, kProjectFile, kEnvironment, kFlag };

struct SettingValue {
  std::string text;  ///< empty: not set
  Origin origin = Origin::kDefault;
  std::string place;  ///< "--top", "TANGRAM_TOP", ".tangram.yaml:3"
};

class Settings {
 public:
  explicit Settings(std::map<std::string, SettingValue, std::less<>> values) : values_(std::move(values)) {}

  [[nodiscard]] const SettingValue& value(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const { return value(name).text; }
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view name) const;
  [[nodiscard]] std::optional<double> amount(std::string_view name) const;
  [[nodiscard]] bool enabled(std::string_view name) const;  ///< kSwitch
  [[nodiscard]] double share(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> techniques(
      std::string_view name) const;  ///< as written, each known to the model module
  [[nodiscard]] std::vector<std::string> files(std::string_view name) const;

 private:
  std::map<std::string, SettingValue, std::less<>> values_;
};

struct SettingSources {
  std::map<std::string, std::string, std::less<>> flags;  ///< by name
  std::function<const char*(const std::string&)> environment;
  std::string project_file;  ///< ".tangram.yaml"; need not exist
  std::string user_file;     ///< need not exist; empty: none
};

/// Every value is checked where it was written: a wrong flag or variable is a usage error, a wrong file an input error.
[[nodiscard]] Expected<Settings> resolve_settings(const SettingGroups& groups, const SettingSources& sources);

/// Of this process; null where it is not set.
[[nodiscard]] const char* environment_variable(const std::string& name);

/// $XDG_CONFIG_HOME/tangram/config.yaml, or ~/.config/tangram/config.yaml; empty when neither variable is set.
[[nodiscard]] std::string user_config_path(const std::function<const char*(const std::string&)>& environment);

/// $XDG_CACHE_HOME/tangram/NAME, or ~/.cache/tangram/NAME; empty when neither variable is set.
[[nodiscard]] std::string user_cache_path(const std::function<const char*(const std::string&)>& environment,
                                          const std::string& name);

/// For --show-origin: one line per setting of these groups.
[[nodiscard]] std::string show_origin(const SettingGroups& groups, const Settings& settings);

}  // namespace tangram::app
