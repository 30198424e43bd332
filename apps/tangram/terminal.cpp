#include "terminal.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>

namespace tangram::app {

namespace {

bool is_set(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value != nullptr && *value != '\0';
}

bool is_dumb(const Environment& environment) {
  const char* term = environment("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

const char* code_of(Style style) {
  switch (style) {
    case Style::kPlain: return "";
    case Style::kBold: return "\x1b[1m";
    case Style::kDim: return "\x1b[2m";
    case Style::kRed: return "\x1b[31m";
    case Style::kYellow: return "\x1b[33m";
    case Style::kGreen: return "\x1b[32m";
  }
  return "";
}

constexpr const char* kReset = "\x1b[0m";
constexpr const char* kClearLine = "\r\x1b[K";
constexpr int kNarrowestPage = 40;

std::string colored(std::string_view text, Style style, bool color) {
  if (!color || style == Style::kPlain || text.empty()) return std::string(text);
  return code_of(style) + std::string(text) + kReset;
}

/// Of the terminal behind a stream; 0: it is none, or does not say.
int columns_of(int stream) {
  winsize size{};
  return ioctl(stream, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// "error:" and "hint:" are where the eye should land.
std::string colored_error(std::string text) {
  for (const auto& [word, style] : {std::pair{"error: ", Style::kRed}, std::pair{"hint: ", Style::kYellow}}) {
    const std::string bright = colored(word, style, true);
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + bright.size())) {
      text.replace(at, std::string_view(word).size(), bright);
    }
  }
  return text;
}

/// The length of a style of ours at the beginning of the text; 0: none.
std::size_t style_length(std::string_view text) {
  constexpr std::array kStyles{Style::kBold, Style::kDim, Style::kRed, Style::kYellow, Style::kGreen};
  if (text.starts_with(kReset)) return std::string_view(kReset).size();
  for (const Style style : kStyles) {
    const std::string_view code = code_of(style);
    if (text.starts_with(code)) return code.size();
  }
  return 0;
}

/// The control character at the beginning of the text (C0, DELETE, or C1 in UTF-8) and its bytes; none: 0 bytes.
struct Control {
  unsigned code = 0;
  std::size_t bytes = 0;
};

Control control_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  const unsigned first = byte(0);
  if (first == '\n' || first == '\t') return {};
  if (first < 0x20 || first == 0x7f) return {first, 1};
  if (first == 0xc2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xa0) return {byte(1), 2};
  return {};
}

}  // namespace

std::string without_controls(std::string_view text, bool keep_styles) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Control control = control_at(text);
    const std::size_t style = keep_styles && control.bytes > 0 ? style_length(text) : 0;
    const std::size_t taken = style > 0 ? style : control.bytes > 0 ? control.bytes : 1;
    if (style > 0 || control.bytes == 0) {
      out += text.substr(0, taken);
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", control.code);
    }
    text.remove_prefix(taken);
  }
  return out;
}

bool wants_color(std::string_view choice, bool is_terminal, const Environment& environment) {
  if (choice == "always") return true;
  if (choice == "never" || is_set(environment, "NO_COLOR")) return false;
  if (is_set(environment, "CLICOLOR_FORCE") || is_set(environment, "FORCE_COLOR")) return true;
  return is_terminal && !is_dumb(environment);
}

bool wants_progress(bool is_terminal, bool quiet, const Environment& environment) {
  return is_terminal && !quiet && !is_dumb(environment) && !is_set(environment, "CI");
}

// spdlog's default logger writes to stdout, which is the result's alone.
struct Terminal::Log {
  spdlog::logger logger{"tangram", std::make_shared<spdlog::sinks::stderr_sink_st>()};
};

Terminal::Terminal(const Traits& traits) : traits_(traits), log_(std::make_unique<Log>()) {
  log_->logger.set_pattern("%v");
  log_->logger.flush_on(spdlog::level::debug);
  log_->logger.set_level(traits.quiet           ? spdlog::level::err
                         : traits.verbosity > 0 ? spdlog::level::debug
                                                : spdlog::level::info);
}

Terminal::~Terminal() { clear_progress(); }

int Terminal::result(std::string_view text) {
  clear_progress();
  const std::string shown = without_controls(text, traits_.color_out);
  errno = 0;
  const bool written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0;
  return written ? 0 : errno != 0 ? errno : EIO;
}

void Terminal::error(const Diagnostics& diagnostics) {
  clear_progress();
  const std::string text = without_controls(render(diagnostics), false);
  to_stderr(traits_.color_err ? colored_error(text) : text);
}

void Terminal::note(std::string_view line) {
  if (!log_->logger.should_log(spdlog::level::info)) return;
  clear_progress();
  log_->logger.info(without_controls(line, false));
}

void Terminal::detail(std::string_view line) {
  if (!log_->logger.should_log(spdlog::level::debug)) return;
  clear_progress();
  log_->logger.debug(without_controls(line, false));
}

void Terminal::progress(std::string_view line) {
  if (!traits_.progress) return;
  const std::string shown = without_controls(line, false);
  to_stderr(kClearLine + shown.substr(0, static_cast<std::size_t>(traits_.width - 1)));
  progress_shown_ = true;
}

void Terminal::clear_progress() {
  if (progress_shown_) to_stderr(kClearLine);
  progress_shown_ = false;
}

std::string Terminal::styled(std::string_view text, Style style) const {
  return colored(text, style, traits_.color_out);
}

std::size_t Terminal::text_width() const { return std::min(page_width(), kPageWidth); }

void Terminal::to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

Terminal::Traits detect_traits(std::string_view color_choice, bool quiet, int verbosity,
                               const Environment& environment) {
  Terminal::Traits traits;
  traits.color_out = wants_color(color_choice, isatty(STDOUT_FILENO) == 1, environment);
  traits.color_err = wants_color(color_choice, isatty(STDERR_FILENO) == 1, environment);
  traits.progress = wants_progress(isatty(STDERR_FILENO) == 1, quiet, environment);
  traits.quiet = quiet;
  traits.verbosity = verbosity;
  if (const int width = columns_of(STDERR_FILENO); width > 1) traits.width = width;
  if (const int width = columns_of(STDOUT_FILENO); width > 1) {
    traits.page_width = static_cast<std::size_t>(std::max(width, kNarrowestPage));
  }
  return traits;
}

}  // namespace tangram::app
