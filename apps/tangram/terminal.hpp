// Where words go. stdout carries the result alone; everything else goes to stderr. Color and the rewritten progress
// line are for terminals only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tangram/base/diagnostic.hpp"

namespace tangram::app {

using Environment = std::function<const char*(const std::string&)>;

/// --color beats NO_COLOR (no-color.org), which beats CLICOLOR_FORCE and FORCE_COLOR, which beat isatty and TERM.
[[nodiscard]] bool wants_color(std::string_view choice, bool is_terminal, const Environment& environment);

/// One rewritten line: on a terminal that can, outside continuous integration.
[[nodiscard]] bool wants_progress(bool is_terminal, bool quiet, const Environment& environment);

enum class Style : std::uint8_t { kPlain, kBold, kDim, kRed, kYellow, kGreen };

/// Control characters but line breaks and tabs as \u001b: what a terminal obeys never comes from an input. The form is
/// JSON's, so that a document stays what it is. `keep_styles` leaves those of styled().
[[nodiscard]] std::string without_controls(std::string_view text, bool keep_styles);

/// Of lines that go elsewhere than to a terminal, and of prose everywhere.
inline constexpr std::size_t kPageWidth = 100;

class Terminal {
 public:
  struct Traits {
    bool color_out = false;
    bool color_err = false;
    bool progress = false;
    bool quiet = false;
    int verbosity = 0;
    int width = 80;                       ///< of stderr, for the progress line
    std::size_t page_width = kPageWidth;  ///< columns of stdout: the terminal's, where it is one
  };
  explicit Terminal(const Traits& traits);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  /// Why stdout could not take it (disk full, closed): an errno; 0 when it could.
  [[nodiscard]] int result(std::string_view text);
  void error(const Diagnostics& diagnostics);
  void note(std::string_view line);    ///< unless --quiet
  void detail(std::string_view line);  ///< with --verbose
  void progress(std::string_view line);
  void clear_progress();

  [[nodiscard]] std::string styled(std::string_view text, Style style) const;  ///< for stdout
  [[nodiscard]] std::size_t page_width() const { return traits_.page_width; }  ///< of tables and of lines as they are
  [[nodiscard]] std::size_t text_width() const;  ///< of prose: at most kPageWidth, however wide the terminal

 private:
  void to_stderr(std::string_view text);

  struct Log;  ///< the spdlog logger behind note and detail, on stderr
  Traits traits_;
  std::unique_ptr<Log> log_;
  bool progress_shown_ = false;
};

/// Looks at the process's own streams.
[[nodiscard]] Terminal::Traits detect_traits(std::string_view color_choice, bool quiet, int verbosity,
                                             const Environment& environment);

}  // namespace tangram::app
