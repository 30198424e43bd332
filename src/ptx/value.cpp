#include "value.hpp"

#include <algorithm>

namespace tangram::ptx {

bool join(Value& value, const Value& other) {
  constexpr std::size_t kMostChoices = 4;
  if (value.predicate != other.predicate) value.predicate = nullptr;
  for (const Choice& choice : other.choices) {
    if (std::ranges::find(value.choices, choice) == value.choices.end()) value.choices.push_back(choice);
  }
  std::ranges::sort(value.choices);
  return value.choices.size() <= kMostChoices;
}

}  // namespace tangram::ptx
