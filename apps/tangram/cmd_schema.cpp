#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::app {

/// Generated from configs/schemas.
std::vector<std::pair<std::string_view, std::string_view>> schema_files();

ExitCode run_schema(const SchemaArguments& arguments, const Context& context) {
  std::vector<std::string> names;
  for (const auto& [file, content] : schema_files()) {
    const std::string name(file.substr(0, file.find('.')));
    if (name == arguments.name) return print_text(context, std::string(content));
    names.push_back(name);
  }
  const auto near = closest(arguments.name, names);
  return report(context.terminal, context.json,
                usage_mistake("unknown-schema", fmt::format("there is no schema \"{}\"", arguments.name),
                              near ? fmt::format("did you mean \"{}\"?", *near)
                                   : fmt::format("schemas: {}", fmt::join(names, ", "))));
}

}  // namespace tangram::app
