// A key whose words are the names of an enumeration's values, as to_string gives them.
#pragma once

#include <string_view>

#include "tangram/io/reader.hpp"

namespace tangram::io {

/// `usual` where the key is left out; others are refused with all names.
template <class E, class... Others>
[[nodiscard]] E read_named(ObjectReader& reader, std::string_view key, E usual, Others... others) {
  return reader.choice_or<E>(key, usual, {{to_string(usual), usual}, {to_string(others), others}...});
}

}  // namespace tangram::io
