// The texts of fleet edits. Goes in: an argument of the command line. Comes out: its words with their places, values
// with units, and mistakes that point into the argument.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/base/units.hpp"

namespace tangram::cluster {

/// A piece of an argument.
struct Word {
  std::string_view text;
  std::size_t at = 0;  ///< offset in the argument
};

struct Assignment {
  Word key;
  Word value;
};

class EditText {
 public:
  /// `option`: "--add"; the argument must outlive this.
  EditText(std::string option, std::string_view argument) : option_(std::move(option)), argument_(argument) {}

  [[nodiscard]] Word all() const { return {argument_, 0}; }
  /// Pieces between separators outside of brackets; never empty ones: they are mistakes.
  [[nodiscard]] Expected<std::vector<Word>> split(const Word& word, char separator) const;
  /// "key=value"
  [[nodiscard]] Expected<Assignment> assignment(const Word& word) const;

  [[nodiscard]] Expected<std::int64_t> count(const Word& word, std::int64_t most) const;
  [[nodiscard]] Expected<BytesPerSecond> rate(const Word& word) const;
  [[nodiscard]] Expected<Nanoseconds> time(const Word& word) const;
  [[nodiscard]] Expected<double> share(const Word& word) const;  ///< in (0, 10]
  [[nodiscard]] Expected<Dollars> dollars(const Word& word) const;

  [[nodiscard]] tl::unexpected<Diagnostics> error(const Word& word, std::string message, std::string hint = {}) const;
  /// What is not known, with the nearest of what is.
  [[nodiscard]] tl::unexpected<Diagnostics> unknown(const Word& word, std::string_view what,
                                                    std::span<const std::string> known) const;

 private:
  std::string option_;
  std::string_view argument_;
};

}  // namespace tangram::cluster
