// The one way a module says "no": a value or the reasons why not.
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "tangram/base/diagnostic.hpp"

namespace tangram {

template <class T>
using Expected = tl::expected<T, Diagnostics>;

/// Shorthand for returning one Diagnostic out of a function that returns Expected<T>.
[[nodiscard]] inline tl::unexpected<Diagnostics> fail(Diagnostic diagnostic) {
  Diagnostics list;
  list.push_back(std::move(diagnostic));
  return tl::unexpected<Diagnostics>(std::move(list));
}

[[nodiscard]] inline tl::unexpected<Diagnostics> fail(Diagnostics diagnostics) {
  return tl::unexpected<Diagnostics>(std::move(diagnostics));
}

}  // namespace tangram
