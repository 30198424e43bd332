// What a phase may hold, in files and where it is made of a model. 0: unknown.
#pragma once

#include "tangram/io/limits.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::kernels {

inline constexpr io::IntegerRange kPhaseRequests{0, 1'000'000, "no server holds more"};
inline constexpr io::IntegerRange kPhaseTokens{0, 1'000'000'000, "no step computes more"};
inline constexpr io::IntegerRange kPhaseContext{0, io::integer_limit("tokens").max, io::integer_limit("tokens").why};

}  // namespace tangram::kernels
