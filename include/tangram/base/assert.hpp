// TANGRAM_ASSERT: a broken invariant is a bug of ours, never something an input can trigger.
#pragma once

namespace tangram {
/// Throws std::logic_error with the place and the expression.
[[noreturn]] void report_broken_invariant(const char* expression, const char* file, int line);
}  // namespace tangram

#define TANGRAM_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::tangram::report_broken_invariant(#condition, __FILE__, __LINE__))

/// The same where it is asked too often for what is released: in debug builds, and where TANGRAM_ASSERTIONS is defined.
#if defined(NDEBUG) && !defined(TANGRAM_ASSERTIONS)
#define TANGRAM_DEBUG_ASSERT(condition) static_cast<void>(0)
#else
#define TANGRAM_DEBUG_ASSERT(condition) TANGRAM_ASSERT(condition)
#endif
