#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::app {

/// Generated from configs/schemas.
std::vector<std::pair<std::string_view, std::string_view>> schema_files();

namespace {

/// What a command prints is often meant by the command's name: "explain" for "explanation".
std::optional<std::string> akin(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kStem = 5;
  if (auto near = closest(word, names)) return near;
  const auto found = std::ranges::find_if(
      names, [&](const std::string& name) { return word.size() >= kStem && name.starts_with(word.substr(0, kStem)); });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

ExitCode run_schema(const SchemaArguments& arguments, const Context& context) {
  std::vector<std::string> names;
  for (const auto& [file, content] : schema_files()) {
    const std::string name(file.substr(0, file.find('.')));
    if (name == arguments.name) return print_text(context, std::string(content));
    names.push_back(name);
  }
  const auto near = akin(arguments.name, names);
  return report(context.terminal, context.json,
                usage_mistake("unknown-schema", fmt::format("no such schema: \"{}\"", arguments.name),
                              near ? fmt::format("did you mean \"{}\"?", *near)
                                   : fmt::format("schemas: {}", fmt::join(names, ", "))));
}

}  // namespace tangram::app
