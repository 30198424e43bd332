#include "terminal.hpp"

#include <map>

#include "support/catch.hpp"

using namespace tangram::app;

namespace {

Environment with(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

}  // namespace

TEST_CASE("terminal: who decides on color") {
  const auto xterm = with({{"TERM", "xterm"}});
  CHECK(wants_color("auto", true, xterm));
  CHECK_FALSE(wants_color("auto", false, xterm));
  CHECK_FALSE(wants_color("never", true, xterm));
  CHECK(wants_color("always", false, with({{"NO_COLOR", "1"}})));
  CHECK_FALSE(wants_color("auto", true, with({{"TERM", "xterm"}, {"NO_COLOR", "1"}})));
  CHECK(wants_color("auto", true, with({{"TERM", "xterm"}, {"NO_COLOR", ""}})));  // empty: not set
  CHECK_FALSE(wants_color("auto", true, with({{"NO_COLOR", "1"}, {"FORCE_COLOR", "1"}})));
  CHECK(wants_color("auto", false, with({{"CLICOLOR_FORCE", "1"}})));
  CHECK_FALSE(wants_color("auto", true, with({{"TERM", "dumb"}})));
  CHECK_FALSE(wants_color("auto", true, with({})));
}

TEST_CASE("terminal: the rewritten line is for people who watch") {
  const auto xterm = with({{"TERM", "xterm"}});
  CHECK(wants_progress(true, false, xterm));
  CHECK_FALSE(wants_progress(false, false, xterm));
  CHECK_FALSE(wants_progress(true, true, xterm));
  CHECK_FALSE(wants_progress(true, false, with({{"TERM", "dumb"}})));
  CHECK_FALSE(wants_progress(true, false, with({{"TERM", "xterm"}, {"CI", "true"}})));
}

TEST_CASE("terminal: styles only with color") {
  CHECK(Terminal({}).styled("x", Style::kRed) == "x");
  Terminal::Traits traits;
  traits.color_out = true;
  CHECK(Terminal(traits).styled("x", Style::kRed) == "\x1b[31mx\x1b[0m");
  CHECK(Terminal(traits).styled("x", Style::kPlain) == "x");
}

TEST_CASE("terminal: control characters are shown, not obeyed") {
  CHECK(without_controls("plain\ttext\n", false) == "plain\ttext\n");
  CHECK(without_controls("\x1b[2J", false) == "\\u001b[2J");
  CHECK(without_controls(std::string_view("a\0b\x7f\r", 5), false) == "a\\u0000b\\u007f\\u000d");
  CHECK(without_controls("\xc2\x9b"
                         "31m",
                         false) == "\\u009b31m");  // CSI of terminals that take C1
  CHECK(without_controls("\xc3\xa9\xe2\x82\xac", false) == "\xc3\xa9\xe2\x82\xac");
  CHECK(without_controls("\x1b[31mred\x1b[0m\x1b[5m", true) == "\x1b[31mred\x1b[0m\\u001b[5m");
}
