#include "words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tangram/base/spelling.hpp"

namespace tangram::app {

std::string any_of(const std::vector<std::string>& words) {
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string listing(std::string_view plural, const std::vector<std::string>& words) {
  return fmt::format("{}: {}", plural, fmt::join(words, ", "));
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known, std::string otherwise) {
  const auto near = closest(word, known);
  return near ? fmt::format("did you mean \"{}\"?", *near) : std::move(otherwise);
}

std::string time_limit_text(double seconds) {
  return fmt::format("the time limit of {:g} s stopped the search: another run may come to another result", seconds);
}

}  // namespace tangram::app
