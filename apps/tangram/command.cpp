#include "command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tangram/model/techniques.hpp"

namespace tangram::app {

namespace {

std::vector<std::string> technique_words() {
  std::vector<std::string> words = names_of(model::technique_names());
  words.insert(words.begin(), {"pp", "mixed"});
  return words;
}

std::vector<std::string> option_words() {
  std::vector<std::string> words = names_of(model::option_names());
  words.insert(words.begin(), {"any", "as-given"});
  return words;
}

std::vector<std::string> words_of(const SettingDefinition& setting) {
  if (setting.kind == SettingKind::kTechniques) return technique_words();
  if (setting.kind == SettingKind::kOptions) return option_words();
  return setting.kind == SettingKind::kChoice ? setting.choices : std::vector<std::string>();
}

Option option_of(const SettingDefinition& setting, CommonValues& common) {
  const std::string name(setting.name);
  const std::string fallback = setting.kind == SettingKind::kSwitch || setting.fallback.empty()
                                   ? ""
                                   : fmt::format(" (default: {})", setting.fallback);
  return {name,
          std::string(setting.value_name),
          setting.help + fallback,
          [&flags = common.flags, name](const std::string& text) { flags[name] = text; },
          words_of(setting),
          setting.is_list(),
          std::string(setting.short_name)};
}

void add_edits(std::vector<Option>& options, cluster::Edits& edits) {
  options.insert(
      options.end(),
      {{"drop", "WHAT", "plan without these nodes: rack=r3, node=a-[01-04], gpu=V100", &edits.drop},
       {"add", "WHAT", "plan with more nodes: gpu=H100,nodes=2 or like=a-07,nodes=2", &edits.add},
       {"set", "WHAT", "plan with changed values: link(zone:a,zone:b).bandwidth=10Gbit, node(a-07).compute=70%",
        &edits.set}});
}

void add_settings(std::vector<Option>& options, const Command& command, CommonValues& common) {
  for (const SettingDefinition& setting : setting_definitions()) {
    if (applies_to(setting, command.settings)) options.push_back(option_of(setting, common));
  }
}

void add_output(std::vector<Option>& options, CommonValues& common) {
  options.insert(options.end(), {{"json", "", "print one JSON document, also for errors", &common.json},
                                 {"quiet", "", "print only errors on standard error", &common.quiet, {}, false, "q"},
                                 {"verbose", "", "print more on standard error", &common.verbose, {}, false, "v"}});
}

}  // namespace

bool Argument::given() const {
  return std::visit([](const auto* value) { return !value->empty(); }, target);
}

Option output_option(std::string value, std::string help, std::string& path) {
  return {"output", std::move(value), std::move(help), &path, {}, false, "o"};
}

Invocation bind(const Command& command) {
  Bound own = command.bind();
  Invocation invocation{
      &command, {std::move(own.parameters.arguments), {}}, std::move(own.run), std::make_shared<CommonValues>()};
  CommonValues& common = *invocation.common;
  std::vector<Option>& options = invocation.parameters.options;
  options.push_back({"help", "", "show this text", &common.help, {}, false, "h"});
  std::ranges::move(own.parameters.options, std::back_inserter(options));
  if (command.edits_fleet) add_edits(options, common.edits);
  add_settings(options, command, common);
  add_output(options, common);
  if (command.edits_fleet) {  // what settings decide about
    options.push_back({"show-origin", "", "show the source of each setting, and stop", &common.show_origin});
  }
  return invocation;
}

}  // namespace tangram::app
