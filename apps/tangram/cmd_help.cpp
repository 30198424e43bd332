#include "commands.hpp"
#include "manual_pages.hpp"

namespace tangram::app {

ExitCode run_help(const HelpArguments& arguments, const Context& context) {
  const auto page = find_page(arguments.topic);
  return print_text(context, page ? page_text(page->markdown, context.terminal) : std::string());
}

}  // namespace tangram::app
