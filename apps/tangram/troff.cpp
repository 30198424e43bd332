#include "troff.hpp"

namespace tangram::app {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string troff(std::string text) {
  text = replaced(replaced(std::move(text), "\\", "\\e"), "-", "\\-");
  text = replaced(replaced(std::move(text), "'", "\\(aq"), "`", "\\(ga");
  text = replaced(replaced(std::move(text), "^", "\\(ha"), "~", "\\(ti");
  if (text.starts_with('.')) text.insert(0, "\\&");
  return replaced(std::move(text), "\n.", "\n\\&.");
}

}  // namespace tangram::app
