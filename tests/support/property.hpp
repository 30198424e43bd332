// rapidcheck with the same cases on every run, reported through Catch2.
#pragma once

#include <rapidcheck.h>

#include <sstream>
#include <utility>

#include "support/cases.hpp"
#include "support/catch.hpp"

namespace tangram::testing {

/// Checks `property` on cases(usual) generated cases; a failing case is shrunk and shown.
template <class Property>
void holds(int usual, Property&& property) {
  rc::detail::TestParams params;
  params.seed = 2026;
  params.maxSuccess = cases(usual);
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), rc::detail::TestMetadata(), params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  INFO(text.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

}  // namespace tangram::testing
