#include "tangram/base/assert.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace tangram {

void report_broken_invariant(const char* expression, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: broken invariant: {}", file, line, expression));
}

}  // namespace tangram
