#include <algorithm>
#include <optional>

#include "command.hpp"
#include "page_output.hpp"
#include "plan_page.hpp"
#include "plan_view.hpp"
#include "table.hpp"
#include "tangram/io/file.hpp"
#include "tangram/planner/checked_plan.hpp"

namespace tangram::app {

namespace {

struct ShowArguments {
  std::string plan;
  std::string html;  ///< empty: not written
};

Parameters parameters_of(ShowArguments& a) {
  return {{{"PLAN", "a launch plan", &a.plan}}, {html_option("write a page for browsers to FILE", a.html)}};
}

ExitCode run_show(const ShowArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = page_complaint(context, arguments.html, "", {arguments.plan})) return refuse(*wrong);
  auto written = io::read_file(arguments.plan);
  if (!written) return refuse(written.error());
  const auto plan = plan::read_plan(*written, arguments.plan);
  if (!plan) return refuse(plan.error());
  const plan::CheckReport judged = planner::full_check(*plan);
  if (!judged.followable) return refuse(planner::mistakes_in(*plan, arguments.plan));
  auto html = open_output(context, arguments.html);
  if (!html) return refuse(html.error());
  const std::string warning = failed_check_text(judged);
  const std::string page = arguments.html.empty() ? "" : plan_page(*plan, warning);
  if (const auto done = write_output(context, *html, page); !done) return refuse(done.error());
  if (context.json) return print_text(context, *written);
  if (arguments.html == "-") return print_text(context, page);
  const std::string warned = warning.empty() ? "" : labelled(context.terminal, "warning", warning);
  return print_text(context, plan_for_people(*plan, context.terminal) + warned);
}

}  // namespace

Command show_command() {
  return {.name = "show",
          .usage = "PLAN",
          .summary = "show a written plan, as text or as a page for browsers",
          .examples = R"(  tangram show plan.json
  tangram show plan.json --html plan.html
)",
          .details = R"(Prints a written plan as `tangram plan` did. --html draws it: pipelines with
their stages, GPUs, hosts, memory and links, one iteration as it is simulated,
and what each stage does with its time. The page is one file that opens without
a network. --json prints the file as it is. A plan that check refuses is shown
as written, with a warning.

Manual: tangram help plans
)",
          .bind = bound<ShowArguments>(parameters_of, run_show)};
}

}  // namespace tangram::app
