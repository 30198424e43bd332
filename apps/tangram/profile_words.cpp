#include "profile_words.hpp"

#include <fmt/format.h>

namespace tangram::app {

std::string degrees_text(const cost::Degrees& degrees) {
  std::string text = fmt::format("tp{}{}", degrees.tp, degrees.sequence_parallel ? "+sp" : "");
  if (degrees.cp > 1) text += fmt::format(" cp{}", degrees.cp);
  if (degrees.ep > 1) text += fmt::format(" ep{}", degrees.ep);
  if (degrees.etp > 1) text += fmt::format(" etp{}", degrees.etp);
  return text;
}

std::string exchanges_text(bool includes_tp_communication) {
  return fmt::format("exchanges of tp are {}in the times", includes_tp_communication ? "" : "not ");
}

}  // namespace tangram::app
